package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"agentd/fault"
	"agentd/internal/prompt"
	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
)

// A session is a tree. What is in it stays; where it stands is its leaf. Whatever
// moves the leaf writes an entry that becomes the leaf, so the leaf has the greatest id
// of all entries and ids are never used twice. It is written while nothing else has
// the session's turn, in one commit.

// Root names the beginning of a session where an entry is named.
const Root = "root"

// AppendRequest writes an entry behind a session's leaf.
type AppendRequest struct {
	Tenant, SessionID string
	// Kind is message (with Message), or label, custom, model_change, mode_change or
	// thinking_change (with Data).
	Kind    string
	Message *message.Message
	Data    json.RawMessage
	// Profile says which models may be named; "" is that of the session's last run.
	Profile string
}

// NavigateRequest moves a session's leaf.
type NavigateRequest struct {
	Tenant    string `json:"-"`
	SessionID string
	// Entry is where the session goes on; Root is its beginning.
	Entry string
	// Before goes to what is ahead of Entry, which has to be a user's message: it comes
	// back, to be said otherwise.
	Before bool
	// Label is what people call the way that begins here.
	Label string
	// Summary tells the model what became of the way that is left. Summarize has a model
	// write it, if there is none and something was said there: a run does that, and the
	// session moves as it completes.
	Summary   string
	Summarize bool
	// Instructions are added to what that model is told, at most 4096 bytes. Profile says
	// whose models are asked, "" that of the session's last run. User and Caller are the
	// run's, as in [StartRequest].
	Instructions, Profile string
	User                  string
	Caller                string `json:"-"`
	// IfLeaf refuses the change with kind Conflict if the session stands elsewhere;
	// nil does not ask.
	IfLeaf *string
	// IdempotencyKey makes a repetition give what the first request did, also while a run
	// is active; "" is none. A different request of the session under the same key is a
	// conflict. With a key an entry is written even if the session stands there already.
	IdempotencyKey string `json:"-"`
}

// Moved is a session whose leaf moved.
type Moved struct {
	*SessionView
	// Entry is what was written for it; nil if the session stood there already.
	Entry *EntryView `json:"entry,omitempty"`
	// Input is the message that Before left out.
	Input []message.Block `json:"input,omitempty"`
	// RunID is the run that writes the summary: the session moves when it completes, with
	// the stop reason compacted, and stays where it is if it does not.
	RunID string `json:"run_id,omitempty"`
}

// NodeView is an entry in its tree as clients see it, without all that it says.
type NodeView struct {
	ID     string `json:"id"`
	Parent string `json:"parent,omitempty"`
	Kind   string `json:"kind"`
	RunID  string `json:"run_id,omitempty"`
	// RunStatus is that of the run, if it is of this session.
	RunStatus string `json:"run_status,omitempty"`
	CreatedAt string `json:"created_at"`
	// Role is that of a message. Preview is the beginning of what the entry says.
	Role    string `json:"role,omitempty"`
	Preview string `json:"preview,omitempty"`
	Label   string `json:"label,omitempty"`
	// OnPath is whether the conversation has the entry, as it stands.
	OnPath bool `json:"on_path,omitempty"`
}

// TreeView is a session with all its entries, in the order of their ids.
type TreeView struct {
	*SessionView
	// Settings are what changes on the path amount to.
	Settings session.Settings `json:"settings"`
	Entries  []*NodeView      `json:"entries"`
}

// tree reads a session with all its entries.
func (e *Engine) tree(ctx context.Context, ref Ref) (*store.Session, *session.Tree, error) {
	ses, err := e.store.Session(ctx, ref.Tenant, ref.ID)
	if err != nil {
		return nil, nil, notFound("session", ref.ID, err)
	}
	rows, err := e.store.Entries(ctx, ref.Tenant, ref.ID, "", 0)
	if err != nil {
		return nil, nil, notFound("session", ref.ID, err)
	}
	return ses, session.NewTree(rows, ses.Leaf), nil
}

// unfinished gives a run of a session that has not ended, or "". It asks the store:
// an engine that went on with nothing does not know them.
func (e *Engine) unfinished(ctx context.Context, ref Ref) (string, error) {
	for _, status := range []run.Status{run.Running, run.Paused, run.Queued} {
		rows, _, err := e.store.Runs(ctx, ref.Tenant, store.RunFilter{SessionID: ref.ID, Status: string(status), Limit: 1})
		if err != nil {
			return "", internal("engine.tree", err)
		}
		if len(rows) > 0 {
			return rows[0].ID, nil
		}
	}
	return "", nil
}

