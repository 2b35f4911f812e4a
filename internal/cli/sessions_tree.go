package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"agentd"
	"agentd/client"
	"agentd/fault"
)

// trees are sessions as trees.
type trees interface {
	Tree(ctx context.Context, sessionID string) (*client.Tree, error)
	Append(ctx context.Context, sessionID string, req client.AppendRequest) (*client.Entry, error)
	Navigate(ctx context.Context, sessionID string, req client.NavigateRequest) (*client.Moved, error)
	Fork(ctx context.Context, sessionID string, req client.ForkRequest) (*client.Session, error)
	Export(ctx context.Context, sessionID string, w io.Writer, o client.ExportOptions) error
	Import(ctx context.Context, file io.Reader, o client.ImportOptions) (*client.Imported, error)
}

// Tree implements trees.
func (l *local) Tree(ctx context.Context, sessionID string) (*client.Tree, error) {
	v, err := l.rt.Tree(ctx, sessionID)
	if err != nil {
		return nil, err
	}
	out := &client.Tree{Session: (*client.Session)(v.SessionView), Settings: client.Settings(v.Settings)}
	for _, n := range v.Entries {
		out.Entries = append(out.Entries, (*client.Node)(n))
	}
	return out, nil
}

// Append implements trees.
func (l *local) Append(ctx context.Context, sessionID string, req client.AppendRequest) (*client.Entry, error) {
	e, err := l.rt.AppendEntry(ctx, agentd.AppendRequest{SessionID: sessionID, Kind: req.Kind, Message: req.Message, Data: req.Data, Profile: req.Profile})
	return (*client.Entry)(e), err
}

// Navigate implements trees.
func (l *local) Navigate(ctx context.Context, sessionID string, req client.NavigateRequest) (*client.Moved, error) {
	m, err := l.rt.Navigate(ctx, agentd.NavigateRequest{SessionID: sessionID, Entry: req.Entry, Before: req.Before, Label: req.Label, Summary: req.Summary, IfLeaf: req.IfLeaf,
		Summarize: req.Summarize, Instructions: req.Instructions, Profile: req.Profile, IdempotencyKey: req.IdempotencyKey})
	if err != nil {
		return nil, err
	}
	return &client.Moved{Session: (*client.Session)(m.SessionView), Entry: (*client.Entry)(m.Entry), Input: m.Input, RunID: m.RunID}, nil
}

// Fork implements trees.
func (l *local) Fork(ctx context.Context, sessionID string, req client.ForkRequest) (*client.Session, error) {
	s, err := l.rt.Fork(ctx, agentd.ForkRequest{SessionID: sessionID, Entry: req.Entry, Before: req.Before, All: req.All, Title: req.Title, Metadata: req.Metadata, IdempotencyKey: req.IdempotencyKey})
	return (*client.Session)(s), err
}

// Export implements trees.
func (l *local) Export(ctx context.Context, sessionID string, w io.Writer, o client.ExportOptions) error {
	return l.rt.Export(ctx, sessionID, w, agentd.ExportOptions(o))
}

// Import implements trees.
func (l *local) Import(ctx context.Context, file io.Reader, o client.ImportOptions) (*client.Imported, error) {
	v, err := l.rt.Import(ctx, agentd.ImportRequest{File: file, Title: o.Title, IdempotencyKey: o.IdempotencyKey})
	if err != nil {
		return nil, err
	}
	return &client.Imported{Session: (*client.Session)(v.SessionView), Format: v.Format, Entries: v.Entries, Artifacts: v.Artifacts, Warnings: v.Warnings}, nil
}

