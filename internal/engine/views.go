package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
)

// timestamp formats Unix milliseconds as on the wire; 0 is "".
func timestamp(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format(event.TimeLayout)
}

func notFound(what, id string, err error) error {
	if !errors.Is(err, store.ErrNotFound) {
		return internal("engine", err)
	}
	return &fault.Error{Kind: fault.NotFound, Err: errors.New("there is no " + what + " " + id)}
}

func internal(op string, err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	kind := fault.Internal
	if errors.Is(err, context.Canceled) {
		kind = fault.Cancelled
	} else if errors.Is(err, context.DeadlineExceeded) {
		kind = fault.Timeout
	}
	return &fault.Error{Op: op, Kind: kind, Err: err}
}

func profileRef(name, version string) string {
	if version == "" {
		return name
	}
	return name + "@" + version
}

// Get gives a run.
func (e *Engine) Get(ctx context.Context, ref Ref) (*Run, error) {
	row, err := e.store.Run(ctx, ref.Tenant, ref.ID)
	if err != nil {
		return nil, notFound("run", ref.ID, err)
	}
	return e.view(ctx, ref.Tenant, row)
}

// List gives runs, newest first, without their outputs.
func (e *Engine) List(ctx context.Context, tenant string, f RunFilter) ([]*Run, string, error) {
	rows, cursor, err := e.store.Runs(ctx, tenant, store.RunFilter{SessionID: f.SessionID, Status: f.Status, Limit: f.Limit, Cursor: f.Cursor})
	if err != nil {
		return nil, "", internal("engine.List", err)
	}
	runs := make([]*Run, len(rows))
	for i, row := range rows {
		runs[i] = summary(row)
	}
	return runs, cursor, nil
}

// summary is what the run's row alone tells.
func summary(row *store.Run) *Run {
	r := &Run{ID: row.ID, SessionID: row.SessionID, RootID: row.RootID, ParentID: row.ParentID, Profile: row.Profile,
		ProfileVersion: row.Version, Mode: row.Mode, User: row.User, Status: row.Status, StopReason: row.StopReason, Steps: row.Steps,
		Metadata: readable(row.Metadata), CreatedAt: timestamp(row.Created), StartedAt: timestamp(row.Started), EndedAt: timestamp(row.Ended), LastSeq: row.Seq}
	if r.RootID == "" {
		r.RootID = row.ID
	}
	if !run.Status(row.Status).Ended() {
		r.LastSeq = max(0, row.Seq-reserve) // what is reserved has not happened
	}
	if len(row.Usage) > 0 && json.Unmarshal(row.Usage, &r.Usage) != nil {
		r.Usage = message.Usage{}
	}
	if len(row.Error) > 0 {
		r.Error = new(event.Error)
		if json.Unmarshal(row.Error, r.Error) != nil {
			r.Error = &event.Error{Kind: string(fault.Internal), Message: string(row.Error)}
		}
	}
	return r
}

// readable is JSON that can be shown: one damaged value in a list would make the
// whole list unwritable.
func readable(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || !json.Valid(raw) {
		return nil
	}
	return raw
}

