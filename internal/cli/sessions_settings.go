package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentd/client"
)

// runModes are the modes of a run.
func runModes() []string { return []string{"interactive", "autonomous"} }

// sessionModes are the modes of a session.
func sessionModes() []string { return []string{"ask", "plan", "edit"} }

// notEdit is a mode as people are shown it: the usual one is not worth a line.
func notEdit(mode string) string {
	if mode == "edit" {
		return ""
	}
	return mode
}

// settingsOf are the settings of a session, by the entries on its path.
func settingsOf(path []*client.Entry) (s client.Settings) {
	for _, e := range path {
		var b struct{ Provider, Model, Mode, Level string }
		if json.Unmarshal(e.Data, &b) != nil {
			continue
		}
		switch e.Kind {
		case "model_change":
			if s.Model = b.Model; b.Provider != "" {
				s.Model = b.Provider + "/" + b.Model
			}
		case "mode_change":
			s.Mode = b.Mode
		case "thinking_change":
			s.Thinking = b.Level
		}
	}
	return s
}

// setting is a command that changes a setting of a session.
func (a *app) setting(cmd *cobra.Command, what string, request func(value string) client.AppendRequest) *cobra.Command {
	cmd.Args = exactly(2, "the id of a session and its "+what)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		return a.change(ctx, tend, func(p place) error {
			_, err := p.Session(ctx, args[0])
			return err
		}, func(p place) error {
			e, err := p.Append(ctx, args[0], request(args[1]))
			if err != nil {
				return err
			}
			if a.asJSON() {
				return a.value(e)
			}
			_, err = fmt.Fprintf(a.Out, "%s of session %s: %s, from its next run on\n", what, args[0], printable(args[1]))
			return err
		})
	}
	return cmd
}

// body is the data of an entry; texts are always JSON.
func body(members map[string]string) json.RawMessage {
	raw, _ := json.Marshal(members)
	return raw
}

func (a *app) sessionsMode() *cobra.Command {
	cmd := a.setting(&cobra.Command{Use: "mode SESSION MODE", Short: "Say how much the agent may touch in a session",
		Long: `Say how much the agent may touch in a session, from its next run on and until it
is changed: ask (look and answer), plan (look and plan) or edit (all that the
rules allow).`}, "mode", func(v string) client.AppendRequest {
		return client.AppendRequest{Kind: "mode_change", Data: body(map[string]string{"mode": v})}
	})
	return cmd
}

func (a *app) sessionsModel() *cobra.Command {
	var profile string
	cmd := a.setting(&cobra.Command{Use: "model SESSION PROVIDER/MODEL", Short: "Choose the model that answers in a session",
		Long: `Choose the model that answers in a session, from its next run on and until it is
changed: one of the profile's, its fallbacks or its models. The others stand in
when it fails.`}, "model", func(v string) client.AppendRequest {
		members := map[string]string{"model": v}
		if provider, name, ok := strings.Cut(v, "/"); ok {
			members = map[string]string{"provider": provider, "model": name}
		}
		return client.AppendRequest{Kind: "model_change", Data: body(members), Profile: profile}
	})
	cmd.Flags().StringVarP(&profile, "profile", "p", "", "whose models may be named (default: that of the session's last run)")
	_ = cmd.RegisterFlagCompletionFunc("profile", a.completeProfiles)
	return cmd
}

func (a *app) sessionsThinking() *cobra.Command {
	return a.setting(&cobra.Command{Use: "thinking SESSION LEVEL", Short: "Say how much the model thinks in a session",
		Long: `Say how much the model thinks before it answers in a session, from its next run on
and until it is changed: off, adaptive, minimal, low, medium, high, xhigh or max.`}, "thinking", func(v string) client.AppendRequest {
		return client.AppendRequest{Kind: "thinking_change", Data: body(map[string]string{"level": v})}
	})
}
