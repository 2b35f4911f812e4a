package engine

import (
	"context"
	"encoding/json"
	"slices"

	"agentd/fault"
	"agentd/internal/prompt"
	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/internal/store"
)

// A way that a session leaves is summarised by a run that does nothing else: it starts at
// the entry where the session goes on, and writes the summary behind that. So it is paid
// for, can be cancelled, and goes on after a crash, like a compaction by hand; and the
// session moves in the one commit that writes the summary, or stays where it is.

// leaving is what such a run was asked for, as it is stored.
type leaving struct {
	// Leaf is where the session stood when it was asked for.
	Leaf  string `json:"leaf,omitempty"`
	Label string `json:"label,omitempty"`
}

// reasonBranch is the reason of such a run in what is told of it.
const reasonBranch = "branch"

// maxBranchSummary is how many tokens the summary of a way that was left may have.
const maxBranchSummary = 2048

const branchNote = "\n\nWhat you see is a way that the conversation took and that is left now: it goes on from where this way began, and what was " +
	"said before that is still there. Say what was tried on this way, what came of it, what was found out, and why it was left, as far as that was said. " +
	"What was changed in the world stays changed; say what."

// summarizeLeft starts the run that summarises what a session leaves; nil: nothing was
// said there.
func (e *Engine) summarizeLeft(ctx context.Context, req *NavigateRequest, ask *session.Asked) (*Moved, error) {
	ref := Ref{req.Tenant, req.SessionID}
	if n := len(req.Instructions); n > maxCompactInstructions {
		return nil, tooLarge("instructions", n, maxCompactInstructions, "nothing")
	}
	if _, err := branchBody(session.KindBranch, session.Branch{Label: req.Label}); err != nil {
		return nil, err
	}
	ses, t, err := e.tree(ctx, ref)
	if err != nil {
		return nil, err
	}
	if err := req.standsAt(ses.Leaf); err != nil {
		return nil, err
	}
	at, input, err := target(t, ref.ID, req.Entry, req.Before)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(t.Left(ses.Leaf, at), func(en *store.Entry) bool { return en.Kind == session.KindMessage }) {
		return nil, nil
	}
	if active, err := e.unfinished(ctx, ref); err != nil {
		return nil, err
	} else if active != "" {
		return nil, occupied(active, "Wait for it, cancel it, or fork the session at an entry.")
	}
	if at == "" {
		at = Root
	}
	start := StartRequest{Tenant: req.Tenant, SessionID: ref.ID, Profile: req.Profile, From: at, WhenBusy: Reject, User: req.User, Caller: req.Caller,
		Compact: &CompactRequest{Instructions: req.Instructions}, leaves: &leaving{Leaf: ses.Leaf, Label: req.Label}}
	if ask != nil {
		start.IdempotencyKey, start.Fingerprint = navigationKey(ask), ask.Request
	}
	r, err := e.Compact(ctx, start)
	if err != nil {
		return nil, err
	}
	return &Moved{SessionView: sessionView(ses), Input: input, RunID: r.ID}, nil
}

// stood is where the session stood when the run started.
func (d *driver) stood() string {
	switch s := &d.state; {
	case s.Stood != nil:
		return *s.Stood
	case s.Start != nil:
		return *s.Start
	}
	return ""
}

// summarizeLeft starts the summary of the way that the session leaves, or says at once why there
// will be none.
func (d *driver) summarizeLeft(eff run.Compact, b *batch) run.Input {
	refused := func(why string) run.Input {
		return compacted{run.Compacted{At: d.at(), Error: why}, &compactionMade{}}
	}
	if d.stood() != d.spec.Leaves.Leaf {
		return refused("the session went on meanwhile: it does not stand any more where it was to be left")
	}
	items, files, err := d.left()
	switch {
	case err == nil:
	case d.ctx.Err() == nil && fault.KindOf(err) == fault.NotFound:
		return refused(err.Error())
	default:
		// A store that is away, or a lease that is over, is no outcome of the run.
		d.letGo("what a session leaves can not be read", err)
		return nil
	}
	if len(items) == 0 {
		return refused("what was said on the way that is left can not be read any more")
	}
	s := d.sizes()
	d.size(&s)
	s.summary = min(s.summary, maxBranchSummary)
	c := d.compaction(eff, session.Texts(items), session.Cut{To: len(items), Turn: len(items)})
	c.note, c.made.to = branchNote, len(items)
	body := &c.made.body
	body.Reason = reasonBranch
	body.TokensBefore = s.fixed + s.count.Tokens(c.msgs)
	body.ReadFiles, body.ModifiedFiles = session.Files(c.msgs, d.reads, files, s.files())
	c.made.count.Summarised = len(items)
	c.begin(s, b)
	return nil
}

// left are the messages of the way that the session leaves, and the files of summaries
// on it.
func (d *driver) left() (items []session.Item, files *session.Compaction, err error) {
	ref := Ref{d.ref.Tenant, d.row.SessionID}
	old, _, err := d.e.path(d.ctx, ref, d.stood(), nil)
	if err != nil {
		return nil, nil, err
	}
	stays, _, err := d.e.path(d.ctx, ref, d.state.Leaf, nil)
	if err != nil {
		return nil, nil, err
	}
	n := 0
	for n < len(old) && n < len(stays) && old[n].ID == stays[n].ID {
		n++
	}
	files = &session.Compaction{}
	for _, en := range old[n:] {
		var s session.BranchSummary
		if en.Kind == session.KindBranchSummary && json.Unmarshal(en.Body, &s) == nil {
			files.ReadFiles, files.ModifiedFiles = append(files.ReadFiles, s.ReadFiles...), append(files.ModifiedFiles, s.ModifiedFiles...)
		}
	}
	// Read by the same rules as a conversation that a model goes on with.
	items, _ = session.Items(old[n:])
	withoutBadImages(items)
	for i := range items {
		prompt.Neutralize(&items[i].Message)
	}
	if items, err = d.leaveOut(d.ctx, items); err != nil {
		return nil, nil, err
	}
	if d.e.hooked() {
		return items, files, nil
	}
	return session.HealItems(items), files, nil
}

// writeLeft writes the summary of the way that the session leaves.
func (d *driver) writeLeft(tx *store.Tx, w run.AppendCompaction, now int64) {
	made := &d.compacted.body
	s := session.BranchSummary{Branch: session.Branch{From: d.stood(), Label: d.spec.Leaves.Label}, Summary: made.Summary,
		ReadFiles: made.ReadFiles, ModifiedFiles: made.ModifiedFiles, Model: made.Model, Usage: made.Usage}
	body, err := json.Marshal(&s)
	if err != nil {
		d.e.log.Error("the summary of a branch can not be stored", "run", d.ref.ID, "error", err)
		return
	}
	tx.Entries = append(tx.Entries, &store.Entry{SessionID: d.row.SessionID, ID: w.Entry, Parent: w.Parent, Kind: session.KindBranchSummary,
		RunID: d.ref.ID, Created: now, Body: body})
	c := &d.conv
	c.messages = append(c.messages[:len(c.messages):len(c.messages)], prompt.Neutral(s.Message(now)))
	c.origins, c.tip = append(c.origins[:len(c.origins):len(c.origins)], origin{entry: w.Entry, run: d.ref.ID, own: true}), w.Entry
	d.measured = measured{}
}