// view is a run with its output, its budget and its open interrupts.
func (e *Engine) view(ctx context.Context, tenant string, row *store.Run) (*Run, error) {
	r := summary(row)
	r.Budget = e.budget(ctx, tenant, row)
	if st, err := run.Decode(row.State); err == nil && st.Status != run.Queued {
		r.SessionMode, r.Model, r.Thinking = modeOf(row), st.Settings.Model, st.Settings.Thinking
	}
	if row.OutputEntry != "" {
		m, err := e.message(ctx, tenant, row.SessionID, row.OutputEntry)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			// The rest of the run can be shown all the same.
			m = &message.Message{Content: []message.Block{message.Text("[the answer can not be read: its entry " + row.OutputEntry + " is damaged]")}}
		}
		r.Output = m.Text()
		if row.StopReason == run.StopClientTools {
			r.ToolCalls = m.ToolCalls()
		}
	}
	if row.Status == string(run.Paused) || row.Status == string(run.Running) {
		open, err := e.openBelow(ctx, tenant, row)
		if err != nil {
			return nil, internal("engine.view", err)
		}
		r.Interrupts = e.interruptViews(ctx, tenant, open)
	}
	if row.Mode == Autonomous {
		var err error
		if r.Proposals, err = e.Proposals(ctx, Ref{tenant, row.ID}); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (e *Engine) message(ctx context.Context, tenant, ses, entry string) (*message.Message, error) {
	row, err := e.store.Entry(ctx, tenant, ses, entry)
	if err != nil {
		return nil, notFound("entry", entry, err)
	}
	var m message.Message
	if err := json.Unmarshal(row.Body, &m); err != nil {
		return nil, internal("engine.message", err)
	}
	return &m, nil
}

// CreateSession makes an empty session. A repetition under the same idempotency
// key gives the first one, as it is by then.
func (e *Engine) CreateSession(ctx context.Context, req SessionRequest) (*SessionView, error) {
	if req.Tenant == "" {
		req.Tenant = store.DefaultTenant
	}
	raw, err := json.Marshal(req)
	if err != nil {
		return nil, &fault.Error{Op: "engine.CreateSession", Kind: fault.Invalid, Field: "metadata", Err: errors.New("it is not JSON")}
	}
	now := e.now()
	ses := &store.Session{ID: "ses_" + e.cfg.NewID(), Title: req.Title, Metadata: req.Metadata, Created: now, Updated: now}
	if req.IdempotencyKey != "" {
		ses.IdempotencyKey, ses.RequestHash = req.IdempotencyKey, requestHash(raw)
	}
	err = e.put(ctx, &store.Tx{Tenant: req.Tenant, NewSessions: []*store.Session{ses}})
	var exists *store.ExistsError
	switch {
	case err == nil:
		return sessionView(ses), nil
	case errors.As(err, &exists) && exists.SameRequest:
		return e.Session(ctx, Ref{req.Tenant, exists.SessionID})
	case errors.As(err, &exists):
		return nil, keyTaken("created session " + exists.SessionID)
	}
	return nil, internal("engine.CreateSession", err)
}

// Append writes a message into a session that no run is active in, and gives its
// entry. Messages of the application's own roles are stored and listed like
// others; what models see of them is up to Config.ConvertToLLM.
func (e *Engine) Append(ctx context.Context, ref Ref, m message.Message) (*EntryView, error) {
	if m.Role == "" || m.Role == message.RoleAssistant && len(m.ToolCalls()) > 0 || m.Role == message.RoleToolResult {
		return nil, &fault.Error{Kind: fault.Invalid, Field: "role", Err: errors.New("only messages without tool calls can be appended"), Hint: "Runs write calls and their results."}
	}
	for i := range m.Content {
		if err := m.Content[i].Validate(); err != nil {
			return nil, &fault.Error{Kind: fault.Invalid, Field: "content", Err: err}
		}
	}
	if err := othersContext("content", m.Content); err != nil {
		return nil, err
	}
	if err := checkImages("content", m.Content); err != nil {
		return nil, err
	}
	id := e.cfg.NewID()
	// Holding the lane keeps runs out until the leaf has moved.
	if active, err := e.reserveAlone(ctx, ref, id); err != nil {
		return nil, err
	} else if active != "" {
		return nil, &fault.Error{Kind: fault.Conflict, Err: errors.New("a run of the session is active"), Hint: "Steer the run, or wait for its end."}
	}
	defer e.leave(ref, id)
	ses, err := e.store.Session(ctx, ref.Tenant, ref.ID)
	if err != nil {
		return nil, notFound("session", ref.ID, err)
	}
	if m.Timestamp == 0 {
		m.Timestamp = e.now()
	}
	tx := &store.Tx{Tenant: ref.Tenant}
	e.history(tx, ses, []message.Message{m}, entryBase(id, ses.Leaf), e.now())
	if len(tx.Entries) == 0 {
		return nil, &fault.Error{Kind: fault.Invalid, Field: "message", Err: errors.New("it is not JSON")}
	}
	session.Disown(tx.Entries) // a block is what its kind says, or is made one that is
	tx.Leaves = []store.Leaf{{SessionID: ref.ID, EntryID: ses.Leaf, Updated: e.now()}}
	if e.node != nil {
		// Only while the lane is still held.
		tx.Holds = []store.Hold{{Name: store.HoldSession + ref.ID, ID: id}}
	}
	if err := e.put(ctx, tx); err != nil {
		return nil, internal("engine.Append", err)
	}
	return entryView(tx.Entries[0]), nil
}

// Session gives a session.
func (e *Engine) Session(ctx context.Context, ref Ref) (*SessionView, error) {
	ses, err := e.store.Session(ctx, ref.Tenant, ref.ID)
	if err != nil {
		return nil, notFound("session", ref.ID, err)
	}
	return sessionView(ses), nil
}

// Sessions lists sessions, most recently updated first: those of clients that
// keep their own history, or the others.
func (e *Engine) Sessions(ctx context.Context, tenant string, f SessionFilter) ([]*SessionView, string, error) {
	rows, next, err := e.store.Sessions(ctx, tenant, store.SessionFilter{Ephemeral: f.Ephemeral, Limit: f.Limit, Cursor: f.Cursor})
	if err != nil {
		return nil, "", internal("engine.Sessions", err)
	}
	views := make([]*SessionView, len(rows))
	for i, ses := range rows {
		views[i] = sessionView(ses)
	}
	return views, next, nil
}

func sessionView(s *store.Session) *SessionView {
	return &SessionView{ID: s.ID, Title: s.Title, Leaf: s.Leaf, Metadata: readable(s.Metadata), Ephemeral: s.Ephemeral, CreatedAt: timestamp(s.Created), UpdatedAt: timestamp(s.Updated)}
}

// Entries gives the session's path from root to leaf, after an entry id ("" for
// the start), at most limit entries (0 for all).
func (e *Engine) Entries(ctx context.Context, ref Ref, after string, limit int) ([]*EntryView, error) {
	ses, err := e.store.Session(ctx, ref.Tenant, ref.ID)
	if err != nil {
		return nil, notFound("session", ref.ID, err)
	}
	path, gap, err := e.path(ctx, ref, ses.Leaf, nil)
	if err != nil {
		return nil, err
	}
	notes, err := e.notes(ctx, ref, path, gap)
	if err != nil {
		return nil, err
	}
	views := []*EntryView{}
	for _, row := range path {
		if row.ID <= after {
			continue
		}
		if limit > 0 && len(views) == limit {
			break
		}
		v := entryView(row)
		v.LeftOut = notes[row.ID]
		views = append(views, v)
	}
	return views, nil
}

func entryView(row *store.Entry) *EntryView {
	v := &EntryView{ID: row.ID, Parent: row.Parent, Kind: row.Kind, RunID: row.RunID, CreatedAt: timestamp(row.Created)}
	if row.Kind == session.KindMessage {
		v.Message = new(message.Message)
		if json.Unmarshal(row.Body, v.Message) == nil {
			v.Context, v.Message.Content = v.Message.Split()
			return v
		}
		v.Message = nil
	}
	if json.Valid(row.Body) {
		v.Data = session.Unasked(row.Kind, row.Body) // what is damaged would make the whole list unwritable
	}
	return v
}

// Usage sums what model calls used and cost, by model. From and to are Unix
// milliseconds, to exclusive; 0 means open. An empty session, or user, means all.
func (e *Engine) Usage(ctx context.Context, tenant string, from, to int64, ses, user string) ([]UsageView, error) {
	rows, err := e.store.Usage(ctx, tenant, store.UsageFilter{SessionID: ses, User: user, From: from, To: to})
	if err != nil {
		return nil, internal("engine.Usage", err)
	}
	views := make([]UsageView, len(rows))
	for i, u := range rows {
		views[i] = UsageView{Provider: u.Provider, Model: u.Model, Calls: u.Calls, Input: u.Input, Output: u.Output,
			CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Cost: message.Money(u.Cost)}
	}
	return views, nil
}
