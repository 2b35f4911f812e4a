package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"agentd/client"
)

// rulings are what people allowed for the rest of a session.
type rulings interface {
	Rules(ctx context.Context, sessionID string) ([]*client.Rule, error)
	Revoke(ctx context.Context, sessionID, rule string) error
}

// Rules implements rulings.
func (l *local) Rules(ctx context.Context, sessionID string) ([]*client.Rule, error) {
	rows, err := l.rt.Rules(ctx, sessionID)
	out := make([]*client.Rule, len(rows))
	for i, r := range rows {
		out[i] = (*client.Rule)(r)
	}
	return out, err
}

// Revoke implements rulings.
func (l *local) Revoke(ctx context.Context, sessionID, rule string) error {
	return l.rt.Revoke(ctx, sessionID, rule)
}

func (a *app) sessionsRules() *cobra.Command {
	return &cobra.Command{Use: "rules SESSION", Short: "List what was allowed for the rest of a session", Args: exactly(1, "the id of a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd.Context(), look, func(p place) error {
				rules, err := p.Rules(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return list(a, rules, []string{"RULE", "TOOL", "SINCE", "BY", "ALLOWS"}, func(r *client.Rule) []string {
					return []string{r.ID, shorten(r.Tool, 60), second(r.CreatedAt), shorten(r.By, 60), shorten(r.Allows, 80)}
				}, "nothing was allowed for the rest of this session")
			})
		}}
}

func (a *app) sessionsRevoke() *cobra.Command {
	var all bool
	cmd := &cobra.Command{Use: "revoke SESSION [RULE]", Short: "Take back what was allowed for the rest of a session",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 || all == (len(args) == 2) {
				return &usageError{fmt.Errorf("give the id of a session, and the id of a rule or --all")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, rule := cmd.Context(), ""
			if !all {
				rule = args[1]
			}
			return a.change(ctx, tend, func(p place) error {
				_, err := p.Rules(ctx, args[0])
				return err
			}, func(p place) error {
				if err := p.Revoke(ctx, args[0], rule); err != nil {
					return err
				}
				if a.asJSON() {
					return a.value(struct {
						Session string `json:"session_id"`
						Rule    string `json:"rule_id,omitempty"`
						Revoked bool   `json:"revoked"`
					}{args[0], rule, true})
				}
				_, err := fmt.Fprintln(a.Out, "revoked: people are asked again")
				return err
			})
		}}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "all rules of the session")
	return cmd
}
