package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/internal/store"
)

// A session of its own needs entries of its own: it is deleted with what it has, and
// its runs go on from it whatever becomes of another one. So a fork copies the way to
// an entry, under new ids, in one commit. Within a session nothing is ever copied.

// TreeLimits bound what is read of files, and what is copied. 0 means no limit.
type TreeLimits struct {
	// Entries of one file or one fork. FileBytes and LineBytes are of a file, ArtifactBytes of
	// the contents of all artifacts in one.
	Entries              int
	FileBytes, LineBytes int64
	ArtifactBytes        int64
}

// ForkRequest makes a session of what another one has.
type ForkRequest struct {
	Tenant    string `json:"-"`
	SessionID string `json:"session_id"`
	// Entry is the last one that the new session has; "" is the leaf, Root none.
	Entry string `json:"entry_id,omitempty"`
	// Before leaves out Entry itself, which has to be a user's message.
	Before bool `json:"before,omitempty"`
	// All copies the whole tree, and its leaf.
	All bool `json:"all,omitempty"`
	// Title is that of the new session; "" is the other one's.
	Title    string          `json:"title,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// IdempotencyKey makes a repetition return the first session, as it does for
	// [Engine.CreateSession].
	IdempotencyKey string `json:"-"`
}

// created commits a new session, or gives the one that an earlier request under the
// same key made.
func (e *Engine) created(ctx context.Context, op string, tx *store.Tx) (*SessionView, error) {
	ses := tx.NewSessions[0]
	err := e.put(ctx, tx)
	var exists *store.ExistsError
	switch {
	case err == nil:
		return sessionView(ses), nil
	case errors.As(err, &exists) && exists.SameRequest:
		return e.Session(ctx, Ref{tx.Tenant, exists.SessionID})
	case errors.As(err, &exists):
		return nil, keyTaken("created session " + exists.SessionID)
	case errors.Is(err, store.ErrNotFound):
		return nil, &fault.Error{Kind: fault.Conflict, Err: errors.New("an artifact of the session expired meanwhile"), Hint: "Try again."}
	}
	return nil, internal(op, err)
}

// Fork makes a new session of the way to an entry, or of all. What the entries are of
// stays with the other session: its runs and its remembered approvals. An active run is
// a conflict where no entry is named: it is still at work on what would be copied.
func (e *Engine) Fork(ctx context.Context, req ForkRequest) (*SessionView, error) {
	if req.All && (req.Entry != "" || req.Before) {
		return nil, &fault.Error{Kind: fault.Invalid, Field: "all", Err: errors.New("all of a session, or the way to one entry: give one of them")}
	}
	ref := Ref{req.Tenant, req.SessionID}
	ses, t, err := e.forkable(ctx, ref, req.Entry == "")
	if err != nil {
		return nil, err
	}
	var from []*store.Entry
	leaf := ses.Leaf
	if req.All {
		for _, n := range t.Nodes {
			if t.Whole(n.ID) {
				from = append(from, n.Entry)
			}
		}
	} else {
		if req.Entry != "" || req.Before {
			if leaf, _, err = target(t, ref.ID, req.Entry, req.Before); err != nil {
				return nil, err
			}
		}
		for _, n := range t.Path(leaf) {
			from = append(from, n.Entry)
		}
	}
	if !t.Whole(leaf) {
		return nil, &fault.Error{Kind: fault.Conflict, Err: errors.New("the way to the session's leaf is broken: an entry is gone"), Hint: "agentd doctor says which, and repairs it."}
	}
	if err := e.fits(len(from)); err != nil {
		return nil, err
	}
	now := e.now()
	fork := &store.Session{ID: "ses_" + e.cfg.NewID(), Title: req.Title, Metadata: req.Metadata, Created: now, Updated: now}
	if fork.Title == "" {
		fork.Title = ses.Title
	}
	if req.IdempotencyKey != "" {
		raw, err := json.Marshal(req)
		if err != nil {
			return nil, &fault.Error{Kind: fault.Invalid, Field: "metadata", Err: errors.New("it is not JSON")}
		}
		fork.IdempotencyKey, fork.RequestHash = req.IdempotencyKey, requestHash(append([]byte("fork "), raw...))
	}
	ids := run.State{EntryBase: entryBase(e.cfg.NewID(), "")}
	tx := &store.Tx{Tenant: req.Tenant, NewSessions: []*store.Session{fork}}
	var at map[string]string
	tx.Entries, at = session.Rename(from, fork.ID, ids.NextEntry)
	body, err := json.Marshal(session.Fork{Session: ses.ID, Entry: leaf})
	if err != nil {
		return nil, internal("engine.Fork", err)
	}
	// Written last, it sorts last, as a leaf has to.
	mark := &store.Entry{SessionID: fork.ID, ID: ids.NextEntry(), Parent: at[leaf], Kind: session.KindFork, Created: now, Body: body}
	tx.Entries = append(tx.Entries, mark)
	fork.Leaf = mark.ID
	if err := e.belongings(ctx, ref, from, at, tx); err != nil {
		return nil, err
	}
	return e.created(ctx, "engine.Fork", tx)
}

// forkable reads a session with all its entries; still says that no run of it may be at
// work. One that ended as it was read has written more since.
func (e *Engine) forkable(ctx context.Context, ref Ref, still bool) (*store.Session, *session.Tree, error) {
	for {
		ses, t, err := e.tree(ctx, ref)
		if err != nil || !still {
			return ses, t, err
		}
		active, err := e.unfinished(ctx, ref)
		switch {
		case err != nil:
			return nil, nil, err
		case active != "":
			return nil, nil, occupied(active, "Wait for it, cancel it, or name an entry.")
		}
		now, err := e.store.Session(ctx, ref.Tenant, ref.ID)
		if err != nil {
			return nil, nil, notFound("session", ref.ID, err)
		}
		if now.Leaf == ses.Leaf {
			return ses, t, nil
		}
	}
}

func (e *Engine) fits(n int) error {
	if m := e.cfg.Trees.Entries; m > 0 && n > m {
		return &fault.Error{Kind: fault.Invalid, Err: fmt.Errorf("these are %d entries, and at most %d are copied at once", n, m), Hint: "sessions.max_entries of agentd.yaml says how many."}
	}
	return nil
}

// belongings are what a fork takes along besides entries: artifacts that they speak of,
// and what requests leave out.
func (e *Engine) belongings(ctx context.Context, ref Ref, from []*store.Entry, at map[string]string, tx *store.Tx) error {
	fork := tx.NewSessions[0].ID
	runs := map[string]bool{"": true}
	for _, en := range from {
		runs[strings.TrimPrefix(en.RunID, session.Foreign)] = true
	}
	artifacts, err := e.store.Artifacts(ctx, ref.Tenant, ref.ID)
	if err != nil {
		return notFound("session", ref.ID, err)
	}
	for _, a := range artifacts {
		if a.Expired == 0 && runs[strings.TrimPrefix(a.RunID, session.Foreign)] {
			tx.BlobUses = append(tx.BlobUses, store.BlobUse{SessionID: fork, BlobID: a.ID, RunID: a.RunID, CallID: a.CallID, Name: a.Name, Created: a.Created})
		}
	}
	left, err := e.store.Quarantined(ctx, ref.Tenant, ref.ID)
	if err != nil {
		return notFound("session", ref.ID, err)
	}
	for _, q := range left {
		if id := at[q.EntryID]; id != "" {
			c := *q
			c.SessionID, c.EntryID = fork, id
			tx.Quarantine = append(tx.Quarantine, &c)
		}
	}
	return nil
}

// ImportRequest makes a session of a file.
type ImportRequest struct {
	Tenant string
	File   io.Reader
	// Title is that of the session; "" is the file's.
	Title string
	// IdempotencyKey makes a repetition return the first session.
	IdempotencyKey string
}

// Imported is a session that was made of a file.
type Imported struct {
	*SessionView
	// Format is "agentd" or "pi".
	Format  string `json:"format"`
	Entries int    `json:"entries"`
	// Artifacts is how many came with their contents.
	Artifacts int `json:"artifacts,omitempty"`
	// Warnings say what was left out, or taken otherwise than it is written, and where.
	Warnings []string `json:"warnings,omitempty"`
}

// Import makes a new session of a file of agentd or of Pi. Everything gets new ids: no
// file can name what is there. The error says which line is wrong.
func (e *Engine) Import(ctx context.Context, req ImportRequest) (*Imported, error) {
	sum := sha256.New()
	l := e.cfg.Trees
	f, err := session.Read(io.TeeReader(req.File, sum), &session.FileLimits{Line: l.LineBytes, Bytes: l.FileBytes, Entries: l.Entries, Artifacts: l.ArtifactBytes})
	var at *session.LineError
	switch {
	case errors.Is(err, session.ErrTooLarge):
		return nil, &fault.Error{Kind: fault.Invalid, Field: "file", Err: err, Hint: "sessions.max_entries, max_file_bytes and max_line_bytes of agentd.yaml are the limits."}
	case errors.As(err, &at):
		return nil, &fault.Error{Kind: fault.Invalid, Field: "file", Err: err, Hint: "A file has a header of type session and an entry a line, as GET /sessions/{id}/export writes it; or it is one of Pi."}
	case err != nil:
		return nil, internal("engine.Import", err)
	}
	now := e.now()
	ses := &store.Session{ID: "ses_" + e.cfg.NewID(), Title: req.Title, Metadata: f.Metadata, Created: now, Updated: now}
	if ses.Title == "" {
		ses.Title = strings.ToValidUTF8(f.Title, "\uFFFD")
	}
	if req.IdempotencyKey != "" {
		ses.IdempotencyKey, ses.RequestHash = req.IdempotencyKey, requestHash([]byte("import "+req.Title+"\n"+hex.EncodeToString(sum.Sum(nil))))
	}
	ids := run.State{EntryBase: entryBase(e.cfg.NewID(), "")}
	tx := &store.Tx{Tenant: req.Tenant, NewSessions: []*store.Session{ses}}
	var to map[string]string
	tx.Entries, to = session.Rename(f.Entries, ses.ID, ids.NextEntry)
	session.Disown(tx.Entries) // copies
	for _, en := range tx.Entries {
		if en.Created == 0 {
			en.Created = now
		}
	}
	ses.Leaf = to[f.Leaf]
	if n := len(tx.Entries); n > 0 && tx.Entries[n-1].ID != ses.Leaf {
		// The leaf has to sort last.
		mark := &store.Entry{SessionID: ses.ID, ID: ids.NextEntry(), Parent: ses.Leaf, Kind: session.KindBranch, Created: now}
		if mark.Body, err = json.Marshal(session.Branch{From: tx.Entries[n-1].ID}); err != nil {
			return nil, internal("engine.Import", err)
		}
		tx.Entries = append(tx.Entries, mark)
		ses.Leaf = mark.ID
	}
	warnings := e.imported(f, tx, to, now)
	v, err := e.created(ctx, "engine.Import", tx)
	if err != nil {
		return nil, err
	}
	if len(tx.BlobUses) > 0 {
		e.trimArtifacts(Ref{req.Tenant, v.ID})
	}
	return &Imported{SessionView: v, Format: f.Format, Entries: len(f.Entries), Artifacts: len(tx.BlobUses), Warnings: warnings}, nil
}
