package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentd/client"
)

func (a *app) runsTrace() *cobra.Command {
	var after, limit int
	cmd := &cobra.Command{Use: "trace RUN", Short: "Show what a run decided: its inputs and the effects they led to",
		Long: `Show the trace of a run: every input that its machine took (replies, verdicts,
results, answers, timers) and the effects that were to be done because of it.
Messages are not in it; they are entries of the session (agentd sessions show).`,
		Args: exactly(1, "the id of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if after < 0 || limit < 0 {
				return &usageError{errors.New("--after and --limit must not be negative")}
			}
			return a.at(cmd.Context(), look, func(p place) error { return a.showTrace(cmd.Context(), p, args[0], after, limit) })
		}}
	cmd.Flags().IntVar(&after, "after", 0, "only those with a higher number")
	cmd.Flags().IntVarP(&limit, "limit", "n", 0, "how many; 0 for all")
	return cmd
}

// tracePage is how many rows are asked for at a time.
const tracePage = 500

func (a *app) showTrace(ctx context.Context, p place, id string, after, limit int) error {
	for left := limit; ; {
		n := tracePage
		if limit > 0 {
			n = min(left, tracePage)
		}
		rows, more, err := p.Trace(ctx, id, after, n)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if err := a.showTraceRow(r); err != nil {
				return err
			}
			after = r.N
		}
		if left -= len(rows); !more || len(rows) == 0 || limit > 0 && left <= 0 {
			return nil
		}
	}
}

func (a *app) showTraceRow(r *client.Trace) error {
	if a.asJSON() {
		return a.value(r)
	}
	var effects []string
	for _, e := range r.Effects {
		effects = append(effects, strings.TrimSpace(e.Kind+" "+shorten(string(e.Data), 120)))
	}
	line := fmt.Sprintf("%6d  %s  %-16s %s", r.N, r.Time, r.Input, shorten(string(r.Data), 160))
	if _, err := fmt.Fprintln(a.Out, printable(strings.TrimRight(line, " "))); err != nil {
		return err
	}
	for _, e := range effects {
		if _, err := fmt.Fprintln(a.Out, printable("        → "+e)); err != nil {
			return err
		}
	}
	return nil
}
