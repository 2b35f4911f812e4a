package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"agentd"
	"agentd/client"
	"agentd/event"
	"agentd/fault"
)

func (a *app) runCommand() *cobra.Command {
	var profile, session string
	var context, modes []string
	cmd := &cobra.Command{
		Use:   "run [flags] DIRECTIVE",
		Short: "Run an agent once, here, and show what it does",
		Long: `Run an agent once in this process, streamed to the terminal. The run is stored:
after a crash "agentd runs resume" or a server on the same data folder goes on with
it, and so does the next run in its session.

DIRECTIVE is what to do; "-" reads it from standard input.`,
		Example: `  agentd run "What does this project do?"
  agentd run --profile demo "Have a look around"
  agentd run --mode autonomous --json "Update the changelog" | jq -r .type`,
		Args: exactly(1, "one directive, in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			directive := args[0]
			if directive == "-" {
				b, err := io.ReadAll(a.In)
				if err != nil {
					return err
				}
				directive = string(b)
			}
			if strings.TrimSpace(directive) == "" {
				return &usageError{errors.New("the directive is empty: say what to do")}
			}
			about, err := contextFlags(context)
			if err != nil {
				return err
			}
			req := agentd.StartRequest{Profile: profile, SessionID: session, Input: input(directive)}
			for _, b := range about {
				req.ContextBlocks = append(req.ContextBlocks, agentd.ContextBlock(b))
			}
			for _, mode := range modes {
				// They have no name in common: --mode says which is meant.
				of := &req.SessionMode
				switch {
				case slices.Contains(sessionModes(), mode):
				case slices.Contains(runModes(), mode):
					of = &req.Mode
				default:
					return &usageError{fmt.Errorf("--mode %s is no mode: use %s of the run, and %s of the session", printable(mode), strings.Join(runModes(), " or "), strings.Join(sessionModes(), ", "))}
				}
				if *of != "" && *of != mode {
					return &usageError{fmt.Errorf("--mode %s and --mode %s exclude each other", *of, mode)}
				}
				*of = mode
			}
			return a.runOnce(cmd.Context(), req)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&profile, "profile", "p", "", "the agent (default: the configured one, or the demo without an API key)")
	f.StringVarP(&session, "session", "s", "", "continue this session")
	f.StringSliceVar(&modes, "mode", nil, "interactive (default) or autonomous: nobody will be asked; and the mode of the session from now on: ask, plan or edit")
	contextFlag(cmd, &context)
	_ = cmd.RegisterFlagCompletionFunc("profile", a.completeProfiles)
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(append(runModes(), sessionModes()...), cobra.ShellCompDirectiveNoFileComp))
	a.dataFlag(cmd)
	a.configsFlag(cmd)
	return cmd
}

// runOnce runs an agent in this process.
func (a *app) runOnce(ctx context.Context, req agentd.StartRequest) error {
	// Dormant: what others left is theirs, or a server's.
	rt, err := a.open(ctx, a.besides(), true)
	if err != nil {
		return err
	}
	defer rt.Close()
	scripted := false
	if req.Profile == "" {
		req.Profile, scripted = rt.DefaultProfile()
	}
	r, err := rt.Start(ctx, req)
	var f *fault.Error
	if errors.As(err, &f) && f.Kind == fault.NotFound && f.Field == "profile" {
		return &usageError{err}
	}
	if err != nil {
		return err
	}
	a.tellUnfinished(ctx, rt, r.ID)
	if scripted {
		a.sayScripted()
	}
	quiet := a.tellWaiting(rt)
	defer quiet()
	return a.follow(ctx, &local{rt}, following{run: r.ID, begun: quiet}, a.printer())
}

// patience is how long nothing happens before people are told why.
const patience = time.Second

// tellWaiting tells which MCP servers a run waits for, if it does so for long.
// The function that it returns ends that.
func (a *app) tellWaiting(rt *agentd.Runtime) (quiet func()) {
	told := make(chan struct{})
	t := time.AfterFunc(patience, func() {
		defer close(told)
		for _, name := range rt.Connecting() {
			fmt.Fprintln(a.Err, "agentd: waiting for MCP server "+name)
		}
	})
	return sync.OnceFunc(func() {
		if !t.Stop() {
			<-told // one writes at a time
		}
	})
}

// sayScripted tells that no model answers. It goes where people look: standard
// error, so that --json stays clean.
func (a *app) sayScripted() {
	fmt.Fprintln(a.Err, "agentd: no model is configured, so a script plays the model (its tools are real). Set ANTHROPIC_API_KEY or OPENAI_API_KEY for a real one.")
}

