package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentd/client"
	"agentd/event"
	"agentd/fault"
	"agentd/message"
)

func (a *app) runsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "runs", Short: "Look at runs, cancel them, go on with them",
		Long: `Look at runs, cancel them and go on with them: on a server (--server), or in a data folder
(--data). A data folder can be looked at while a server uses it.`,
		Args: exactly(0, "a command: ls, show, events, trace, cancel, steer, resume or proposals"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	a.placeFlags(cmd)
	cmd.AddCommand(a.runsList(), a.runsShow(), a.runsEvents(), a.runsTrace(), a.runsCancel(), a.runsSteer(), a.runsResume(), a.runsProposals())
	for _, c := range cmd.Commands() {
		if c.Name() != "ls" {
			c.ValidArgsFunction = a.completeRuns
		}
	}
	return cmd
}

// statuses lists the statuses of runs.
func statuses() []string {
	return []string{client.Queued, client.Running, client.Paused, client.Completed, client.Failed, client.Cancelled}
}

func (a *app) runsList() *cobra.Command {
	var f client.RunFilter
	cmd := &cobra.Command{Use: "ls", Short: "List runs, newest first", Args: exactly(0, "no arguments"),
		Example: `  agentd runs ls --status failed
  agentd runs ls --json --limit 0 | jq -r .run_id`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.Status != "" && !slices.Contains(statuses(), f.Status) {
				return &usageError{fmt.Errorf("--status %s: use %s", f.Status, strings.Join(statuses(), ", "))}
			}
			if f.Limit < 0 {
				return &usageError{errors.New("--limit must not be negative")}
			}
			return a.at(cmd.Context(), look, func(p place) error { return a.listRuns(cmd.Context(), p, f) })
		}}
	cmd.Flags().StringVarP(&f.SessionID, "session", "s", "", "only those of this session")
	cmd.Flags().StringVar(&f.Status, "status", "", "only those with this status: "+strings.Join(statuses(), ", "))
	cmd.Flags().IntVarP(&f.Limit, "limit", "n", 50, "how many; 0 for all")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(statuses(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) listRuns(ctx context.Context, p runs, f client.RunFilter) error {
	rows, more, err := everything(f.Limit, func(cursor string, limit int) ([]*client.Run, string, error) {
		f.Cursor, f.Limit = cursor, limit
		return p.Runs(ctx, f)
	})
	if err != nil {
		return err
	}
	defer a.tellMore(more, "runs")
	return list(a, rows, []string{"RUN", "STATUS", "PROFILE", "STEPS", "TOKENS", "CREATED", "SESSION"}, func(r *client.Run) []string {
		return []string{r.ID, r.Status, r.Profile, fmt.Sprint(r.Steps), fmt.Sprint(r.Usage.TotalTokens), second(r.CreatedAt), r.SessionID}
	}, "no runs")
}

func (a *app) runsShow() *cobra.Command {
	var timed bool
	var width int
	cmd := &cobra.Command{Use: "show RUN", Short: "Show a run: status, usage, its timeline, output",
		Long: `Show a run and draw its timeline: steps, calls side by side, waits for people and
what they decided, retries, tokens, cost and cache. With --json --timeline the
timeline is JSON; --json alone gives the run.`,
		Args: exactly(1, "the id of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd.Context(), look, func(p place) error { return a.showRun(cmd.Context(), p, args[0], timed && a.asJSON(), width) })
		}}
	cmd.Flags().BoolVar(&timed, "timeline", false, "with --json: the timeline instead of the run")
	cmd.Flags().IntVar(&width, "width", 0, "characters in a line (default: the terminal's, else $COLUMNS, else 100)")
	return cmd
}

func (a *app) showRun(ctx context.Context, p runs, id string, timed bool, width int) error {
	r, err := p.Run(ctx, id)
	if err != nil {
		return err
	}
	if a.asJSON() && !timed {
		return a.value(r)
	}
	line, err := readTimeline(p.Replay(ctx, id, 0))
	if err != nil {
		return err
	}
	if err := addTrace(ctx, p, id, line); err != nil {
		return err
	}
	addProposals(r.Proposals, line)
	if line.RunID, line.Status = r.ID, r.Status; timed {
		return a.value(line)
	}
	return a.describeRun(r, line.draw(a.columns(width), a.Terminal))
}

// describeRun tells everything about a run; steps is its timeline.
func (a *app) describeRun(r *client.Run, steps string) error {
	profile := r.Profile
	if r.ProfileVersion != "" {
		profile += "@" + r.ProfileVersion
	}
	status := r.Status
	if r.StopReason != "" && r.StopReason != r.Status {
		status += " (" + r.StopReason + ")"
	}
	ended := second(r.EndedAt)
	if d := took(r.StartedAt, r.EndedAt); d != "" {
		ended += " (after " + d + ")"
	}
	problem := ""
	if r.Error != nil {
		problem = shorten(r.Error.Message, 500)
		if r.Error.Hint != "" {
			problem += " " + shorten(r.Error.Hint, 300)
		}
	}
	err := facts(a.Out, "run", r.ID, "session", r.SessionID, "parent", r.ParentID, "profile", profile, "mode", r.Mode, "session mode", notEdit(r.SessionMode), "model", shorten(r.Model, 100), "thinking", shorten(r.Thinking, 60), "status", status,
		"created", second(r.CreatedAt), "started", second(r.StartedAt), "ended", ended, "usage", usage(&r.Usage, r.Steps), "budget", budget(r.Budget), "shares", shares(r.Budget),
		"metadata", shorten(string(r.Metadata), 500), "error", problem)
	if err != nil {
		return err
	}
	if steps != "" {
		fmt.Fprintf(a.Out, "\ntimeline\n%s", steps)
	}
	for _, i := range r.Interrupts {
		fmt.Fprintf(a.Out, "\nwaits for a person (%s): %s\n  agentd interrupts answer %s %s%s\n", i.Kind, shorten(i.Prompt, 300), i.ID, answers(i), a.where())
	}
	for _, c := range r.ToolCalls {
		fmt.Fprintf(a.Out, "\nfor the caller to perform: %s %s\n", shorten(c.Name, 100), shorten(string(c.Arguments), 300))
	}
	if n := undecided(r.Proposals); n > 0 && r.Ended() {
		fmt.Fprintf(a.Out, "\n%s for a person to decide about\n  agentd runs proposals %s%s\n", wait(n, "proposal"), r.ID, a.where())
	}
	if r.Output != "" {
		fmt.Fprintf(a.Out, "\noutput\n%s\n", indent(printable(r.Output)))
	}
	return nil
}

// usage says in a line what a run used.
func usage(u *message.Usage, steps int) string {
	s := fmt.Sprintf("%s, %d tokens (%d in, %d out", count(steps, "step"), u.TotalTokens, u.Prompt(), u.Output)
	if p := u.Prompt(); p > 0 && u.CacheRead > 0 {
		s += fmt.Sprintf(", %d%% of the input cached", u.CacheRead*100/p)
	}
	s += ")"
	if u.Cost.Total > 0 {
		s += ", $" + u.Cost.Total.String()
	}
	return s
}

// budget says in a line what of a budget is used.
func budget(b *client.RunBudget) string {
	if b == nil {
		return ""
	}
	var parts []string
	for _, l := range []struct {
		limit int
		used  float64
		what  string
	}{{b.Limits.MaxSteps, float64(b.Used.Steps), "steps"}, {b.Limits.MaxToolCalls, float64(b.Used.ToolCalls), "tool calls"},
		{b.Limits.MaxRunTimeSeconds, b.Used.RunTimeSeconds, "seconds"}} {
		if l.limit > 0 {
			parts = append(parts, fmt.Sprintf("%g of %d %s", l.used, l.limit, l.what))
		}
	}
	if m := b.Limits.MaxCostUSD; m > 0 {
		parts = append(parts, "$"+m.String())
	}
	if n := b.Limits.MaxTokens; n > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", n))
	}
	if n := b.Limits.MaxOutputTokens; n > 0 {
		parts = append(parts, fmt.Sprintf("at most %d output tokens a reply", n))
	}
	return strings.Join(parts, ", ")
}

