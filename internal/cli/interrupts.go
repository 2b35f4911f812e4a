package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentd/client"
	"agentd/fault"
)

func (a *app) interruptsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "interrupts", Short: "Look at what waits for a person, and answer it",
		Long: `Look at what waits for a person (approvals, questions, calls that may have
happened), and answer it: on a server (--server), or in a data folder (--data).`,
		Args: exactly(0, "a command: ls, show or answer"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	a.placeFlags(cmd)
	var all bool
	var limit int
	ls := &cobra.Command{Use: "ls", Short: "List open interrupts, oldest first", Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return &usageError{errors.New("--limit must not be negative")}
			}
			status := "open"
			if all {
				status = ""
			}
			return a.at(cmd.Context(), look, func(p place) error { return a.listInterrupts(cmd.Context(), p, status, limit) })
		}}
	ls.Flags().BoolVarP(&all, "all", "a", false, "list answered and cancelled ones too")
	ls.Flags().IntVarP(&limit, "limit", "n", 50, "how many; 0 for all")
	show := &cobra.Command{Use: "show INTERRUPT", Short: "Show an interrupt", Args: exactly(1, "the id of an interrupt"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd.Context(), look, func(p place) error { return a.showInterrupt(cmd.Context(), p, args[0]) })
		}}
	cmd.AddCommand(ls, show, a.interruptsAnswer())
	return cmd
}

func (a *app) listInterrupts(ctx context.Context, p interrupts, status string, limit int) error {
	rows, more, err := everything(limit, func(cursor string, limit int) ([]*client.Interrupt, string, error) {
		return p.Interrupts(ctx, status, cursor, limit)
	})
	if err != nil {
		return err
	}
	defer a.tellMore(more, "interrupts")
	return list(a, rows, []string{"INTERRUPT", "KIND", "STATUS", "CREATED", "EXPIRES", "PROMPT"}, func(i *client.Interrupt) []string {
		expires := "never"
		if i.ExpiresAt != "" {
			expires = second(i.ExpiresAt)
		}
		return []string{i.ID, i.Kind, i.Status, second(i.CreatedAt), expires, asked(i)}
	}, "nothing waits for a person")
}

// asked is what is to be decided about, on a line. Of approvals that is the call, and why
// it is asked about: what else the prompts of several say is often the same.
func asked(i *client.Interrupt) string {
	if i.Kind == "approval" && i.ToolCall != nil && i.ToolCall.Name != raiseBudget {
		call := shorten("May it run? "+i.ToolCall.Name+" "+string(i.ToolCall.Args), 100)
		if why, ok := strings.CutPrefix(i.Prompt, "May "+i.ToolCall.Name+" run? "); ok {
			call += " " + shorten(why, 80)
		}
		return call
	}
	return shorten(i.Prompt, 100)
}

func (a *app) showInterrupt(ctx context.Context, p interrupts, id string) error {
	i, err := p.Interrupt(ctx, id)
	if err != nil {
		return err
	}
	if a.asJSON() {
		return a.value(i)
	}
	call := ""
	if i.ToolCall != nil {
		call = shorten(i.ToolCall.Name, 100) + " " + shorten(string(i.ToolCall.Args), 1000)
	}
	err = facts(a.Out, "interrupt", i.ID, "run", i.RunID, "session", i.SessionID, "kind", i.Kind, "status", i.Status,
		"created", second(i.CreatedAt), "expires", second(i.ExpiresAt), "answered", second(i.AnsweredAt), "prompt", shorten(i.Prompt, 1000),
		"call", call, "schema", shorten(string(i.Schema), 1000), "decision", i.Decision, "answered by", i.AnsweredBy, "answer", shorten(string(i.Answer), 1000),
		"reason", shorten(i.Reason, 1000))
	if err == nil && i.Status == "open" {
		_, err = fmt.Fprintf(a.Out, "\nAnswer it with:\n  agentd interrupts answer %s %s%s\n", i.ID, answers(i), a.where())
		if s := amends(i); s != "" {
			fmt.Fprintf(a.Out, "  %s\n", s)
		}
	}
	return err
}

// decisions lists what --decision takes.
func decisions() []string { return []string{"approve", "reject", "answer", "retry", "skip", "done"} }