func occupied(runID, hint string) error {
	return &fault.Error{Kind: fault.Conflict, Field: "session_id", Err: fmt.Errorf("the session is busy with run %s", runID), Hint: hint}
}

// change is an alteration of a session's tree under way.
type treeChange struct {
	ses  *store.Session
	tree *session.Tree
	tx   *store.Tx
	ids  run.State
	now  int64
}

// write adds an entry that becomes the leaf.
func (c *treeChange) write(parent, kind string, body json.RawMessage) {
	en := &store.Entry{SessionID: c.ses.ID, ID: c.ids.NextEntry(), Parent: parent, Kind: kind, Created: c.now, Body: body}
	c.tx.Entries = append(c.tx.Entries, en)
	c.ses.Leaf = en.ID
}

// alter changes a session's tree while nothing else has its turn. If change writes
// nothing, nothing is committed.
func (e *Engine) alter(ctx context.Context, ref Ref, change func(c *treeChange) error) (*store.Session, error) {
	const hint = "Wait for it, cancel it, or fork the session at an entry."
	id := e.cfg.NewID()
	active, err := e.reserveAlone(ctx, ref, id)
	switch {
	case err != nil:
		return nil, err
	case strings.HasPrefix(active, "run_"):
		return nil, occupied(active, hint)
	case active != "":
		return nil, busy(active)
	}
	defer e.leave(ref, id)
	if active, err = e.unfinished(ctx, ref); err != nil {
		return nil, err
	} else if active != "" {
		return nil, occupied(active, hint)
	}
	c := &treeChange{tx: &store.Tx{Tenant: ref.Tenant}, now: e.now()}
	if c.ses, c.tree, err = e.tree(ctx, ref); err != nil {
		return nil, err
	}
	c.ids.EntryBase = entryBase(id, c.tree.Last())
	if err := change(c); err != nil {
		return nil, err
	}
	if len(c.tx.Entries) == 0 {
		return c.ses, nil
	}
	c.ses.Updated = e.now()
	c.tx.Leaves = []store.Leaf{{SessionID: ref.ID, EntryID: c.ses.Leaf, Updated: c.ses.Updated}}
	if e.node != nil {
		// Only while the turn is still held.
		c.tx.Holds = []store.Hold{{Name: store.HoldSession + ref.ID, ID: id}}
	}
	if err := e.put(ctx, c.tx); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return nil, notFound("session", ref.ID, err)
		}
		return nil, internal("engine.tree", err)
	}
	return c.ses, nil
}

// invalid makes a fault of what is wrong with a body.
func invalidBody(err error) error {
	f := &fault.Error{Kind: fault.Invalid, Err: err}
	var b *session.BodyError
	if errors.As(err, &b) {
		f.Field, f.Err = b.Field, b.Err
	}
	return f
}

