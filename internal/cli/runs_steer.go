package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"agentd/client"
	"agentd/fault"
	"agentd/message"
)

// sayer is who can say something to a run under way.
type sayer interface {
	Steer(ctx context.Context, id string, input []message.Block, about ...client.ContextBlock) error
	FollowUp(ctx context.Context, id string, input []message.Block, about ...client.ContextBlock) error
}

// Steer implements sayer.
func (l *local) Steer(_ context.Context, id string, _ []message.Block, _ ...client.ContextBlock) error {
	return notHere(id)
}

// FollowUp implements sayer.
func (l *local) FollowUp(_ context.Context, id string, _ []message.Block, _ ...client.ContextBlock) error {
	return notHere(id)
}

// notHere: this process drives no run that could read what is said.
func notHere(id string) error {
	return &fault.Error{Kind: fault.Unsupported, Err: fmt.Errorf("run %s is not driven by this process, and a data folder has nobody to read what is said to it", id),
		Hint: "Say it to the server that drives the run: --server URL. Or start a run in its session: agentd run --session."}
}

func (a *app) runsSteer() *cobra.Command {
	var context []string
	var later bool
	cmd := &cobra.Command{Use: "steer RUN MESSAGE", Short: "Say something to a run under way",
		Long: `Say something to a run under way, on a server. The model reads it before its next
call, after the tools that run; with --follow-up when it would otherwise end.
MESSAGE "-" is read from standard input.`,
		Example: `  agentd runs steer run_01… "Leave the tests alone." --server http://127.0.0.1:7070
  agentd runs steer run_01… "Now these." --follow-up --context tree=@files.txt`,
		Args: exactly(2, "the id of a run and a message, in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			words := args[1]
			if words == "-" {
				b, err := io.ReadAll(a.In)
				if err != nil {
					return err
				}
				words = string(b)
			}
			if strings.TrimSpace(words) == "" {
				return &usageError{errors.New("the message is empty")}
			}
			about, err := contextFlags(context)
			if err != nil {
				return err
			}
			return a.at(cmd.Context(), look, func(p place) error {
				say := p.Steer
				if later {
					say = p.FollowUp
				}
				if err := say(cmd.Context(), args[0], input(words), about...); err != nil {
					return err
				}
				if a.asJSON() {
					return a.value(map[string]string{"run_id": args[0], "status": "accepted"})
				}
				_, err := fmt.Fprintf(a.Out, "run %s will read it\n", args[0])
				return err
			})
		}}
	cmd.Flags().BoolVar(&later, "follow-up", false, "when the run would otherwise end")
	contextFlag(cmd, &context)
	return cmd
}

// contextFlag is the flag for what goes with a message.
func contextFlag(cmd *cobra.Command, values *[]string) {
	cmd.Flags().StringArrayVar(values, "context", nil, "what else the model is to know, as KIND=TEXT or KIND=@FILE; KIND= says that what was told no longer holds; may be repeated")
}

// contextFlags reads what goes with a message.
func contextFlags(values []string) (out []client.ContextBlock, err error) {
	for _, v := range values {
		kind, text, ok := strings.Cut(v, "=")
		if !ok || kind == "" {
			return nil, &usageError{fmt.Errorf("--context %s: write KIND=TEXT or KIND=@FILE", v)}
		}
		if name, file := strings.CutPrefix(text, "@"); file {
			b, err := os.ReadFile(name)
			if err != nil {
				return nil, &usageError{fmt.Errorf("--context %s: %w", kind, err)}
			}
			text = string(b)
		}
		out = append(out, client.ContextBlock{Kind: kind, Text: text})
	}
	return out, nil
}