// following says which run is followed, and how.
type following struct {
	run string
	// after is the number of the last event that was shown before.
	after int64
	// asked is whether the run may wait for a person already.
	asked bool
	// letGo leaves the run alone when the command is ended; else it is cancelled.
	letGo bool
	// begun is called when the first event is there; nil: nobody cares.
	begun func()
}

// follow shows a run until it ends or waits for a person.
func (a *app) follow(ctx context.Context, w runs, f following, p *printer) error {
	watch := ctx
	if !f.letGo {
		var stop context.CancelFunc
		watch, stop = context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		told := make(chan struct{})
		cancelled := context.AfterFunc(ctx, func() {
			defer close(told)
			// Once the run's end is shown, nobody cares what became of the request.
			if _, err := w.Cancel(watch, f.run, "cancelled at the terminal"); err != nil && fault.KindOf(err) != fault.Conflict && watch.Err() == nil {
				fmt.Fprintln(a.Err, "agentd: "+err.Error())
				stop()
			}
		})
		defer func() {
			if stop(); !cancelled() {
				<-told
			}
		}()
	}
	for ev, err := range w.Watch(watch, f.run, f.after) {
		if errors.Is(err, context.Canceled) {
			return &exitError{exitCancelled}
		}
		if err != nil {
			return err
		}
		if f.begun != nil {
			f.begun()
		}
		p.event(ev)
		if ev.Type.Terminal() && p.proposed > 0 {
			fmt.Fprintf(a.Err, "agentd: %s for a person to decide about:\n  agentd runs proposals %s%s\n", wait(p.proposed, "proposal"), f.run, a.where())
		}
		switch ev.Type {
		case event.RunFailed:
			return &exitError{exitFailed}
		case event.RunCancelled:
			return &exitError{exitCancelled}
		case event.CheckpointRequired:
			f.asked = true
		}
		if !f.asked || ev.Type.Terminal() {
			continue
		}
		if r, err := w.Run(watch, f.run); err == nil && r.Status == client.Paused {
			// It may have paused further on than what was shown.
			for ev, err := range w.Replay(watch, f.run, ev.Seq) {
				if err != nil {
					return err
				}
				p.event(ev)
			}
			p.paused(r, a.where())
			return &exitError{exitPaused}
		}
	}
	return nil
}

// printer shows events.
type printer struct {
	out, err io.Writer
	json     bool
	color    bool
	// midLine is whether the last text did not end its line.
	midLine  bool
	thinking bool
	// proposed counts the calls that were recorded for a person to decide about.
	proposed int
}

func (a *app) printer() *printer {
	return &printer{out: a.Out, err: a.Err, json: a.asJSON(), color: a.Terminal}
}

func (p *printer) event(ev event.Event) {
	if p.json {
		b, err := ev.MarshalJSON()
		if err == nil {
			fmt.Fprintf(p.out, "%s\n", escaped(b))
		}
		return
	}
	switch d := ev.Data.(type) {
	case *event.Started:
		p.warn(d.Warnings)
	case *event.Resumed:
		p.warn(d.Warnings)
	case *event.Delta:
		if ev.Type == event.ThinkingDelta {
			p.write(p.dim(printable(d.Text)))
			p.midLine = !strings.HasSuffix(d.Text, "\n")
			p.thinking = true
			return
		}
		if p.thinking {
			p.thinking = false
			p.endLine()
		}
		p.write(printable(d.Text))
		p.midLine = !strings.HasSuffix(d.Text, "\n")
	case *event.Tool:
		p.tool(ev.Type, d)
	case *event.Checkpoint:
		if ev.Type == event.CheckpointRequired {
			p.line(p.bold("? ") + printable(d.Prompt))
			if c := d.ToolCall; c != nil && d.Kind != "question" {
				// What is to be decided about, not only that something is.
				p.line("  " + shorten(c.Name, 100) + " " + shorten(string(c.Args), 1000))
			}
		} else if ev.Type == event.CheckpointInfo && d.Prompt != "" {
			p.line(p.dim("… " + printable(d.Prompt)))
		}
	case *event.Retry:
		then := fmt.Sprintf("trying again in %v", time.Duration(d.DelayMS)*time.Millisecond)
		if ev.Type == event.ModelFallback {
			then = "going on with " + d.Model
		}
		p.line(p.dim("… " + shorten(d.Message, 300) + "; " + then))
	case *event.Compaction:
		p.line(p.dim("… " + compacted(d)))
	case *event.Ended:
		p.ended(ev.Type, d)
	}
}

func (p *printer) warn(warnings []string) {
	for _, w := range warnings {
		p.line(p.dim("! " + printable(w)))
	}
}

