package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentd"
	"agentd/client"
)

// memories are what agents remember.
type memories interface {
	Memories(ctx context.Context, q client.MemoryQuery) ([]*client.Memory, error)
	Memory(ctx context.Context, id string, q client.MemoryQuery) (*client.Memory, error)
	Remember(ctx context.Context, req client.MemoryRequest, q client.MemoryQuery) (*client.Memory, error)
	EditMemory(ctx context.Context, id, text, section string, q client.MemoryQuery) (*client.Memory, error)
	TrustMemory(ctx context.Context, ids []string, q client.MemoryQuery) ([]*client.Memory, error)
	Forget(ctx context.Context, id string, q client.MemoryQuery) error
}

// atLeastOne takes words.
func atLeastOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return exactly(1, what)(cmd, args)
	}
}

func memoryOf(e agentd.MemoryEntry, err error) (*client.Memory, error) {
	if err != nil {
		return nil, err
	}
	return &client.Memory{ID: e.ID, Scope: string(e.Scope), Section: e.Section, Text: e.Text, Origin: string(e.Origin), Date: e.Date, RunID: e.Run}, nil
}

// Memories implements memories.
func (l *local) Memories(ctx context.Context, q client.MemoryQuery) ([]*client.Memory, error) {
	return memoriesOf(l.rt.Memories(ctx, agentd.MemoryQuery(q)))
}

func memoriesOf(rows []agentd.MemoryEntry, err error) ([]*client.Memory, error) {
	out := make([]*client.Memory, len(rows))
	for i, e := range rows {
		out[i], _ = memoryOf(e, nil)
	}
	return out, err
}

// TrustMemory implements memories.
func (l *local) TrustMemory(ctx context.Context, ids []string, q client.MemoryQuery) ([]*client.Memory, error) {
	return memoriesOf(l.rt.TrustMemory(ctx, ids, agentd.MemoryQuery(q)))
}

// Memory implements memories.
func (l *local) Memory(ctx context.Context, id string, q client.MemoryQuery) (*client.Memory, error) {
	return memoryOf(l.rt.Memory(ctx, id, agentd.MemoryQuery(q)))
}

// Remember implements memories.
func (l *local) Remember(ctx context.Context, req client.MemoryRequest, q client.MemoryQuery) (*client.Memory, error) {
	e, _, err := l.rt.Remember(ctx, agentd.NewMemoryEntry(req.Scope, req.Section, req.Text), agentd.MemoryQuery(q))
	return memoryOf(e, err)
}

// EditMemory implements memories.
func (l *local) EditMemory(ctx context.Context, id, text, section string, q client.MemoryQuery) (*client.Memory, error) {
	return memoryOf(l.rt.EditMemory(ctx, id, text, section, agentd.MemoryQuery(q)))
}

// Forget implements memories.
func (l *local) Forget(ctx context.Context, id string, q client.MemoryQuery) error {
	return l.rt.Forget(ctx, id, agentd.MemoryQuery(q))
}

func (a *app) memoryCommand() *cobra.Command {
	var q client.MemoryQuery
	cmd := &cobra.Command{Use: "memory", Short: "List, show, add, edit, trust and remove what agents remember",
		Long: `List, show, add, edit and remove what agents remember beyond a conversation.

On one machine it is also in files that can be edited: MEMORY.md in the data folder
and in the workspace. What others wrote into that of the workspace is quoted to agents,
not obeyed, until somebody trusts it.`,
		Args: exactly(0, "a command: list, show, add, edit, trust or remove"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	a.placeFlags(cmd)
	f := cmd.PersistentFlags()
	f.StringVar(&q.User, "user", "", "whose memory (default: that of runs for which no user was named)")
	f.StringVar(&q.Profile, "profile", "", "profile by whose rules it is read and changed, and whose memory_provider has it")
	cmd.AddCommand(a.memoryList(&q), a.memoryShow(&q), a.memoryAdd(&q), a.memoryEdit(&q), a.memoryTrust(&q), a.memoryRemove(&q))
	return cmd
}

func (a *app) memoryList(q *client.MemoryQuery) *cobra.Command {
	return &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List what agents remember", Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.at(cmd.Context(), look, func(p place) error {
				rows, err := p.Memories(cmd.Context(), *q)
				if err != nil {
					return err
				}
				n := 0
				for _, m := range rows {
					if m.Origin == "workspace" {
						n++
					}
				}
				if err := a.listMemories(rows, "nothing is remembered"); err != nil || n == 0 {
					return err
				}
				fmt.Fprintf(a.Err, "%d of these stand in MEMORY.md of the workspace, which others may have written. Agents get them as quotations. To make them your own: agentd memory trust MEMORY, or --all\n", n)
				return nil
			})
		}}
}

func (a *app) listMemories(rows []*client.Memory, none string) error {
	return list(a, rows, []string{"MEMORY", "SCOPE", "SECTION", "SINCE", "BY", "TEXT"}, func(m *client.Memory) []string {
		return []string{m.ID, m.Scope, shorten(m.Section, 40), m.Date, m.Origin, shorten(m.Text, 100)}
	}, none)
}

