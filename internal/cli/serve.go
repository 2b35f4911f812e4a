package cli

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"agentd"
)

func (a *app) serveCommand() *cobra.Command {
	var addr, demo string
	var keyless bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve agents over HTTP",
		Long: `Serve the native API (/runs, /sessions, …) and the OpenAI-compatible one (/v1).
Beyond loopback the server listens only when there is an API key (agentd keys
create); from the first key on every request needs one. It is ready when GET /healthz answers 200.
Runs that were under way when the last server ended go on.`,
		Example: `  agentd serve
  agentd serve --addr 127.0.0.1:8080 --data /var/lib/agentd --configs /etc/agentd
  agentd serve --demo "Have a look around"      # run the demo agent once, then stay up`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), addr, demo, keyless) },
	}
	cmd.Flags().StringVar(&addr, "addr", "", "address to listen on (default: agentd.yaml's addr, 127.0.0.1:7070)")
	cmd.Flags().BoolVar(&keyless, "allow-remote-without-keys", false, "listen beyond loopback though nobody needs a key: everybody who reaches the server may do everything")
	cmd.Flags().StringVar(&demo, "demo", "", "run the demo agent once with this directive when the server is up")
	a.dataFlag(cmd)
	a.configsFlag(cmd)
	return cmd
}

func (a *app) serve(ctx context.Context, addr, demo string, keyless bool) error {
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
	if addr == "" {
		addr = settings.Addr
	}
	open := rt.Server
	if keyless {
		open = rt.KeylessServer
	}
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
	if demo == "" {
		fmt.Fprintf(a.Err, "agentd %s listens on %s (data: %s)\n", agentd.Version(), base, agentd.LocationName(data))
	} else {
		go a.demonstrate(ctx, rt, base, agentd.LocationName(data), demo)
	}
	return srv.Serve(ctx, addr)
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
	fmt.Fprintf(a.Err, `
The run is stored; the server stays up. Try next:

  curl -s %[1]s/runs/%[2]s
  curl -sN %[1]s/runs -H 'Content-Type: application/json' -d '{"profile":"demo","input":"Have a look around"}'
  curl -sN %[1]s/v1/chat/completions -H 'Content-Type: application/json' \
    -d '{"model":"demo","stream":true,"messages":[{"role":"user","content":"Have a look around"}]}'

Ctrl-C stops it.
`, base, r.ID)
}
