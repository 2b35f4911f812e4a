package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"agentd/client"
	"agentd/event"
)

// caches are what providers' prompt caches did.
type caches interface {
	Cache(ctx context.Context, sessionID, cursor string, limit int) (*client.Cache, error)
}

// Cache implements caches.
func (l *local) Cache(ctx context.Context, sessionID, cursor string, limit int) (*client.Cache, error) {
	v, err := l.rt.Cache(ctx, sessionID, cursor, limit)
	if err != nil {
		return nil, err
	}
	out := &client.Cache{SessionID: v.SessionID, Total: client.CacheTotal(v.Total), Cursor: v.Cursor}
	for _, s := range v.Steps {
		out.Steps = append(out.Steps, client.CacheStep(s))
	}
	return out, nil
}

func (a *app) sessionsCache() *cobra.Command {
	return &cobra.Command{Use: "cache SESSION", Short: "Show what prompt caches did for a session, and why they did not",
		Long: `Show each step of a session with the tokens that its provider read from its cache, wrote
to it and took anew, what that cost and what it saved; and why less was read than could
be: what changed at the beginning of the request, or a wait that was too long. A step is
compared with the one before on its path: after the session went back that is not the one
above, and is named.`,
		Args: exactly(1, "the id of a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.at(ctx, look, func(p place) error { return a.showCache(ctx, p, args[0]) })
		}}
}

// cachePage is how many steps are read at a time.
const cachePage = 200

func (a *app) showCache(ctx context.Context, p caches, id string) error {
	all, err := p.Cache(ctx, id, "", cachePage)
	if err != nil {
		return err
	}
	for cursor := all.Cursor; cursor != ""; {
		page, err := p.Cache(ctx, id, cursor, cachePage)
		if err != nil {
			return err
		}
		all.Steps, all.Total, cursor = append(all.Steps, page.Steps...), page.Total, page.Cursor
	}
	all.Cursor = ""
	if a.asJSON() {
		if all.Steps == nil {
			all.Steps = []client.CacheStep{}
		}
		return a.value(all)
	}
	rows := make([]*client.CacheStep, len(all.Steps))
	for i := range all.Steps {
		rows[i] = &all.Steps[i]
	}
	elsewhere := map[*client.CacheStep]bool{}
	for i, s := range rows {
		elsewhere[s] = s.ComparedRun != "" && (i == 0 || s.ComparedRun != rows[i-1].RunID || s.ComparedStep != rows[i-1].Step)
	}
	err = list(a, rows, []string{"RUN", "STEP", "AT", "READ", "WRITTEN", "NEW", "CACHED", "COST", "SAVED", "WHY NOT MORE"}, func(s *client.CacheStep) []string {
		return []string{s.RunID, fmt.Sprint(s.Step), second(s.Time), fmt.Sprint(s.CacheRead), fmt.Sprint(s.CacheWrite), fmt.Sprint(s.Input),
			fmt.Sprintf("%.1f%%", s.Ratio*100), "$" + s.Cost.String(), "$" + s.Saved.String(), missed(s, elsewhere[s])}
	}, "the session has no steps")
	if err != nil || len(rows) == 0 {
		return err
	}
	t := &all.Total
	without := ""
	if full := t.Cost + t.Saved; full > 0 && t.Saved != 0 {
		part, than := float64(t.Saved)*100/float64(full), "less"
		if part < 0 {
			part, than = -part, "more" // more was written than read
		}
		without = fmt.Sprintf(", %.1f%% %s than without a cache", part, than)
	}
	_, err = fmt.Fprintf(a.Out, "\n%s: %.1f%% of %d prompt tokens came from the cache; $%s, $%s saved%s; %d broken, %d expired\n", count(t.Steps, "step"), t.Ratio*100,
		t.Input+t.CacheRead+t.CacheWrite, t.Cost, t.Saved, without, t.Breaks, t.Expired)
	return err
}

// missed says why a step did not read all that there could be, and with which step it is
// compared where that is not the one above.
func missed(s *client.CacheStep, elsewhere bool) string {
	why := reason(s)
	if !elsewhere {
		return why
	}
	if why != "" {
		why += ", "
	}
	return fmt.Sprintf("%safter step %d of %s", why, s.ComparedStep, printable(s.ComparedRun))
}

func reason(s *client.CacheStep) string {
	tokens := ""
	if s.Missed > 0 {
		tokens = fmt.Sprintf(" (%d tokens)", s.Missed)
	}
	switch s.Miss {
	case "first":
		return "the first request"
	case "broken":
		return broken(s.Broken) + tokens
	case "expired":
		return fmt.Sprintf("waited %s, kept for %s%s", span(int64(s.WaitSeconds*1000)), time.Duration(s.CacheSeconds)*time.Second, tokens)
	case "small":
		return "too short to be cached"
	case "provider":
		return "the provider did not have it" + tokens
	case "none":
		return "the provider reports no cache"
	}
	return ""
}

// broken says what of a request changed.
func broken(b *event.CacheBreak) string {
	if b == nil {
		return "the request changed"
	}
	what := b.Part
	switch {
	case b.EntryID != "":
		what += " " + b.EntryID
	case b.Name != "":
		what += " " + shorten(b.Name, 100)
	default:
		what += fmt.Sprintf(" %d", b.Index+1)
	}
	what += " " + b.Change
	if b.Part == "settings" || b.Part == "model" {
		what += fmt.Sprintf(" from %q to %q", shorten(b.Old, 60), shorten(b.New, 60))
	}
	if b.Reason != "" {
		what += ": " + b.Reason
	}
	return what
}
