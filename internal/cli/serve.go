package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"agentd"
)

func (a *app) serveCommand() *cobra.Command {
	var h hosting
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve agents over HTTP",
		Long: `Serve the native API (/runs, /sessions, …) and the OpenAI-compatible one (/v1).
Beyond loopback the server listens only when there is an API key (agentd keys
create); from the first key on every request needs one. It is ready when GET /healthz answers 200.
Runs that were under way when the last server ended go on.
Several servers and workers (agentd worker) may share a PostgreSQL store: requests are
taken and events read at any of them, whoever drives the run.`,
		Example: `  agentd serve
  agentd serve --addr 127.0.0.1:8080 --data /var/lib/agentd --configs /etc/agentd
  agentd serve --demo "Have a look around"      # run the demo agent once, then stay up`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.host(cmd.Context(), h) },
	}
	cmd.Flags().BoolVar(&a.noWorker, "no-worker", false, "take requests and leave it to others on the same PostgreSQL store to drive runs")
	cmd.Flags().StringVar(&h.addr, "addr", "", "address to listen on (default: agentd.yaml's addr, 127.0.0.1:7070)")
	cmd.Flags().BoolVar(&h.keyless, "allow-remote-without-keys", false, "listen beyond loopback though nobody needs a key: everybody who reaches the server may do everything")
	cmd.Flags().StringVar(&h.demo, "demo", "", "run the demo agent once with this directive when the server is up")
	a.dataFlag(cmd)
	a.engineFlag(cmd)
	a.poolsFlag(cmd)
	a.configsFlag(cmd)
	return cmd
}

// hosting is what a process that stays up is to do.
type hosting struct {
	addr, demo      string
	keyless, worker bool
}

func (a *app) host(ctx context.Context, what hosting) error {
	addr, demo := what.addr, what.demo
	level := slog.LevelInfo
	if a.verbose {
		level = slog.LevelDebug
	}
	settings := agentd.ReadSettings(a.configsFolder())
	if !a.verbose && level.UnmarshalText([]byte(settings.Log.Level)) != nil {
		level = slog.LevelInfo
	}
	if demo != "" {
		level = slog.LevelWarn // the demonstration is what people should see
	}
	var handler slog.Handler = slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: level})
	if settings.Log.Format == "json" {
		handler = slog.NewJSONHandler(a.Err, &slog.HandlerOptions{Level: level})
	}
	log := slog.New(handler)
	rt, err := a.open(ctx, log, false)
	if err != nil {
		return err
	}
	defer rt.Close()
	if what.worker {
		if err := alone(rt, "agentd worker"); err != nil {
			return err
		}
	}
	if addr == "" {
		addr = settings.Addr
	}
	open := rt.Server
	switch {
	case what.worker:
		open = rt.WorkerServer
	case what.keyless:
		open = rt.KeylessServer
	}
	defer a.reopening(rt, log)()
	srv, err := open()
	if err != nil {
		return err
	}
	if err := srv.Listen(addr); err != nil {
		return err
	}
	base := srv.URL()
	data, err := a.dataFolder()
	if err != nil {
		return err
	}
	if what.worker {
		what := "drives runs of"
		if pools, drives := rt.Pools(); !drives {
			what = "makes calls of " + strings.Join(pools, ", ") + " for runs of"
		}
		fmt.Fprintf(a.Err, "agentd %s %s %s; %s/healthz says how it is\n", agentd.Version(), what, agentd.LocationName(data), base)
	} else if demo == "" {
		fmt.Fprintf(a.Err, "agentd %s listens on %s (data: %s)\n", agentd.Version(), base, agentd.LocationName(data))
	} else {
		go a.demonstrate(ctx, rt, base, agentd.LocationName(data), demo)
	}
	serving, stop := context.WithCancel(ctx)
	drained := a.draining(serving, rt)
	if what.worker {
		// While it hands over, a worker still says how it is.
		defer context.AfterFunc(ctx, srv.Leave)()
		held, release := context.WithCancel(context.WithoutCancel(ctx))
		go func() {
			drained()
			release()
		}()
		ctx = held
	}
	shedStartup()
	err = srv.Serve(ctx, addr)
	stop()
	drained()
	return err
}

// reopening has log files opened again at SIGHUP, which programs send that move them
// away. Without log files the signal means what it means to every program. The
// function that it returns ends that.
func (a *app) reopening(rt *agentd.Runtime, log *slog.Logger) (end func()) {
	if rt.LogFiles() == 0 {
		return func() {}
	}
	hup, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hup, syscall.SIGHUP)
	go func() {
		defer close(done)
		for range hup {
			if err := rt.ReopenLogs(); err != nil {
				log.Error("a log file can not be opened again", "error", err)
			}
		}
	}()
	return func() {
		signal.Stop(hup)
		close(hup)
		<-done
	}
}

// demonstrate runs the demo agent once, visibly, and says what to try next.
func (a *app) demonstrate(ctx context.Context, rt *agentd.Runtime, base, data, directive string) {
	a.sayScripted()
	fmt.Fprintf(a.Err, "agentd listens on %s (data: %s) and runs the demo agent on this folder:\n\n", base, data)
	p := a.printer()
	p.json = a.json
	r, err := rt.Start(ctx, agentd.StartRequest{Profile: "demo", Input: input(directive)})
	if err == nil {
		err = a.follow(ctx, &local{rt}, following{run: r.ID}, p)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(a.Err, "agentd: the demo run: "+err.Error())
		return
	}
	if ctx.Err() != nil {
		return
	}
	auth := ""
	if required, err := rt.KeysRequired(ctx); err == nil && required {
		auth = ` -H "Authorization: Bearer $` + keyVariable + `"`
		fmt.Fprintf(a.Err, "\nThis server asks for API keys: export %s=KEY first (agentd keys create makes one).\n", keyVariable)
	}
	fmt.Fprintf(a.Err, `
The run is stored; the server stays up. Try next:

  curl -s%[3]s %[1]s/runs/%[2]s
  curl -sN%[3]s %[1]s/runs -H 'Content-Type: application/json' -d '{"profile":"demo","input":"Have a look around"}'
  curl -sN%[3]s %[1]s/v1/chat/completions -H 'Content-Type: application/json' \
    -d '{"model":"demo","stream":true,"messages":[{"role":"user","content":"Have a look around"}]}'

Ctrl-C stops it.
`, base, r.ID, auth)
}