func (p *printer) tool(t event.Type, d *event.Tool) {
	name := shorten(d.Name, 100) // a model may call things that do not exist
	switch t {
	case event.ToolStarted:
		p.line(p.dim("→ "+name+" ") + p.dim(shorten(string(d.Args), 120)))
	case event.ToolCompleted:
		if d.Decision == "captured" {
			p.proposed++
			p.line(p.dim("✎ " + name + ": not made, but proposed, as nobody is there to approve it"))
			return
		}
		if d.Decision == "cached" {
			p.line(p.dim("✓ " + name + ", not called again, as before: " + outline(d.Result)))
			return
		}
		p.line(p.dim(fmt.Sprintf("✓ %s, %d ms: %s", name, d.DurationMS, outline(d.Result))))
	case event.ToolFailed:
		p.line(fmt.Sprintf("✗ %s: %s", name, shorten(d.Result, 300)))
	case event.ToolStdout, event.ToolStderr:
		p.write(p.dim(printable(d.Text)))
		p.midLine = !strings.HasSuffix(d.Text, "\n")
	case event.ToolProgress:
		if d.Text != "" {
			p.line(p.dim("  " + printable(d.Text)))
		}
	}
}

func (p *printer) ended(t event.Type, d *event.Ended) {
	p.endLine()
	tokens := ""
	if u := d.Usage; u != nil && u.TotalTokens > 0 {
		tokens = fmt.Sprintf(", %d tokens", u.TotalTokens)
		if u.Cost.Total > 0 {
			tokens += ", $" + u.Cost.Total.String()
		}
	}
	what := map[event.Type]string{event.RunCompleted: "completed", event.RunFailed: "failed", event.RunCancelled: "cancelled"}[t]
	if d.StopReason != "stop" && d.StopReason != "" && d.StopReason != what {
		what += " (" + d.StopReason + ")"
	}
	p.line(p.dim(fmt.Sprintf("%s after %s, %s%s", what, count(d.Steps, "step"), count(d.ToolCalls, "tool call"), tokens)))
	if d.Error != nil {
		// On one line: what a provider says must not look like agentd's own words.
		p.line("agentd: " + shorten(d.Error.Message, 2000))
		if d.Error.Hint != "" {
			p.line("  " + shorten(d.Error.Hint, 1000))
		}
	}
}

// paused tells how a paused run is answered; where leads to the same place.
func (p *printer) paused(r *client.Run, where string) {
	p.endLine()
	for _, i := range r.Interrupts {
		fmt.Fprintf(p.err, "agentd: run %s waits for a person. Answer with:\n  agentd interrupts answer %s %s%s\n", r.ID, i.ID, answers(i), where)
	}
}

// answers is how an interrupt can be answered.
func answers(i *client.Interrupt) string {
	switch i.Kind {
	case "question":
		var form struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(i.Schema, &form) == nil && form.Type == "object" {
			return `--answer '{"…": …}'`
		}
		return `--answer "…"`
	case "uncertain":
		return "--decision retry|skip|done"
	}
	return "--decision approve|reject"
}

// raiseBudget is the name of the call by which a run asks for more of a limit.
const raiseBudget = "raise_budget"

// amends says what an approval can be given besides; "" for other interrupts.
func amends(i *client.Interrupt) string {
	switch {
	case i.Kind == "plan":
		return `With approve, --mode edit switches the session to mode edit; --args '{"plan": "…"}' changes the plan; --reason says why.`
	case i.Kind != "approval":
		return ""
	case i.ToolCall != nil && i.ToolCall.Name == raiseBudget:
		return `With approve, --args '{"raise_by": …}' gives another amount; --reason says why.`
	}
	return "With approve, --args '{…}' changes the arguments and --remember allows such calls for the rest of the session; --reason says why."
}

func (p *printer) write(s string) { fmt.Fprint(p.out, s) }

func (p *printer) endLine() {
	if p.midLine {
		fmt.Fprintln(p.out)
		p.midLine = false
	}
}

func (p *printer) line(s string) {
	p.endLine()
	fmt.Fprintln(p.out, s)
}

func (p *printer) dim(s string) string  { return p.style("2", s) }
func (p *printer) bold(s string) string { return p.style("1", s) }

func (p *printer) style(code, s string) string {
	if !p.color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// shorten cuts a text to n runes on one line.
func shorten(s string, n int) string {
	s = printable(strings.Join(strings.Fields(s), " "))
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// outline is the first line of a result and how much there is.
func outline(s string) string {
	s = strings.TrimSpace(s)
	lines := strings.Count(s, "\n") + 1
	first, _, _ := strings.Cut(s, "\n")
	if lines > 1 {
		return fmt.Sprintf("%s … (%d lines)", shorten(first, 80), lines)
	}
	return shorten(first, 100)
}