func (a *app) interruptsAnswer() *cobra.Command {
	var req client.AnswerRequest
	var answer, args string
	var follow bool
	cmd := &cobra.Command{
		Use:   "answer INTERRUPT",
		Short: "Answer an interrupt; its run goes on",
		Long: `Answer an interrupt; its run goes on.

On a server the run goes on there; --follow shows it. In a data folder that no
server uses it goes on here, is shown, and the command ends like agentd run: 0
completed, 1 failed, 3 waiting again, 130 cancelled.`,
		Example: `  agentd interrupts answer run_….i1 --decision approve
  agentd interrupts answer run_….i1 --decision approve --args '{"path": "notes.txt"}'
  agentd interrupts answer run_….i1 --decision reject --reason "not on a Friday"
  agentd interrupts answer run_….i1 --answer "the blue one"`,
		Args: exactly(1, "the id of an interrupt"),
		RunE: func(cmd *cobra.Command, ids []string) error {
			req.Interrupt = ids[0]
			if err := fill(&req, cmd.Flags().Changed("answer"), answer, args); err != nil {
				return err
			}
			return a.answer(cmd.Context(), req, follow)
		},
	}
	f := cmd.Flags()
	f.StringVar(&req.Decision, "decision", "", "approve or reject; for a call that may have happened retry, skip or done")
	f.StringVar(&answer, "answer", "", "the answer to a question")
	f.StringVar(&args, "args", "", "other arguments for an approved call: a JSON object")
	f.StringVar(&req.Reason, "reason", "", "why; the model reads it")
	f.StringVar(&req.SessionMode, "mode", "", "with the approval of a plan: the mode that the session has from then on, such as edit")
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(sessionModes(), cobra.ShellCompDirectiveNoFileComp))
	f.BoolVar(&req.Remember, "remember", false, "with approve: allow calls like this one for the rest of the session (agentd sessions rules lists them)")
	f.BoolVarP(&follow, "follow", "f", false, "with --server: show how the run goes on")
	_ = cmd.RegisterFlagCompletionFunc("decision", cobra.FixedCompletions(decisions(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// fill puts the flags into a request and checks what can be checked here.
func fill(req *client.AnswerRequest, answered bool, answer, args string) error {
	switch {
	case req.Decision == "" && !answered:
		return &usageError{errors.New("give --decision, or --answer for a question")}
	case req.Decision != "" && !slices.Contains(decisions(), req.Decision):
		return &usageError{fmt.Errorf("--decision %s: use %s", req.Decision, strings.Join(decisions(), ", "))}
	}
	if args != "" {
		if !json.Valid([]byte(args)) || !bytes.HasPrefix(bytes.TrimSpace([]byte(args)), []byte("{")) {
			return &usageError{errors.New("--args is not a JSON object")}
		}
		req.Args = json.RawMessage(args)
	}
	if answered {
		var err error
		if req.Answer, err = json.Marshal(answer); err != nil {
			return &usageError{err}
		}
	}
	return nil
}

// outcome says how an interrupt ended.
func outcome(i *client.Interrupt) string {
	s := i.Status
	if i.Decision != "" {
		s += ", " + i.Decision
	}
	if i.AnsweredBy != "" {
		s += " by " + i.AnsweredBy
	}
	if i.AnsweredAt != "" {
		s += " at " + second(i.AnsweredAt)
	}
	if i.Reason != "" {
		s += " (" + shorten(i.Reason, 200) + ")"
	}
	return s
}

// answer answers on the server, or in the data folder and goes on with the run.
func (a *app) answer(ctx context.Context, req client.AnswerRequest, follow bool) error {
	return a.change(ctx, tend, func(p place) error {
		i, err := p.Interrupt(ctx, req.Interrupt)
		if err == nil && i.Status != "open" {
			err = &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("interrupt %s is no longer open: it is %s", i.ID, outcome(i)),
				Hint: "An interrupt can be answered once."}
		}
		if l, here := p.(*local); here && err == nil {
			err = l.knows(ctx, i.RunID)
		}
		return err
	}, func(p place) error {
		_, here := p.(*local)
		f := following{letGo: !here, asked: true}
		if here || follow {
			var err error
			if f.run, f.after, err = root(ctx, p, req.Interrupt); err != nil {
				return err
			}
		}
		i, err := p.Answer(ctx, req)
		if err != nil {
			return err
		}
		if f.run != "" {
			return a.follow(ctx, p, f, a.printer())
		}
		if a.asJSON() {
			return a.value(i)
		}
		_, err = fmt.Fprintf(a.Out, "interrupt %s is answered (%s); run %s goes on\n", i.ID, i.Decision, i.RunID)
		return err
	})
}

// root gives the run at the top of an interrupt's tree and its last event so far.
func root(ctx context.Context, p place, interrupt string) (run string, last int64, err error) {
	i, err := p.Interrupt(ctx, interrupt)
	if err != nil {
		return "", 0, err
	}
	r, err := p.Run(ctx, i.RunID)
	if err != nil {
		return "", 0, err
	}
	for ev, err := range p.Replay(ctx, r.RootID, 0) {
		if err != nil {
			return "", 0, err
		}
		last = ev.Seq
	}
	return r.RootID, last, nil
}
