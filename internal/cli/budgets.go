package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentd"
	"agentd/client"
)

// purses are the budgets that runs share.
type purses interface {
	Budgets(ctx context.Context, f client.PotFilter) ([]*client.Pot, string, error)
}

// Budgets implements purses.
func (l *local) Budgets(ctx context.Context, f client.PotFilter) ([]*client.Pot, string, error) {
	rows, cursor, err := l.rt.Budgets(ctx, agentd.PotFilter(f))
	return potsOf(rows), cursor, err
}

func potsOf(rows []*agentd.Pot) []*client.Pot {
	var out []*client.Pot
	for _, p := range rows {
		out = append(out, &client.Pot{Kind: p.Kind, ID: p.ID, Limits: client.PotAmounts(p.Limits), Used: client.PotAmounts(p.Used),
			Held: client.PotAmounts(p.Held), UpdatedAt: p.UpdatedAt})
	}
	return out
}

func (a *app) budgetsCommand() *cobra.Command {
	var f client.PotFilter
	cmd := &cobra.Command{Use: "budgets", Short: "Show what is used of the budgets that runs share", Args: exactly(0, "no arguments"),
		Long: `Show what is used of the budgets that runs share: those of runs with their
subagents, of sessions, and of the tenant by day. The newest come first. Caps are
set in profiles (max_cost_usd, max_tokens_per_run) and in agentd.yaml (budgets).`,
		Example: `  agentd budgets --kind tenant_day
  agentd budgets --kind session --id ses_…`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.at(cmd.Context(), look, func(p place) error {
				pots, cursor, err := p.Budgets(cmd.Context(), f)
				if err != nil {
					return err
				}
				if err := list(a, pots, []string{"KIND", "ID", "USED", "HELD", "CHANGED"}, func(p *client.Pot) []string {
					return []string{p.Kind, p.ID, ofLimits(&p.Used, &p.Limits), ofLimits(&p.Held, &client.PotAmounts{}), second(p.UpdatedAt)}
				}, "no run has a budget that it shares"); err != nil {
					return err
				}
				if cursor != "" && !a.asJSON() {
					fmt.Fprintln(a.Err, "there are more: --limit, or --cursor "+cursor)
				}
				return nil
			})
		}}
	a.placeFlags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.Kind, "kind", "", "run, session or tenant_day (default: all)")
	fl.StringVar(&f.ID, "id", "", "that of one run, session or day (2006-01-02, UTC)")
	fl.StringVar(&f.Cursor, "cursor", "", "where the page before ended")
	fl.IntVarP(&f.Limit, "limit", "n", 50, "how many at most")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{"run", "session", "tenant_day"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// ofLimits says how much there is of each limit: "$0.25 of $5, 900 tokens".
func ofLimits(used, limits *client.PotAmounts) string {
	var parts []string
	add := func(show bool, used, limit string, limited bool) {
		if limited {
			used += " of " + limit
		}
		if show || limited {
			parts = append(parts, used)
		}
	}
	add(used.CostUSD > 0, "$"+used.CostUSD.String(), "$"+limits.CostUSD.String(), limits.CostUSD > 0)
	for _, n := range []struct {
		used, limit int64
		what        string
	}{{used.Tokens, limits.Tokens, " tokens"}, {used.ToolCalls, limits.ToolCalls, " tool calls"}, {used.ToolFailures, limits.ToolFailures, " failures"}} {
		add(n.used > 0, fmt.Sprint(n.used)+map[bool]string{false: n.what}[n.limit > 0], fmt.Sprint(n.limit)+n.what, n.limit > 0)
	}
	return strings.Join(parts, ", ")
}

// shares says in lines what of the budgets is used that a run shares.
func shares(b *client.RunBudget) string {
	if b == nil {
		return ""
	}
	var lines []string
	for _, p := range b.Pots {
		line := p.Kind + " " + p.ID + ": " + ofLimits(&p.Used, &p.Limits)
		if held := ofLimits(&p.Held, &client.PotAmounts{}); held != "" {
			line += "; held " + held
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n\t")
}