func (a *app) memoryTrust(q *client.MemoryQuery) *cobra.Command {
	all := false
	cmd := &cobra.Command{Use: "trust [MEMORY ...]", Short: "Take what others wrote into the workspace's MEMORY.md for your own",
		Long: `Take what others wrote into the workspace's MEMORY.md for your own, as it is there now:
the entries that are named, or the whole file with its headings (--all). Look at it
first (agentd memory list): it may have come with somebody's repository. A line that is
edited from outside has to be trusted again.`,
		Example: `  agentd memory trust mem_2f1c0d9e8a7b
  agentd memory trust --all`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return &usageError{errors.New("name the entries that are to be trusted, or use --all; agentd memory list shows them")}
			}
			return a.at(cmd.Context(), tend, func(p place) error {
				rows, err := p.TrustMemory(cmd.Context(), args, *q)
				if err != nil {
					return err
				}
				return a.listMemories(rows, "there was nothing that is not trusted")
			})
		}}
	cmd.Flags().BoolVar(&all, "all", false, "trust everything that is in the file now")
	return cmd
}

func (a *app) showMemory(m *client.Memory) error {
	if a.asJSON() {
		return a.value(m)
	}
	by := map[string]string{"": "written into the file by hand", "person": "a person", "agent": "an agent",
		"tool":      "an agent that had read outputs of tools: shown to models as a quotation. To adopt it: agentd memory edit " + m.ID,
		"workspace": "somebody who wrote into MEMORY.md of the workspace: shown to models as a quotation. To take it for your own: agentd memory trust " + m.ID}[m.Origin]
	return facts(a.Out, "memory", m.ID, "scope", m.Scope, "section", m.Section, "text", m.Text, "since", m.Date, "by", by, "run", m.RunID)
}

func (a *app) memoryShow(q *client.MemoryQuery) *cobra.Command {
	return &cobra.Command{Use: "show MEMORY", Short: "Show an entry and where it comes from", Args: exactly(1, "the id of an entry"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd.Context(), look, func(p place) error {
				m, err := p.Memory(cmd.Context(), args[0], *q)
				if err != nil {
					return err
				}
				return a.showMemory(m)
			})
		}}
}

func (a *app) memoryAdd(q *client.MemoryQuery) *cobra.Command {
	var req client.MemoryRequest
	cmd := &cobra.Command{Use: "add TEXT", Short: "Have agents remember a sentence", Args: atLeastOne("what is to be remembered"),
		Example: `  agentd memory add --section Preferences "Answer in German."`,
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Text = strings.Join(args, " ")
			return a.at(cmd.Context(), tend, func(p place) error {
				m, err := p.Remember(cmd.Context(), req, *q)
				if err != nil {
					return err
				}
				return a.showMemory(m)
			})
		}}
	a.memoryFlags(cmd, &req.Section)
	cmd.Flags().StringVar(&req.Scope, "scope", "", "global or project (default: global)")
	_ = cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions([]string{"global", "project"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) memoryFlags(cmd *cobra.Command, section *string) {
	cmd.Flags().StringVar(section, "section", "", "Preferences, Context, Learned Patterns, or another")
	_ = cmd.RegisterFlagCompletionFunc("section", cobra.FixedCompletions([]string{"Preferences", "Context", "Learned Patterns"}, cobra.ShellCompDirectiveNoFileComp))
}

func (a *app) memoryEdit(q *client.MemoryQuery) *cobra.Command {
	section := ""
	cmd := &cobra.Command{Use: "edit MEMORY [TEXT]", Short: "Give an entry other words or another section; without either, adopt it as your own",
		Args: atLeastOne("the id of an entry"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, text := cmd.Context(), strings.Join(args[1:], " ")
			if len(args) > 1 && strings.TrimSpace(text) == "" {
				return &usageError{errors.New("the text is empty; to remove an entry: agentd memory remove " + args[0])}
			}
			return a.change(ctx, tend, func(p place) error {
				_, err := p.Memory(ctx, args[0], *q)
				return err
			}, func(p place) error {
				m, err := p.EditMemory(ctx, args[0], text, section, *q)
				if err != nil {
					return err
				}
				return a.showMemory(m)
			})
		}}
	a.memoryFlags(cmd, &section)
	return cmd
}

func (a *app) memoryRemove(q *client.MemoryQuery) *cobra.Command {
	return &cobra.Command{Use: "remove MEMORY", Aliases: []string{"rm"}, Short: "Have agents forget an entry", Args: exactly(1, "the id of an entry"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.change(ctx, tend, func(p place) error {
				_, err := p.Memory(ctx, args[0], *q)
				return err
			}, func(p place) error {
				if err := p.Forget(ctx, args[0], *q); err != nil {
					return err
				}
				if a.asJSON() {
					return a.value(struct {
						ID      string `json:"memory_id"`
						Removed bool   `json:"removed"`
					}{args[0], true})
				}
				_, err := fmt.Fprintln(a.Out, "removed")
				return err
			})
		}}
}