func (a *app) sessionsTree() *cobra.Command {
	var ids bool
	cmd := &cobra.Command{Use: "tree SESSION", Short: "Draw a session with everything that was ever said in it", Args: exactly(1, "the id of a session"),
		Long: `Draw a session as the tree that it is: what is marked with a bullet is the
conversation as it stands, and the rest is ways that were left. The last characters
of an id are enough where other commands take an entry.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd.Context(), look, func(p place) error {
				t, err := p.Tree(cmd.Context(), args[0])
				switch {
				case err != nil:
					return err
				case a.asJSON():
					if t.Entries == nil {
						t.Entries = []*client.Node{}
					}
					return a.value(t)
				}
				return a.drawTree(t, ids)
			})
		}}
	cmd.Flags().BoolVar(&ids, "ids", false, "show ids whole")
	return cmd
}

// shortID is how much of an entry's id a tree shows: the end tells entries apart.
const shortID = 7

// drawTree draws what belongs to a way one below the other, and each way that branches
// off further to the right.
func (a *app) drawTree(t *client.Tree, whole bool) error {
	err := facts(a.Out, "session", t.ID, "title", shorten(t.Title, 100), "model", shorten(t.Settings.Model, 60), "mode", shorten(t.Settings.Mode, 60), "thinking", shorten(t.Settings.Thinking, 60))
	if err != nil {
		return err
	}
	children, there := map[string][]*client.Node{}, map[string]bool{}
	for _, n := range t.Entries {
		there[n.ID] = true
	}
	for _, n := range t.Entries {
		parent := n.Parent
		if !there[parent] {
			parent = "" // what lost its parent is drawn as a root
		}
		children[parent] = append(children[parent], n)
	}
	// Ways are drawn by a stack: a conversation may be as deep as it likes.
	type step struct {
		n *client.Node
		// before is what is drawn ahead of the node, under what is drawn ahead of those
		// that follow it.
		before, under string
	}
	var stack []step
	push := func(next []*client.Node, under string) {
		for i := len(next) - 1; i >= 0; i-- {
			s := step{next[i], under, under}
			if len(next) > 1 {
				s.before, s.under = under+"├─", under+"│ "
				if i == len(next)-1 {
					s.before, s.under = under+"└─", under+"  "
				}
			}
			stack = append(stack, s)
		}
	}
	push(children[""], "")
	lastRun := ""
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		n := s.n
		id := n.ID
		if !whole && len(id) > shortID {
			id = id[len(id)-shortID:]
		}
		mark := "○"
		if n.OnPath {
			mark = "●"
		}
		line := s.before + mark + " " + printable(id) + " " + cmp.Or(shorten(n.Role, 40), shorten(n.Kind, 40))
		if n.Preview != "" {
			line += ": " + shorten(n.Preview, 70)
		}
		if n.Label != "" {
			line += "  [" + shorten(n.Label, 40) + "]"
		}
		if n.RunID != lastRun && n.RunStatus != "" && n.RunStatus != client.Completed {
			line += "  (run " + printable(n.RunID) + ": " + printable(n.RunStatus) + ")"
		}
		lastRun = n.RunID
		if n.ID == t.Leaf {
			line += "  ← here"
		}
		if _, err := fmt.Fprintln(a.Out, line); err != nil {
			return err
		}
		push(children[n.ID], s.under)
	}
	if len(t.Entries) == 0 {
		_, err = fmt.Fprintln(a.Err, "nothing was said in this session")
	}
	return err
}

// entry finds the entry of a session whose id ends as the one that was typed.
func entry(t *client.Tree, typed string) (string, error) {
	if typed == client.EntryRoot || typed == "" {
		return typed, nil
	}
	var found []string
	for _, n := range t.Entries {
		if n.ID == typed {
			return typed, nil
		}
		if strings.HasSuffix(n.ID, typed) {
			found = append(found, n.ID)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", &fault.Error{Kind: fault.NotFound, Err: fmt.Errorf("session %s has no entry whose id ends with %s", t.ID, typed), Hint: "agentd sessions tree " + t.ID + " shows them."}
	}
	return "", &fault.Error{Kind: fault.Invalid, Err: fmt.Errorf("%d entries of session %s have ids that end with %s", len(found), t.ID, typed), Hint: "agentd sessions tree --ids " + t.ID + " shows them whole."}
}

// alterTree finds the entry first, and changes the session then.
func (a *app) alterTree(ctx context.Context, session, typed string, f func(p place, id string) error) error {
	id := ""
	return a.change(ctx, tend, func(p place) error {
		t, err := p.Tree(ctx, session)
		if err == nil {
			id, err = entry(t, typed)
		}
		return err
	}, func(p place) error { return f(p, id) })
}

// goTo are the commands that move a session's leaf: they differ in what they are for.
func (a *app) goTo(use, short, long string, label bool) *cobra.Command {
	var req client.NavigateRequest
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: exactly(2, "the id of a session and of an entry (root: its beginning)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if label && req.Label == "" {
				return &usageError{errors.New("--label is missing: what is the branch called?")}
			}
			if req.Summarize && req.Summary != "" {
				return &usageError{errors.New("--summary is a summary, and --summarize has one written: give one of them")}
			}
			return a.alterTree(cmd.Context(), args[0], args[1], func(p place, id string) error {
				req := req
				req.Entry = id
				m, err := p.Navigate(cmd.Context(), args[0], req)
				if err == nil && m.RunID != "" {
					err = a.summarised(cmd.Context(), p, m)
				}
				if err != nil {
					return err
				}
				if a.asJSON() {
					return a.value(m)
				}
				if _, err = fmt.Fprintf(a.Out, "session %s goes on from %s\n", m.ID, id); err != nil {
					return err
				}
				for _, b := range m.Input {
					if b.Text != "" && err == nil {
						_, err = fmt.Fprintf(a.Out, "left out, to be said otherwise:\n%s\n", indent(printable(b.Text)))
					}
				}
				return err
			})
		}}
	cmd.Flags().BoolVar(&req.Before, "before", false, "go to what is ahead of the entry, a user's message, and show that")
	cmd.Flags().StringVar(&req.Label, "label", "", "what the way that begins here is called")
	if !label {
		cmd.Flags().StringVar(&req.Summary, "summary", "", "what models are told of the way that is left")
		cmd.Flags().BoolVar(&req.Summarize, "summarize", false, "have a model write that")
		cmd.Flags().StringVar(&req.Instructions, "instructions", "", "what that summary should dwell on")
		cmd.Flags().StringVarP(&req.Profile, "profile", "p", "", "whose models write it (default: that of the session's last run)")
		_ = cmd.RegisterFlagCompletionFunc("profile", a.completeProfiles)
	}
	return cmd
}

// summarised waits for the run that writes a summary, and takes in where the session stands then.
func (a *app) summarised(ctx context.Context, p place, m *client.Moved) error {
	if _, err := a.waitCompaction(ctx, p, m.RunID, "the summary"); err != nil {
		return err
	}
	s, err := p.Session(ctx, m.ID)
	if err == nil {
		m.Session = s
	}
	return err
}

func (a *app) sessionsBranch() *cobra.Command {
	return a.goTo("branch SESSION ENTRY --label NAME", "Begin another way at an entry, with a name",
		"Begin another way at an entry: the next run goes on from there. What was said after\nit stays in the tree.", true)
}

func (a *app) sessionsNavigate() *cobra.Command {
	return a.goTo("navigate SESSION ENTRY", "Go on from another entry",
		"Have a session go on from another of its entries. Nothing is deleted: the way that\nis left stays in the tree, and --summary tells models what became of it; with\n--summarize a model writes that.", false)
}

func (a *app) sessionsLabel() *cobra.Command {
	return &cobra.Command{Use: "label SESSION ENTRY [LABEL]", Short: "Name an entry, or take its name away",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 || len(args) > 3 {
				return &usageError{errors.New("give the id of a session, an entry, and what it is called")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.alterTree(cmd.Context(), args[0], args[1], func(p place, id string) error {
				label := ""
				if len(args) == 3 {
					label = args[2]
				}
				raw, err := json.Marshal(map[string]string{"target": id, "label": label})
				if err != nil {
					return err
				}
				e, err := p.Append(cmd.Context(), args[0], client.AppendRequest{Kind: "label", Data: raw})
				if err != nil {
					return err
				}
				if a.asJSON() {
					return a.value(e)
				}
				if label == "" {
					_, err = fmt.Fprintf(a.Out, "entry %s has no name\n", id)
				} else {
					_, err = fmt.Fprintf(a.Out, "entry %s is called %s\n", id, shorten(label, 100))
				}
				return err
			})
		}}
}

func (a *app) sessionsFork() *cobra.Command {
	var req client.ForkRequest
	cmd := &cobra.Command{Use: "fork SESSION [ENTRY]", Short: "Make a session of the way to an entry, or of all of it",
		Long: `Make a new session that begins with what was said up to an entry (default: up to
where the session stands), or with --all of the whole tree. The session itself stays as it is.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 || req.All && len(args) == 2 {
				return &usageError{errors.New("give the id of a session, and an entry or --all")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			typed := ""
			if len(args) == 2 {
				typed = args[1]
			}
			return a.alterTree(cmd.Context(), args[0], typed, func(p place, id string) error {
				req := req
				req.Entry = id
				s, err := p.Fork(cmd.Context(), args[0], req)
				if err != nil {
					return err
				}
				if a.asJSON() {
					return a.value(s)
				}
				_, err = fmt.Fprintln(a.Out, s.ID)
				return err
			})
		}}
	cmd.Flags().BoolVar(&req.All, "all", false, "the whole tree")
	cmd.Flags().BoolVar(&req.Before, "before", false, "leave the entry itself out, a user's message")
	cmd.Flags().StringVar(&req.Title, "title", "", "title of the new session (default: the other one's)")
	return cmd
}

func (a *app) sessionsExport() *cobra.Command {
	var out string
	var o client.ExportOptions
	cmd := &cobra.Command{Use: "export SESSION", Short: "Write a session as a file, one JSON object a line", Args: exactly(1, "the id of a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd.Context(), look, func(p place) (err error) {
				if out == "" || out == "-" {
					return p.Export(cmd.Context(), args[0], a.Out, o)
				}
				if _, err := p.Session(cmd.Context(), args[0]); err != nil {
					return err // no file is made for a session that there is not
				}
				f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
				if err != nil {
					return &fault.Error{Kind: fault.Invalid, Field: "out", Err: err, Hint: "Name a file that does not exist."}
				}
				err = errors.Join(p.Export(cmd.Context(), args[0], f, o), f.Close())
				if err != nil {
					return errors.Join(err, os.Remove(out)) // half a session is none
				}
				return nil
			})
		}}
	cmd.Flags().StringVarP(&out, "out", "o", "-", "file to write, which must not exist, or - for the output")
	cmd.Flags().BoolVar(&o.NoArtifacts, "no-artifacts", false, "leave the artifacts of the session out")
	return cmd
}

func (a *app) sessionsImport() *cobra.Command {
	var o client.ImportOptions
	cmd := &cobra.Command{Use: "import FILE", Short: "Make a session of a file of agentd or of Pi", Args: exactly(1, "a file, or - for the input"),
		Long: `Make a new session of a file that sessions export wrote, or of a session file of Pi
(version 1 to 3). All ids are new. What is wrong with a file is said with its line.`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			var file io.Reader = a.In
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return &fault.Error{Kind: fault.NotFound, Field: "file", Err: err}
				}
				defer f.Close()
				file = f
			}
			return a.at(cmd.Context(), tend, func(p place) error {
				v, err := p.Import(cmd.Context(), file, o)
				if err != nil {
					return err
				}
				if a.asJSON() {
					return a.value(v)
				}
				for _, w := range v.Warnings {
					fmt.Fprintln(a.Err, printable(w))
				}
				_, err = fmt.Fprintln(a.Out, v.ID)
				return err
			})
		}}
	cmd.Flags().StringVar(&o.Title, "title", "", "title of the session (default: the file's)")
	return cmd
}
