package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"agentd/client"
	"agentd/message"
)

func (a *app) sessionsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "sessions", Short: "Look at sessions, go on from any place in them, and delete them",
		Long: `Look at sessions, the conversations that runs belong to, go on from any place in
them, and delete them: on a server (--server), or in a data folder (--data).`,
		Args: exactly(0, "a command: ls, show, tree, navigate, branch, label, mode, model, thinking, fork, export, import, compact, rm, artifacts, cache, rules or revoke"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	a.placeFlags(cmd)
	var limit int
	var ephemeral bool
	ls := &cobra.Command{Use: "ls", Short: "List sessions, most recently used first", Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return &usageError{errors.New("--limit must not be negative")}
			}
			return a.at(cmd.Context(), look, func(p place) error { return a.listSessions(cmd.Context(), p, ephemeral, limit) })
		}}
	ls.Flags().IntVarP(&limit, "limit", "n", 50, "how many; 0 for all")
	ls.Flags().BoolVar(&ephemeral, "ephemeral", false, "those of chat clients, which are deleted some time after their runs")
	show := &cobra.Command{Use: "show SESSION", Short: "Show a session with its conversation", Args: exactly(1, "the id of a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd.Context(), look, func(p place) error { return a.showSession(cmd.Context(), p, args[0]) })
		}}
	rm := &cobra.Command{Use: "rm SESSION", Short: "Delete a session with its runs, for good", Args: exactly(1, "the id of a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.change(ctx, tend, func(p place) error {
				_, err := p.Session(ctx, args[0])
				return err
			}, func(p place) error { return a.deleteSession(ctx, p, args[0]) })
		}}
	cmd.AddCommand(ls, show, rm, a.sessionsArtifacts(), a.sessionsCache(), a.sessionsRules(), a.sessionsRevoke(), a.sessionsCompact(),
		a.sessionsTree(), a.sessionsNavigate(), a.sessionsBranch(), a.sessionsLabel(), a.sessionsMode(), a.sessionsModel(), a.sessionsThinking(), a.sessionsFork(), a.sessionsExport(), a.sessionsImport())
	return cmd
}

func (a *app) listSessions(ctx context.Context, p sessions, ephemeral bool, limit int) error {
	rows, more, err := everything(limit, func(cursor string, limit int) ([]*client.Session, string, error) {
		return p.Sessions(ctx, client.SessionFilter{Ephemeral: ephemeral, Cursor: cursor, Limit: limit})
	})
	if err != nil {
		return err
	}
	defer a.tellMore(more, "sessions")
	return list(a, rows, []string{"SESSION", "UPDATED", "TITLE"}, func(s *client.Session) []string {
		return []string{s.ID, second(s.UpdatedAt), shorten(s.Title, 60)}
	}, "no sessions")
}

func (a *app) showSession(ctx context.Context, p sessions, id string) error {
	s, err := p.Session(ctx, id)
	if err != nil {
		return err
	}
	entries, err := p.Entries(ctx, id)
	if err != nil {
		return err
	}
	if a.asJSON() {
		if entries == nil {
			entries = []*client.Entry{}
		}
		return a.value(struct {
			*client.Session
			Entries []*client.Entry `json:"entries"`
		}{s, entries})
	}
	set := settingsOf(entries)
	err = facts(a.Out, "session", s.ID, "title", shorten(s.Title, 100), "created", second(s.CreatedAt), "updated", second(s.UpdatedAt),
		"model", shorten(set.Model, 60), "mode", shorten(set.Mode, 60), "thinking", shorten(set.Thinking, 60), "metadata", shorten(string(s.Metadata), 500))
	for _, e := range entries {
		if err == nil {
			err = a.showEntry(e)
		}
	}
	return err
}

// showEntry writes what was said whole, and of tools what they were asked and the
// beginning of what they gave.
func (a *app) showEntry(e *client.Entry) error {
	m := e.Message
	if e.LeftOut != "" {
		defer fmt.Fprintln(a.Out, indent("! models are not shown "+printable(shorten(e.LeftOut, 300))))
	}
	if text := summarised(e); text != "" {
		_, err := fmt.Fprintf(a.Out, "\n%s\n%s\n", shorten(e.Kind, 60), indent(printable(text)))
		return err
	}
	if m == nil {
		_, err := fmt.Fprintf(a.Out, "\n%s\n%s\n", shorten(e.Kind, 60), indent(shorten(string(e.Data), 300)))
		return err
	}
	who := string(m.Role)
	if m.Role == message.RoleToolResult {
		mark := "✓"
		if m.IsError {
			mark = "✗"
		}
		_, err := fmt.Fprintf(a.Out, "  %s %s: %s\n", mark, shorten(m.ToolName, 100), outline(m.Text()))
		return err
	}
	if m.Model != "" {
		who += " (" + shorten(m.Model, 100) + ")"
	}
	fmt.Fprintf(a.Out, "\n%s\n", who)
	for _, b := range m.Content {
		switch b.Type {
		case message.BlockText:
			fmt.Fprintln(a.Out, indent(printable(b.Text)))
		case message.BlockImage:
			fmt.Fprintf(a.Out, "  [image, %s]\n", shorten(b.MimeType, 60))
		case message.BlockToolCall:
			fmt.Fprintf(a.Out, "  → %s %s\n", shorten(b.Name, 100), shorten(string(b.Arguments), 120))
		}
	}
	if m.ErrorMessage != "" {
		fmt.Fprintln(a.Out, indent("! "+shorten(m.ErrorMessage, 300)))
	}
	return nil
}

func (a *app) deleteSession(ctx context.Context, p sessions, id string) error {
	if err := p.DeleteSession(ctx, id); err != nil {
		return err
	}
	if a.asJSON() {
		return a.value(struct {
			ID      string `json:"session_id"`
			Deleted bool   `json:"deleted"`
		}{id, true})
	}
	_, err := fmt.Fprintf(a.Out, "session %s is deleted\n", id)
	return err
}