func (a *app) runsEvents() *cobra.Command {
	var after int64
	var follow bool
	cmd := &cobra.Command{Use: "events RUN", Short: "Show the events of a run", Args: exactly(1, "the id of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if after < 0 {
				return &usageError{errors.New("--after must not be negative")}
			}
			return a.at(cmd.Context(), look, func(p place) error { return a.showEvents(cmd.Context(), p, args[0], after, follow) })
		}}
	cmd.Flags().Int64Var(&after, "after", 0, "only those with a higher number")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run ends (with --server)")
	return cmd
}

func (a *app) showEvents(ctx context.Context, p place, id string, after int64, follow bool) error {
	if follow {
		if _, here := p.(*local); here {
			return &usageError{errors.New("--follow needs --server: only the server that drives a run knows what it does now")}
		}
		for ev, err := range p.Watch(ctx, id, after) {
			if errors.Is(err, context.Canceled) {
				return &exitError{exitCancelled}
			}
			if err != nil {
				return err
			}
			if err := a.showEvent(ev); err != nil {
				return err
			}
		}
		return nil
	}
	for ev, err := range p.Replay(ctx, id, after) {
		if err != nil {
			return err
		}
		if err := a.showEvent(ev); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) showEvent(ev event.Event) error {
	if a.asJSON() {
		return a.value(ev)
	}
	at := time.UnixMilli(ev.Time).UTC().Format(event.TimeLayout)
	_, err := fmt.Fprintln(a.Out, strings.TrimRight(fmt.Sprintf("%8d  %s  %2d  %-20s %s", ev.Seq, at, ev.Step, ev.Type, gist(ev)), " "))
	return err
}

func (a *app) runsCancel() *cobra.Command {
	var reason string
	cmd := &cobra.Command{Use: "cancel RUN", Short: "Ask a run to stop", Args: exactly(1, "the id of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.change(ctx, tend, func(p place) error { return unended(ctx, p, args[0]) }, func(p place) error {
				return a.cancelRun(ctx, p, args[0], reason)
			})
		}}
	cmd.Flags().StringVar(&reason, "reason", "cancelled at the terminal", "why, for the record")
	return cmd
}

