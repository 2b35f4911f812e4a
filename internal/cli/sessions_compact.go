package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"agentd"
	"agentd/client"
	"agentd/event"
)

// compactor makes conversations shorter.
type compactor interface {
	Compact(ctx context.Context, sessionID string, req client.CompactRequest) (*client.Run, error)
}

// Compact implements compactor.
func (l *local) Compact(ctx context.Context, sessionID string, req client.CompactRequest) (*client.Run, error) {
	return runOf(l.rt.Compact(ctx, agentd.StartRequest{SessionID: sessionID, Profile: req.Profile,
		Compact: &agentd.CompactRequest{Instructions: req.Instructions}}))
}

func (a *app) sessionsCompact() *cobra.Command {
	var req client.CompactRequest
	cmd := &cobra.Command{Use: "compact SESSION", Short: "Replace the older part of a conversation by a summary of it", Args: exactly(1, "the id of a session"),
		Long: `Replace what the model sees of the older part of a conversation by a summary, which
a model writes. What was said last stays as it is. Nothing is deleted: the whole
history is still there, and "agentd sessions show" shows it.

Long conversations are compacted by themselves (compaction in the profile).`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.change(ctx, tend, func(p place) error {
				_, err := p.Session(ctx, args[0])
				return err
			}, func(p place) error { return a.compact(ctx, p, args[0], req) })
		}}
	cmd.Flags().StringVar(&req.Instructions, "instructions", "", "what the summary should dwell on")
	cmd.Flags().StringVarP(&req.Profile, "profile", "p", "", "whose models write it (default: that of the session's last run)")
	_ = cmd.RegisterFlagCompletionFunc("profile", a.completeProfiles)
	return cmd
}

// compact waits until the run has ended, and tells what came of it.
func (a *app) compact(ctx context.Context, p place, id string, req client.CompactRequest) error {
	r, err := p.Compact(ctx, id, req)
	if err != nil {
		return err
	}
	made, err := a.waitCompaction(ctx, p, r.ID, "the compaction")
	if err != nil {
		return err
	}
	if a.asJSON() {
		return a.value(made)
	}
	if made == nil {
		_, err := fmt.Fprintln(a.Out, "there is nothing to compact: what was said last stays as it is")
		return err
	}
	return facts(a.Out, "session", id, "compaction", made.EntryID, "tokens", fmt.Sprintf("about %d before, %d now", made.TokensBefore, made.TokensAfter),
		"messages", fmt.Sprintf("%d summarised, %d kept", made.Summarised, made.Kept), "summary by", made.Model)
}

// waitCompaction waits until the run that compacts a session, or summarises what it
// leaves, has ended; nil: there was nothing to do.
func (a *app) waitCompaction(ctx context.Context, p place, run, what string) (made *event.Compaction, err error) {
	for ev, err := range p.Watch(ctx, run, 0) {
		if err != nil {
			return nil, err
		}
		if c, ok := ev.Data.(*event.Compaction); ok {
			made = c
		}
		end, ok := ev.Data.(*event.Ended)
		switch {
		case !ok:
		case end.Error != nil:
			return nil, fmt.Errorf("the session is as it was: %s", end.Error.Message)
		case ev.Type == event.RunCancelled:
			return nil, errors.New(what + " was cancelled; the session is as it was")
		}
	}
	return made, nil
}

// compacted says what a compaction did, on one line.
func compacted(c *event.Compaction) string {
	why := map[string]string{"threshold": "the context window is nearly full", "overflow": "it was too large for the model", "manual": "by hand", "branch": "a way that is left"}[c.Reason]
	s := fmt.Sprintf("compacted (%s): about %d tokens before, %d now, %s summarised, %d kept", why, c.TokensBefore, c.TokensAfter, count(c.Summarised, "message"), c.Kept)
	if c.Shortened > 0 {
		s += fmt.Sprintf(", %d shortened", c.Shortened)
	}
	if c.Model == "" && c.Summarised > 0 {
		s += "; no model wrote a summary, so there are excerpts"
	}
	return s
}

// summarised is what a compaction or the summary of a branch says, or "".
func summarised(e *client.Entry) string {
	if e.Kind != "compaction" && e.Kind != "branch_summary" {
		return ""
	}
	var c struct {
		Summary       string   `json:"summary"`
		ReadFiles     []string `json:"read_files"`
		ModifiedFiles []string `json:"modified_files"`
		TokensBefore  int      `json:"tokens_before"`
		TokensAfter   int      `json:"tokens_after"`
		Model         string   `json:"model"`
	}
	if json.Unmarshal(e.Data, &c) != nil {
		return ""
	}
	text := "(a summary of the way that was left"
	if e.Kind == "compaction" {
		text = fmt.Sprintf("(what is above is a summary for the model from here on; about %d tokens before, %d after", c.TokensBefore, c.TokensAfter)
	}
	if c.Model != "" {
		text += "; by " + c.Model
	}
	text += ")"
	if c.Summary != "" {
		text += "\n" + c.Summary
	}
	if n := len(c.ReadFiles) + len(c.ModifiedFiles); n > 0 {
		text += fmt.Sprintf("\n(files: %d read, %d changed)", len(c.ReadFiles), len(c.ModifiedFiles))
	}
	return text
}