// AppendEntry writes an entry behind a session's leaf and gives it. A session with an
// active run is a conflict.
func (e *Engine) AppendEntry(ctx context.Context, req AppendRequest) (*EntryView, error) {
	ref := Ref{req.Tenant, req.SessionID}
	if req.Kind == session.KindMessage {
		if req.Message == nil || len(req.Data) > 0 {
			return nil, &fault.Error{Kind: fault.Invalid, Field: "message", Err: errors.New("an entry of kind message has a message, and no data")}
		}
		if err := session.CheckMessage(req.Message); err != nil {
			return nil, invalidBody(err)
		}
		return e.Append(ctx, ref, *req.Message)
	}
	switch req.Kind {
	case session.KindLabel, session.KindCustom, session.KindModelChange, session.KindModeChange, session.KindThinkingChange:
	default:
		return nil, &fault.Error{Kind: fault.Invalid, Field: "kind", Err: fmt.Errorf("entries of kind %q can not be appended", clipped(req.Kind)),
			Hint: "Use message, label, custom, model_change, mode_change or thinking_change."}
	}
	if req.Message != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Field: "message", Err: fmt.Errorf("an entry of kind %s has data, and no message", req.Kind)}
	}
	body, err := session.CheckData(req.Kind, req.Data)
	if err != nil {
		return nil, invalidBody(err)
	}
	if req.Kind == session.KindCustom {
		var c session.Custom
		if err := json.Unmarshal(body, &c); err != nil {
			return nil, invalidBody(err)
		}
		if err := othersContext("data.content", c.Content); err != nil {
			return nil, err
		}
	}
	if err := e.checkSetting(ctx, &req, body); err != nil {
		return nil, err
	}
	var wrote *store.Entry
	_, err = e.alter(ctx, ref, func(c *treeChange) error {
		if req.Kind == session.KindLabel {
			var l session.Label
			if err := json.Unmarshal(body, &l); err != nil || c.tree.Node(l.Target) == nil {
				return &fault.Error{Kind: fault.Invalid, Field: "data.target", Err: fmt.Errorf("there is no entry %s in session %s", clipped(l.Target), ref.ID)}
			}
		}
		c.write(c.ses.Leaf, req.Kind, body)
		wrote = c.tx.Entries[0]
		session.Disown(c.tx.Entries)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return entryView(wrote), nil
}

// othersContext refuses blocks that would pass for what this agentd alone says: what is
// remembered, its sections, the mode.
func othersContext(field string, blocks []message.Block) error {
	for i := range blocks {
		if kind := blocks[i].Context; prompt.Own(kind) {
			return &fault.Error{Kind: fault.Invalid, Field: fmt.Sprintf("%s[%d].context", field, i), Err: fmt.Errorf("%q is agentd's own", clipped(kind)),
				Hint: "Use another kind, or none: then the block is words like any other."}
		}
	}
	return nil
}

// target finds the entry that a request names, and the one where the session is to
// stand then: it, or the one ahead of it.
func target(t *session.Tree, sessionID, entry string, before bool) (at string, input []message.Block, err error) {
	bad := func(format string, args ...any) error {
		return &fault.Error{Kind: fault.Invalid, Field: "entry_id", Err: fmt.Errorf(format, args...), Hint: "GET /sessions/" + sessionID + "/tree lists the entries."}
	}
	switch {
	case entry == "":
		return "", nil, bad("is missing: name an entry, or %q for the beginning of the session", Root)
	case entry == Root && before:
		return "", nil, bad("there is nothing ahead of the beginning of the session")
	case entry == Root:
		return "", nil, nil
	}
	n := t.Node(entry)
	if n == nil {
		return "", nil, bad("there is no entry %s in session %s", clipped(entry), sessionID)
	}
	if at = entry; before {
		var m message.Message
		if n.Kind != session.KindMessage || json.Unmarshal(n.Body, &m) != nil || m.Role != message.RoleUser {
			return "", nil, bad("entry %s is no message of the user's: only what is ahead of those can be gone to", entry)
		}
		at = n.Parent
		_, input = m.Split() // the rest is put beside them again
	}
	if !t.Whole(at) {
		return "", nil, bad("the way to entry %s is broken: an entry ahead of it is gone", entry)
	}
	return at, input, nil
}

// Navigate moves a session's leaf to any of its entries. Nothing is deleted or copied:
// what is left behind stays in the tree. A session with an active run is a conflict.
func (e *Engine) Navigate(ctx context.Context, req NavigateRequest) (*Moved, error) {
	ref := Ref{req.Tenant, req.SessionID}
	ask, err := req.asked()
	if err != nil {
		return nil, err
	}
	if m, err := e.navigated(ctx, &req, ask); m != nil || err != nil {
		return m, err
	}
	if req.Summarize && req.Summary == "" {
		if m, err := e.summarizeLeft(ctx, &req, ask); m != nil || err != nil {
			return m, err
		}
	}
	out := &Moved{}
	ses, err := e.alter(ctx, ref, func(c *treeChange) error {
		// One that was under way as this one came has written by now.
		if m, err := e.movedBefore(ctx, &req, ask, c.ses, c.tree); m != nil || err != nil {
			if m != nil {
				out = m
			}
			return err
		}
		from := c.ses.Leaf
		if err := req.standsAt(from); err != nil {
			return err
		}
		at, input, err := target(c.tree, ref.ID, req.Entry, req.Before)
		if err != nil {
			return err
		}
		out.Input = input
		b := session.BranchSummary{Branch: session.Branch{From: from, Label: req.Label, Asked: ask}, Summary: req.Summary}
		if at == from && b.Summary == "" && b.Label == "" && ask == nil {
			return nil
		}
		kind, body := session.KindBranch, any(b.Branch)
		if b.Summary != "" {
			kind, body = session.KindBranchSummary, b
		}
		raw, err := branchBody(kind, body)
		if err != nil {
			return err
		}
		c.write(at, kind, raw)
		out.Entry = entryView(c.tx.Entries[0])
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.SessionView = sessionView(ses)
	return out, nil
}

// standsAt refuses a request that is for a session which stands elsewhere.
func (req *NavigateRequest) standsAt(leaf string) error {
	if req.IfLeaf != nil && *req.IfLeaf != leaf {
		return &fault.Error{Kind: fault.Conflict, Field: "if_leaf", Err: fmt.Errorf("the session stands at %q", leaf), Hint: "Look at the session again."}
	}
	return nil
}

// branchBody checks the body of a branch, and names the field of the request that is wrong.
func branchBody(kind string, body any) (json.RawMessage, error) {
	raw, err := json.Marshal(body)
	if err == nil {
		raw, err = session.CheckData(kind, raw)
	}
	if err != nil {
		f := invalidBody(err)
		var of *fault.Error
		if errors.As(f, &of) {
			of.Field = strings.TrimPrefix(of.Field, "data.")
		}
		return nil, f
	}
	return raw, nil
}

// maxPreview bounds, in characters, what a tree shows of an entry.
const maxPreview = 120

// Tree gives a session with all its entries.
func (e *Engine) Tree(ctx context.Context, ref Ref) (*TreeView, error) {
	ses, t, err := e.tree(ctx, ref)
	if err != nil {
		return nil, err
	}
	statuses := map[string]string{}
	for cursor := ""; ; {
		rows, next, err := e.store.Runs(ctx, ref.Tenant, store.RunFilter{SessionID: ref.ID, Limit: 500, Cursor: cursor})
		if err != nil {
			return nil, internal("engine.Tree", err)
		}
		for _, r := range rows {
			statuses[r.ID] = r.Status
		}
		if cursor = next; next == "" {
			break
		}
	}
	out := &TreeView{SessionView: sessionView(ses), Settings: session.SettingsOf(t.Path(ses.Leaf)), Entries: make([]*NodeView, len(t.Nodes))}
	for i, n := range t.Nodes {
		v := &NodeView{ID: n.ID, Parent: n.Parent, Kind: n.Kind, RunID: n.RunID, RunStatus: statuses[n.RunID], CreatedAt: timestamp(n.Created), Label: n.Label, OnPath: n.OnPath}
		v.Role, v.Preview = preview(n.Entry)
		out.Entries[i] = v
	}
	return out, nil
}

// preview is the beginning of what an entry says, on one line.
func preview(row *store.Entry) (role, text string) {
	var m message.Message
	if row.Kind == session.KindMessage {
		if json.Unmarshal(row.Body, &m) != nil {
			return "", "[damaged]"
		}
		role, text = string(m.Role), m.Text()
		if m.Role == message.RoleToolResult {
			text = m.ToolName + ": " + text
		}
		for _, c := range m.ToolCalls() {
			text += " → " + c.Name
		}
	} else {
		var b struct {
			Label, Summary, Model, Provider, Mode, Level, Type, Session string
			Content                                                     []message.Block
		}
		if len(row.Body) > 0 && json.Unmarshal(row.Body, &b) != nil {
			return "", ""
		}
		m.Content = b.Content
		if b.Provider != "" {
			b.Model = b.Provider + "/" + b.Model
		}
		text = strings.Join([]string{b.Label, b.Summary, b.Model, b.Mode, b.Level, b.Type, b.Session, m.Text()}, " ")
	}
	text = strings.Join(strings.Fields(head(text, 8*maxPreview)), " ")
	if r := []rune(text); len(r) > maxPreview {
		text = string(r[:maxPreview-1]) + "…"
	}
	return role, strings.ToValidUTF8(text, "\uFFFD")
}

// clipped is a text of a request as errors repeat it.
func clipped(s string) string {
	return strings.ToValidUTF8(head(s, 80), "\uFFFD")
}
