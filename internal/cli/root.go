package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"agentd"
	"agentd/fault"
	"agentd/message"
)

// Exit codes.
const (
	exitOK        = 0
	exitFailed    = 1
	exitUsage     = 2
	exitPaused    = 3
	exitCancelled = 130
)

// Streams are the outside of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Terminal is whether Out is one.
	Terminal bool
	// Context ends the command; nil for one that signals end.
	Context context.Context
}

// System is the process's own streams.
func System() Streams {
	return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Terminal: isatty.IsTerminal(os.Stdout.Fd())}
}

// exitError carries an exit code without a message.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// app is one invocation.
type app struct {
	Streams
	json    bool
	data    string
	store   string
	configs string
	server  string
	key     string
	// noWorker is for processes that leave runs to others.
	noWorker bool
	// engine says who decides which node drives a run.
	engine string
	// pools is what this node does.
	pools  string
	tenant string
	// manages is for commands that name tenants to a server.
	manages bool
	verbose bool
}

// Main runs the command line and returns the exit code.
func Main(args []string, s Streams) int {
	ctx := s.Context
	if ctx == nil {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
	}
	s.Out, s.Err = &safe{w: s.Out}, &safe{w: s.Err}
	a := &app{Streams: s}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	strict(root)
	err := root.ExecuteContext(ctx)
	var exit *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	}
	a.complain(err)
	if at, e := a.address(); e == nil && at != "" && fault.KindOf(err) == fault.Unauthorized {
		fmt.Fprintln(s.Err, "  This command takes its key from --api-key or $"+keyVariable+".")
	}
	var usage *usageError
	if errors.As(err, &usage) || fault.KindOf(err) == fault.Invalid {
		return exitUsage
	}
	return exitFailed
}

// complain says what was wrong and what to do. Names of functions stay out: they are
// for those who read the code.
func (a *app) complain(err error) {
	text := err.Error()
	var f *fault.Error
	if errors.As(err, &f) && f.Op != "" {
		text = strings.TrimPrefix(text, f.Op+": ")
	}
	fmt.Fprintln(a.Err, "agentd: "+text)
	if hint := fault.HintOf(err); hint != "" {
		fmt.Fprintln(a.Err, "  "+hint)
	}
}

// usageError is a mistake in the command line.
type usageError struct{ error }

// Unwrap gives what is behind it, which may have a hint.
func (e *usageError) Unwrap() error { return e.error }

// strict makes the library's own commands refuse what they do not know.
// They write to where the root does when this is called.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			show := c.Run
			c.Run, c.RunE = nil, func(cmd *cobra.Command, args []string) error {
				if _, rest, err := root.Find(args); err != nil || len(rest) > 0 {
					return &usageError{fmt.Errorf("there is no command %q (agentd --help lists the commands)", strings.Join(args, " "))}
				}
				show(cmd, args)
				return nil
			}
		case "completion":
			c.Args = exactly(0, "a shell: bash, fish, powershell or zsh")
			c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, shell := range c.Commands() {
				shell.Args = exactly(0, "no arguments")
			}
		}
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "agentd",
		Short: "An agent runtime: durable runs, real tools, every common client",
		Long: `agentd runs agents that people can rely on: runs survive kill -9, stop at their
limits, ask before they break things, and show every decision they made.

  agentd run "What does this project do?"     one run in this terminal
  agentd serve                                the server on http://127.0.0.1:7070
  agentd runs ls                              what ran, and how it went
  agentd sim --script FILE                    a model server for tests`,
		SilenceUsage: true, SilenceErrors: true,
		Version: agentd.Version(),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				msg := fmt.Sprintf("there is no command %q", args[0])
				if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
					msg += "; did you mean " + strings.Join(near, " or ") + "?"
				}
				return &usageError{errors.New(msg + " (agentd --help lists the commands)")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	f := root.PersistentFlags()
	f.BoolVar(&a.json, "json", false, "write JSON, one value a line; also where the output is no terminal")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "log more, on standard error")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(a.serveCommand(), a.workerCommand(), a.runCommand(), a.runsCommand(), a.sessionsCommand(), a.interruptsCommand(), a.schedulesCommand(), a.memoryCommand(), a.skillsCommand(), a.budgetsCommand(),
		a.keysCommand(), a.configCommand(), a.doctorCommand(), a.healthCommand(), a.storeCommand(), a.simCommand())
	return root
}

