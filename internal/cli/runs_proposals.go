package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"agentd"
	"agentd/client"
)

// proposals are what autonomous runs recorded for a person to decide about.
type proposals interface {
	Proposals(ctx context.Context, runID string) ([]*client.Proposal, error)
	Apply(ctx context.Context, runID string, req client.DecideRequest) ([]*client.Proposal, error)
	Discard(ctx context.Context, runID string, req client.DecideRequest) ([]*client.Proposal, error)
}

// Proposals implements proposals.
func (l *local) Proposals(ctx context.Context, runID string) ([]*client.Proposal, error) {
	return proposalsOf(l.rt.Proposals(ctx, runID))
}

// Apply implements proposals.
func (l *local) Apply(ctx context.Context, runID string, req client.DecideRequest) ([]*client.Proposal, error) {
	return proposalsOf(l.rt.ApplyProposals(ctx, decided(runID, &req)))
}

// Discard implements proposals.
func (l *local) Discard(ctx context.Context, runID string, req client.DecideRequest) ([]*client.Proposal, error) {
	return proposalsOf(l.rt.DiscardProposals(ctx, decided(runID, &req)))
}

func decided(runID string, req *client.DecideRequest) agentd.DecideRequest {
	return agentd.DecideRequest{Run: runID, Proposal: req.Proposal, Uncertain: req.Uncertain, RealID: req.RealID, By: "terminal"}
}

func proposalsOf(rows []*agentd.Proposal, err error) ([]*client.Proposal, error) {
	var out []*client.Proposal
	for _, p := range rows {
		out = append(out, (*client.Proposal)(p))
	}
	return out, err
}

func (a *app) runsProposals() *cobra.Command {
	var apply, discard bool
	var req client.DecideRequest
	cmd := &cobra.Command{Use: "proposals RUN [PROPOSAL]", Short: "List what an autonomous run proposed; apply or discard it",
		Long: `List the calls that an autonomous run recorded because they need approval, apply
them or discard them: all that are left, or one.

Proposals are applied in their order, each once; the ids of what is made take the
place of temporary ones in those that follow. The first that fails stops the rest.`,
		Example: `  agentd runs proposals run_…
  agentd runs proposals run_… --apply
  agentd runs proposals run_… run_….p2 --discard`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 || len(args) > 2:
				return &usageError{errors.New("give the id of a run, and the id of a proposal if only one is meant")}
			case apply && discard:
				return &usageError{errors.New("give --apply or --discard, not both")}
			case len(args) == 2 && !apply && !discard:
				return &usageError{errors.New("say what becomes of the proposal: --apply or --discard")}
			case !apply && (req.Uncertain != "" || req.RealID != ""):
				return &usageError{errors.New("--uncertain and --real-id go with --apply")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if len(args) == 2 {
				req.Proposal = args[1]
			}
			if !apply && !discard {
				return a.at(ctx, look, func(p place) error { return a.showProposals(p.Proposals(ctx, args[0])) })
			}
			before := 0
			return a.change(ctx, tend, func(p place) error {
				if _, err := p.Run(ctx, args[0]); err != nil {
					return err
				}
				rows, err := p.Proposals(ctx, args[0])
				before = undecided(rows)
				if l, here := p.(*local); here && apply && err == nil {
					err = l.knows(ctx, args[0])
				}
				return err
			}, func(p place) error {
				do := p.Discard
				if apply {
					do = p.Apply
				}
				rows, err := do(ctx, args[0], req)
				return a.decide(before, rows, err)
			})
		}}
	f := cmd.Flags()
	f.BoolVar(&apply, "apply", false, "make the calls")
	f.BoolVar(&discard, "discard", false, "never make them")
	f.StringVar(&req.Uncertain, "uncertain", "", "for a call that may have happened: retry or done")
	f.StringVar(&req.RealID, "real-id", "", "with --uncertain done: the id of what it made")
	_ = cmd.RegisterFlagCompletionFunc("uncertain", cobra.FixedCompletions([]string{"retry", "done"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// undecided counts the proposals that nobody has decided about, or that may have
// happened.
func undecided(rows []*client.Proposal) (n int) {
	for _, p := range rows {
		if p.Status == "proposed" || p.Status == "applying" {
			n++
		}
	}
	return n
}

// decide shows what became of a run's proposals, and says so if nothing did: a person
// who applies what was discarded must not take the list for a success.
func (a *app) decide(before int, rows []*client.Proposal, err error) error {
	if err == nil && before == 0 && len(rows) > 0 && !a.asJSON() {
		fmt.Fprintln(a.Err, "agentd: nothing was left to decide about")
	}
	return a.showProposals(rows, err)
}

func (a *app) showProposals(rows []*client.Proposal, err error) error {
	if err != nil {
		return err
	}
	return list(a, rows, []string{"PROPOSAL", "STATUS", "TOOL", "ARGUMENTS", "RESULT"}, func(p *client.Proposal) []string {
		return []string{p.ID, p.Status, shorten(p.Tool, 60), shorten(string(p.Args), 60), shorten(p.Result, 40)}
	}, "this run proposed nothing")
}
