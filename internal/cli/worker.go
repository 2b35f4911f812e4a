package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"agentd"
	"agentd/fault"
)

func (a *app) workerCommand() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Drive runs of a shared PostgreSQL store, without an API",
		Long: `Drive runs that are started at servers on the same PostgreSQL store (agentd serve).
Any number of workers and servers share a store; a run has one of them at a time, and
another one goes on with it within seconds when that dies. GET /healthz, GET
/readyz and GET /metrics answer on an address of the worker's own.
With --pools it makes calls of models and tools for the runs of others: those that it
serves. It drives runs itself only if run is among them.
When it is told to stop it takes up nothing more, finishes calls under way
(cluster.drain_timeout) and hands over the rest.`,
		Example: `  agentd worker --store postgres://agentd@db.example.com/agentd --addr 127.0.0.1:7071
  agentd worker --store postgres://agentd@db.example.com/agentd --pools model,tool.gpu`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.host(cmd.Context(), hosting{addr: addr, worker: true})
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:0", "address for /healthz, /readyz and /metrics")
	a.dataFlag(cmd)
	a.engineFlag(cmd)
	a.poolsFlag(cmd)
	a.configsFlag(cmd)
	return cmd
}

// alone refuses what makes sense among several nodes alone.
func alone(rt *agentd.Runtime, what string) error {
	if rt.Shared() {
		return nil
	}
	return &fault.Error{Kind: fault.Invalid, Err: errors.New(what + " needs a store that several processes share, and this one is a file"),
		Hint: "Name a PostgreSQL database: --store postgres://…"}
}

// draining hands over what a process drives as soon as ctx ends, and gives what waits
// for that.
func (a *app) draining(ctx context.Context, rt *agentd.Runtime) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-ctx.Done()
		if !rt.Shared() {
			return
		}
		began := time.Now()
		if err := rt.Drain(context.WithoutCancel(ctx)); err != nil {
			fmt.Fprintln(a.Err, "agentd: "+err.Error())
		} else if d := time.Since(began); d > time.Second {
			fmt.Fprintf(a.Err, "agentd: finished what was under way in %s; others go on\n", d.Round(100*time.Millisecond))
		}
	}()
	return func() { <-done }
}