// asJSON is whether output is for programs.
func (a *app) asJSON() bool { return a.json || !a.Terminal }

func (a *app) dataFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.store, "store", "", "PostgreSQL database instead of a folder: postgres://USER@HOST/DATABASE, the password in PGPASSWORD or a passfile (default: $"+storeVariable+", agentd.yaml's store)")
	cmd.Flags().StringVar(&a.data, "data", "", "folder of the store, or :memory: to keep nothing (default: the user's data folder)")
}

func (a *app) engineFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.engine, "engine", "", "who decides which node of a PostgreSQL store drives a run: store, or temporal://HOST:PORT/NAMESPACE (default: agentd.yaml's cluster.engine)")
}

func (a *app) poolsFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.pools, "pools", "", "what this node of a PostgreSQL store does, between commas: run, model, tool, model.NAME, tool.NAME (default: agentd.yaml's cluster.pools, else everything)")
}

func (a *app) configsFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.configs, "configs", "", "folder with agents/, mcp/ and agentd.yaml (default: ./configs if it has agents/, else the built-in ones)")
	_ = cmd.MarkFlagDirname("configs")
}

// exactly takes n arguments, and says what they are if they are not there.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return &usageError{fmt.Errorf("%s takes %s (agentd %s --help)", cmd.CommandPath(), what, strings.TrimPrefix(cmd.CommandPath(), "agentd "))}
	}
}

func (a *app) logger() *slog.Logger {
	level := slog.LevelWarn
	if a.verbose {
		level = slog.LevelDebug
	}
	return a.logAt(level)
}

// besides is the logger of commands that show a run. People who look at that are
// told of failed calls and missing servers by the run itself, and need no line of
// the log in the middle of its text.
func (a *app) besides() *slog.Logger {
	if a.Terminal && !a.verbose {
		return a.logAt(slog.LevelError)
	}
	return a.logger()
}

func (a *app) logAt(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: level}))
}

// configsFolder is the folder that was named, else ./configs if it is one of
// ours, else "" for the embedded defaults.
func (a *app) configsFolder() string {
	if a.configs != "" {
		return a.configs
	}
	if info, err := os.Stat("configs/agents"); err == nil && info.IsDir() {
		return "configs"
	}
	return ""
}

// dataFolder is the folder or the database that was named, else the environment's,
// else agentd.yaml's, else the user's folder.
func (a *app) dataFolder() (string, error) {
	switch env := os.Getenv(storeVariable); {
	case a.store != "" && a.data != "":
		return "", &usageError{errors.New("give --data or --store, not both")}
	case a.store != "":
		return a.store, checkLocation("--store", a.store, agentd.HasPassword(a.store))
	case a.data != "":
		return a.data, nil
	case env != "":
		return env, checkLocation("$"+storeVariable, env, false)
	}
	settings := agentd.ReadSettings(a.configsFolder())
	if url := settings.Store.Reveal(); url != "" {
		return url, checkLocation("agentd.yaml's store", url, false)
	}
	if settings.Data != "" {
		return settings.Data, nil
	}
	return agentd.DataFolder()
}

// storeVariable names the database where no flag does; unlike a flag it is not shown to
// everybody on the machine, and may have the password in it.
const storeVariable = "AGENTD_STORE"

// checkLocation refuses what is no database, and passwords where everybody sees them.
func checkLocation(what, url string, seen bool) error {
	if !agentd.IsDatabase(url) {
		return &usageError{fmt.Errorf("%s is not the URL of a PostgreSQL database: write postgres://USER@HOST:PORT/DATABASE", what)}
	}
	if seen {
		return &usageError{fmt.Errorf("%s has a password in it, which every user of this machine can read: put it into PGPASSWORD, a passfile (PGPASSFILE, ~/.pgpass), or the whole URL into %s", what, storeVariable)}
	}
	return nil
}

// open opens the runtime that the flags describe.
func (a *app) open(ctx context.Context, log *slog.Logger, dormant bool) (*agentd.Runtime, error) {
	data, err := a.dataFolder()
	if err != nil {
		return nil, err
	}
	return agentd.Open(ctx, agentd.Config{Configs: a.configsFolder(), Data: data, Log: log, Dormant: dormant, NoWorker: a.noWorker, Engine: a.engine, Pools: a.pools})
}

func input(s string) []message.Block { return agentd.Text(s) }
