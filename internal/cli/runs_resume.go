package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentd"
	"agentd/client"
	"agentd/fault"
)

func (a *app) runsResume() *cobra.Command {
	return &cobra.Command{Use: "resume [RUN…]", Short: "Go on with runs that another process left unfinished",
		Long: `Go on, in this process, with runs of the data folder that a process left when it
ended or was killed: with those that are named, or with all. A run that waits for a
person goes on waiting. A server goes on with its runs by itself.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if address, err := a.address(); err != nil || address != "" {
				return errors.Join(err, &usageError{errors.New("a server goes on with its runs by itself; use --data")})
			}
			return a.resume(cmd.Context(), args)
		}}
}

func (a *app) resume(ctx context.Context, ids []string) error {
	return a.change(ctx, tend, func(p place) error {
		for _, id := range ids {
			if r, err := p.Run(ctx, id); err != nil {
				return err
			} else if r.Ended() {
				return &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("run %s has ended: %s", id, r.Status)}
			}
			if l, here := p.(*local); here {
				if err := l.knows(ctx, id); err != nil {
					return err
				}
			}
		}
		return nil
	}, func(p place) error {
		l, ok := p.(*local)
		if !ok {
			return errors.New("runs are resumed in a data folder")
		}
		var worst error
		if len(ids) == 0 {
			all, err := l.rt.Unfinished(ctx)
			if err != nil {
				return err
			}
			// Those below another one go on with it.
			for _, r := range all {
				if strings.Contains(r.ID, ".") {
					continue
				}
				if err := l.knows(ctx, r.ID); err != nil {
					a.complain(err)
					worst = &exitError{exitFailed}
					continue
				}
				ids = append(ids, r.ID)
			}
		}
		for _, id := range ids {
			if err := l.rt.Resume(ctx, id); err != nil {
				return err
			}
		}
		for _, id := range ids {
			if err := a.resumed(ctx, l, id); err != nil {
				worst = err
			}
		}
		if len(ids) == 0 && worst == nil && !a.asJSON() {
			fmt.Fprintln(a.Out, "no runs are unfinished")
		}
		return worst
	})
}

// resumed shows how a run goes on until it ends or waits for a person.
func (a *app) resumed(ctx context.Context, l *local, id string) error {
	r, err := l.Run(ctx, id)
	if err != nil {
		return err
	}
	f := following{run: id, letGo: true, asked: r.Status == client.Paused}
	if f.asked {
		a.printer().paused(r, a.where())
		return &exitError{exitPaused}
	}
	for ev, err := range l.Replay(ctx, id, 0) {
		if err != nil {
			return err
		}
		if ev.Type.Terminal() {
			break // it ended meanwhile: follow shows that
		}
		f.after = ev.Seq
	}
	if !a.asJSON() {
		fmt.Fprintln(a.Err, "agentd: going on with run "+id)
	}
	return a.follow(ctx, l, f, a.printer())
}

// tellUnfinished says what an earlier process left, which a command does not take
// over by itself: it would pay for it and leave it again.
func (a *app) tellUnfinished(ctx context.Context, rt *agentd.Runtime, own string) {
	all, err := rt.Unfinished(ctx)
	if err != nil {
		return
	}
	n := 0
	for _, r := range all {
		if r.Status == client.Running && r.ID != own && !strings.Contains(r.ID, ".") {
			n++
		}
	}
	if n > 0 {
		fmt.Fprintf(a.Err, "agentd: %d of the runs here were left unfinished; `agentd runs resume%s` or a server goes on with them\n", n, a.where())
	}
}