// unended fails if there is no such run, or if it is too late to cancel it.
func unended(ctx context.Context, p runs, id string) error {
	r, err := p.Run(ctx, id)
	if err == nil && r.Ended() && r.Status != client.Cancelled {
		err = &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("run %s has ended: %s", id, r.Status)}
	}
	return err
}

// cancelWait is how long a cancelled run may take to end.
const cancelWait = 30 * time.Second

// cancelRun cancels a run and waits until it has ended.
func (a *app) cancelRun(ctx context.Context, p runs, id, reason string) error {
	r, err := p.Cancel(ctx, id, reason)
	if err != nil {
		return err
	}
	if !r.Ended() {
		wait, stop := context.WithTimeout(ctx, cancelWait)
		defer stop()
		for _, err := range p.Watch(wait, id, 0) {
			if err != nil {
				return &fault.Error{Kind: fault.Timeout, Err: fmt.Errorf("run %s was told to stop and has not ended yet: %w", id, err),
					Hint: "agentd runs show " + id + a.where() + " tells how it stands."}
			}
		}
		if r, err = p.Run(ctx, id); err != nil {
			return err
		}
	}
	if a.asJSON() {
		return a.value(r)
	}
	_, err = fmt.Fprintf(a.Out, "run %s: %s\n", r.ID, r.Status)
	return err
}
