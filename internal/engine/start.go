package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentd/fault"
	"agentd/internal/policy"
	"agentd/internal/prompt"
	"agentd/internal/rate"
	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/internal/skill"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
)

// spec is what a run was started with, as it is stored.
type spec struct {
	// EntryBase is an id from which the run's entry ids are made.
	EntryBase string `json:"entry_base"`
	// Prompt is the inputs that the run starts with.
	Prompt []string `json:"prompt,omitempty"`
	// From is where it starts; nil is the session's leaf when it does.
	From      *string   `json:"from,omitempty"`
	Overrides Overrides `json:"overrides"`
	// SessionMode is the mode that the request sets, "" for that of the session; MaxMode is
	// that of the run above, which a stricter one only narrows.
	SessionMode string `json:"session_mode,omitempty"`
	MaxMode     string `json:"max_mode,omitempty"`
	// Depth is how many runs are above it.
	Depth int `json:"depth,omitempty"`
	// Pots are the budgets that it shares with the runs above it.
	Pots []run.Pot `json:"pots,omitempty"`
	// Page and References are those of the request, for what reads them later.
	Page       json.RawMessage   `json:"page,omitempty"`
	References []json.RawMessage `json:"references,omitempty"`
	// Compact: the run is there to compact its session.
	Compact *CompactRequest `json:"compact,omitempty"`
	// Leaves: what it is to summarise is the way that the session leaves by it.
	Leaves *leaving `json:"leaves,omitempty"`
}

// Start accepts a run. It is durable when Start returns, and is driven at once if
// its session is free. A repetition under the same idempotency key returns the
// first run.
func (e *Engine) Start(ctx context.Context, req StartRequest) (accepted *Run, err error) {
	if e.ctx.Err() != nil {
		return nil, fault.New(fault.Unavailable, "the engine is closing")
	}
	if err := req.validate(); err != nil {
		return nil, err
	}
	if err := e.attached(&req); err != nil {
		return nil, err
	}
	// Servers that take their time are waited for by the run's driver.
	agent, err := e.cfg.Agents.Outline(ctx, req.Tenant, req.Profile)
	if err != nil {
		return nil, err
	}
	options := agent.Options
	req.Overrides.options(&options, false)
	defer func() {
		if accepted != nil {
			accepted.JSON = formOf(&options) != nil
		}
	}()
	if agent.IgnoreIdempotencyKeys && !req.Scheduled {
		req.IdempotencyKey = ""
	}
	if _, err := e.newToolbox(agent, &req.Overrides, req.Mode == Autonomous); err != nil {
		return nil, &fault.Error{Op: "engine.Start", Kind: fault.Invalid, Err: err, Field: "tools"}
	}
	if r, err := e.repetition(ctx, &req); r != nil || err != nil {
		return r, err
	}
	if req.skill, err = agent.calls(req.Input); err != nil {
		return nil, err
	}
	own := agent.Caps
	own.lower(req.Overrides.caps())
	if err := priced(agent, e.above(req.Tenant, "", "", nil), own); err != nil {
		return nil, err
	}
	row, tx, err := e.accept(ctx, &req, agent)
	if err != nil {
		return nil, err
	}
	ses, begun := Ref{req.Tenant, row.SessionID}, false
	var permit *rate.Permit
	defer func() {
		if !begun {
			permit.Cancel()
		}
	}()
	// A request that is refused must not have cancelled anything, and one that
	// starts no run is not counted.
	cancels := req.WhenBusy == Interrupt || req.WhenBusy == Rollback
	if cancels {
		if permit, err = e.admit(ctx, &req, agent); err != nil {
			return nil, err
		}
	}
	if req.SessionID != "" {
		if r, err := e.whenBusy(ctx, &req, ses); r != nil || err != nil {
			return r, err
		}
	}
	if !cancels {
		if permit, err = e.admit(ctx, &req, agent); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		// Who has given up gets no run.
		return nil, &fault.Error{Op: "engine.Start", Kind: fault.Cancelled, Err: err}
	}
	if e.node != nil {
		r, err := e.startShared(ctx, &req, row, tx)
		if begun = err == nil && r.ID == row.ID; begun && permit != nil {
			r.Rates = &permit.Status
		}
		return r, err
	}
	if req.WhenBusy != Reject {
		e.reserve(ses, row.ID, false)
	} else if active, err := e.reserveAlone(ctx, ses, row.ID); err != nil {
		return nil, err
	} else if active != "" {
		return nil, busy(active)
	}
	if err := e.put(ctx, tx); err != nil {
		if errors.Is(err, store.ErrUnknown) {
			e.maybeAccepted(ses, row.ID)
			return nil, internal("engine.Start", err)
		}
		e.leave(ses, row.ID)
		return e.startFailed(ctx, req.Tenant, err)
	}
	begun = true
	if e.confirm(ses, row.ID) {
		var f *fresh
		if len(tx.NewSessions) > 0 {
			f = &fresh{row: *row, leaf: tx.NewSessions[0].Leaf, entries: tx.Entries, inputs: tx.Inputs}
		}
		e.driveFresh(Ref{req.Tenant, row.ID}, f)
	}
	r, err := e.view(context.WithoutCancel(ctx), req.Tenant, row)
	if err == nil && permit != nil {
		r.Rates = &permit.Status
	}
	return r, err
}

func busy(runID string) error {
	if !strings.HasPrefix(runID, "run_") {
		return &fault.Error{Kind: fault.Conflict, Field: "session_id", Err: errors.New("the session is being changed or deleted"), Hint: "Try again."}
	}
	return &fault.Error{Kind: fault.Conflict, Field: "session_id", Err: fmt.Errorf("the session is busy with run %s", runID),
		Hint: "Wait for it, cancel it, or start with when_busy: enqueue, steer, interrupt or rollback."}
}

func (req *StartRequest) validate() error {
	bad := func(field, format string, args ...any) error {
		return &fault.Error{Kind: fault.Invalid, Field: field, Err: fmt.Errorf(format, args...)}
	}
	if req.Tenant == "" {
		req.Tenant = store.DefaultTenant
	}
	if req.Mode == "" {
		req.Mode, req.anyMode = Interactive, true
	}
	switch {
	case policy.IsMode(req.Mode):
		return &fault.Error{Kind: fault.Invalid, Field: "mode", Err: fmt.Errorf("%q is a mode of the session, not of the run", req.Mode), Hint: "Give it as session_mode; mode is interactive or autonomous."}
	case req.Mode != Interactive && req.Mode != Autonomous:
		return bad("mode", "%q is not a mode: use interactive or autonomous", req.Mode)
	case req.SessionMode != "" && !policy.IsMode(req.SessionMode):
		return noMode(req.SessionMode)
	case req.SessionMode != "" && req.Compact != nil:
		return bad("session_mode", "a compaction does not change the mode")
	case req.Compact != nil && (req.SessionID == "" || len(req.Input)+len(req.History) > 0):
		return bad("compact", "it goes with a session that is there, and with no input")
	case req.Compact != nil && req.WhenBusy != "" && req.WhenBusy != Enqueue && req.WhenBusy != Reject:
		return bad("when_busy", "%q does not go with a compaction: use enqueue or reject", req.WhenBusy)
	case req.Compact != nil && len(req.Compact.Instructions) > maxCompactInstructions:
		return &fault.Error{Kind: fault.TooLarge, Field: "instructions", Err: fmt.Errorf("%d bytes, and the limit is %d", len(req.Compact.Instructions), maxCompactInstructions),
			Hint: "Say in fewer words what the summary should dwell on."}
	case len(req.Input) == 0 && len(req.History) == 0 && req.Compact == nil:
		return bad("input", "there is nothing to do: give input")
	case len(req.History) > 0 && req.SessionID != "" && req.From == "":
		return bad("history", "a session that exists has its own history")
	case req.From != "" && req.SessionID == "":
		return bad("from", "only a session that exists has entries: give session_id")
	case req.From != "" && req.WhenBusy == Steer:
		return bad("from", "what steers a run goes on from where that is: use another when_busy")
	}
	for i := range req.Input {
		if err := req.Input[i].Validate(); err != nil {
			return bad(fmt.Sprintf("input[%d]", i), "%w", err)
		}
	}
	if err := checkWords(req.Input); err != nil {
		return err
	}
	if err := checkUser(req.User); err != nil {
		return err
	}
	if err := checkImages("input", req.Input); err != nil {
		return err
	}
	for i := range req.History {
		if err := checkImages(fmt.Sprintf("history[%d].content", i), req.History[i].Content); err != nil {
			return err
		}
	}
	switch req.WhenBusy {
	case "", Enqueue, Reject, Steer, Interrupt, Rollback:
	default:
		return bad("when_busy", "%q is not a choice: use reject, enqueue, steer, interrupt or rollback", req.WhenBusy)
	}
	for name, raw := range map[string]json.RawMessage{"context": req.Context, "metadata": req.Metadata} {
		if len(raw) > 0 && !json.Valid(raw) {
			return bad(name, "it is not JSON")
		}
	}
	return nil
}

// accept makes the rows of a run.
func (e *Engine) accept(ctx context.Context, req *StartRequest, agent *Agent) (*store.Run, *store.Tx, error) {
	now := e.now()
	id := e.cfg.NewID()
	tx := &store.Tx{Tenant: req.Tenant}
	sp := spec{EntryBase: id, Overrides: req.Overrides, Page: req.Page, References: req.References, Compact: req.Compact, Leaves: req.leaves, SessionMode: req.SessionMode}
	row := &store.Run{ID: "run_" + id, SessionID: req.SessionID, Profile: agent.Profile, Version: agent.Version, Mode: req.Mode, User: req.user(),
		IdempotencyKey: req.IdempotencyKey, RequestHash: req.hash(), Metadata: req.Metadata, Created: now,
		RunUpdate: store.RunUpdate{Status: string(run.Queued)}}
	if req.SessionID == "" {
		ses := &store.Session{ID: "ses_" + e.cfg.NewID(), Title: title(req.Input), Ephemeral: req.Ephemeral, Created: now, Updated: now}
		row.SessionID = ses.ID
		e.history(tx, ses, req.History, entryBase(e.cfg.NewID(), ""), now)
		tx.NewSessions = append(tx.NewSessions, ses)
		// The history's entries sort ahead of the run's.
		sp.EntryBase = e.cfg.NewID()
	} else if _, err := e.store.Session(ctx, req.Tenant, req.SessionID); err != nil {
		return nil, nil, notFound("session", req.SessionID, err)
	} else if req.From != "" {
		if err := e.from(ctx, req, row.ID, &sp, tx, now); err != nil {
			return nil, nil, err
		}
	}
	if len(req.Input) > 0 {
		in, err := e.input(row.ID, "prompt", req.blocks(), now)
		if err != nil {
			return nil, nil, err
		}
		tx.Inputs = append(tx.Inputs, in)
		sp.Prompt = append(sp.Prompt, in.ID)
	}
	var err error
	if row.Spec, err = json.Marshal(sp); err != nil {
		return nil, nil, &fault.Error{Op: "engine.Start", Kind: fault.Invalid, Err: err}
	}
	st := run.New(row.ID, row.SessionID)
	row.State = st.Encode()
	tx.NewRuns = append(tx.NewRuns, row)
	return row, tx, nil
}

func (e *Engine) input(runID, kind string, blocks []message.Block, now int64) (*store.Input, error) {
	m := userMessage(blocks, now)
	body, err := json.Marshal(&m)
	if err != nil {
		return nil, &fault.Error{Op: "engine.input", Kind: fault.Invalid, Err: err}
	}
	return &store.Input{RunID: runID, ID: "in_" + e.cfg.NewID(), Kind: kind, Body: body, Created: now}, nil
}

// history writes a client's own history into a new session.
func (e *Engine) history(tx *store.Tx, ses *store.Session, msgs []message.Message, base string, now int64) {
	s := run.State{EntryBase: base}
	for i := range msgs {
		body, err := json.Marshal(&msgs[i])
		if err != nil {
			continue
		}
		id := s.NextEntry()
		tx.Entries = append(tx.Entries, &store.Entry{SessionID: ses.ID, ID: id, Parent: ses.Leaf, Kind: session.KindMessage, Created: now, Body: body})
		ses.Leaf = id
	}
}

// Steer gives a running run a message, which the model gets after the tools under way.
// Blocks of context go with it as with a start: stored with the message, shown where they
// say something new when the model gets it.
func (e *Engine) Steer(ctx context.Context, ref Ref, words []message.Block, about ...ContextBlock) error {
	return e.say(ctx, ref, "steer", words, about)
}

// FollowUp gives a run a message for when it would otherwise end, with what goes with
// it; see [Engine.Steer].
func (e *Engine) FollowUp(ctx context.Context, ref Ref, words []message.Block, about ...ContextBlock) error {
	return e.say(ctx, ref, "follow_up", words, about)
}

func (e *Engine) say(ctx context.Context, ref Ref, kind string, words []message.Block, about []ContextBlock) error {
	if len(words) == 0 {
		return &fault.Error{Kind: fault.Invalid, Field: "input", Err: errors.New("it is empty")}
	}
	err := checkWords(words)
	if err == nil {
		err = checkImages("input", words)
	}
	if err == nil {
		err = e.contextBlocks(about)
	}
	if err != nil {
		return err
	}
	req := StartRequest{Input: words, ContextBlocks: about}
	if strings.HasPrefix(firstText(words), skill.Command) {
		row, err := e.store.Run(ctx, ref.Tenant, ref.ID)
		if err != nil {
			return notFound("run", ref.ID, err)
		}
		agent, err := e.cfg.Agents.Outline(ctx, ref.Tenant, row.Profile)
		if err != nil {
			return err
		}
		if req.skill, err = agent.calls(words); err != nil {
			return err
		}
	}
	return e.enqueue(ctx, ref, kind, req.blocks())
}

// enqueue queues a message that was checked.
func (e *Engine) enqueue(ctx context.Context, ref Ref, kind string, blocks []message.Block) error {
	row, err := e.store.Run(ctx, ref.Tenant, ref.ID)
	if err != nil {
		return notFound("run", ref.ID, err)
	}
	if run.Status(row.Status).Ended() {
		return ended(row)
	}
	in, err := e.input(ref.ID, kind, blocks, e.now())
	if err != nil {
		return err
	}
	var input run.Input = run.Steered{At: run.At{Now: in.Created}, ID: in.ID}
	if kind == "follow_up" {
		input = run.FollowedUp{At: run.At{Now: in.Created}, ID: in.ID}
	}
	return e.send(ctx, ref, queued{input, in}, func(tx *store.Tx) { tx.Inputs = append(tx.Inputs, in) })
}

// queued is an input together with the message that it queues.
type queued struct {
	run.Input
	row *store.Input
}

func ended(row *store.Run) error {
	return &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("run %s has ended: %s", row.ID, row.Status),
		Hint: "Start a new run in session " + row.SessionID + "."}
}

// Cancel asks a run to stop and returns it as it is then. Cancelling a run that
// is being cancelled is fine; one that ended is a conflict.
func (e *Engine) Cancel(ctx context.Context, ref Ref, reason string) (*Run, error) {
	if reason == "" {
		reason = "cancelled"
	}
	return e.cancel(ctx, ref, run.CancelRequested{Reason: reason})
}

func (e *Engine) cancel(ctx context.Context, ref Ref, in run.CancelRequested) (*Run, error) {
	row, err := e.store.Run(ctx, ref.Tenant, ref.ID)
	if err != nil {
		return nil, notFound("run", ref.ID, err)
	}
	if run.Status(row.Status).Ended() {
		if row.Status == string(run.Cancelled) {
			return e.view(ctx, ref.Tenant, row)
		}
		return nil, ended(row)
	}
	in.At = run.At{Now: e.now()}
	err = e.send(ctx, ref, in, nil)
	if fault.KindOf(err) == fault.Conflict {
		// It ended before the cancel reached it, by an earlier cancel or otherwise.
		now, err2 := e.store.Run(ctx, ref.Tenant, ref.ID)
		switch {
		case err2 == nil && now.Status == string(run.Cancelled):
			return e.view(ctx, ref.Tenant, now)
		case err2 == nil && run.Status(now.Status).Ended():
			return nil, ended(now)
		}
	}
	if err != nil {
		return nil, err
	}
	return e.Get(ctx, ref)
}

// narrow lowers the limits of a profile to those of a request.
func (o *Overrides) narrow(s *run.Settings) {
	lower := func(have *int, want int) {
		if want > 0 && (*have == 0 || want < *have) {
			*have = want
		}
	}
	lower(&s.MaxSteps, o.MaxSteps)
	lower(&s.MaxToolCalls, o.MaxToolCalls)
	if ms := int64(o.MaxRunTimeSeconds) * 1000; ms > 0 && (s.MaxRunMS == 0 || ms < s.MaxRunMS) {
		s.MaxRunMS = ms
	}
}

// options applies a request's wishes to a profile's options.
//
// A forced tool choice is for the first step of a turn: forced again after every
// result, the model could never answer.
func (o *Overrides) options(p *prompt.Options, later bool) {
	if o.MaxOutputTokens > 0 && (p.MaxTokens == 0 || o.MaxOutputTokens < p.MaxTokens) {
		p.MaxTokens = o.MaxOutputTokens
	}
	if o.Temperature != nil {
		p.Temperature = o.Temperature
	}
	if o.TopP != nil {
		p.TopP = o.TopP
	}
	if len(o.Stop) > 0 {
		p.Stop = o.Stop
	}
	if o.JSON || len(o.Schema) > 0 {
		p.JSON, p.Schema = true, o.Schema
	}
	if o.ToolChoice != "" && !(later && model.ToolChoice(o.ToolChoice) != model.ToolChoiceNone) {
		p.ToolChoice = model.ToolChoice(o.ToolChoice)
	}
	if o.SingleToolCall {
		p.SingleToolCall = true
	}
	if o.Thinking != "" {
		p.Thinking = model.ThinkingLevel(o.Thinking)
	}
}

// context is what the model gets to see of the conversation.
func (e *Engine) context(ctx context.Context, ref Ref, msgs []message.Message) (out []message.Message, err error) {
	if !e.hooked() {
		return msgs, nil // healed when it was loaded; a run keeps it so
	}
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, &model.Error{Class: model.ClassInvalid, Provider: "TransformContext", Message: fmt.Sprint("it panicked: ", p)}
		}
	}()
	if f := e.cfg.TransformContext; f != nil {
		if msgs, err = f(ctx, ref, slices.Clone(msgs)); err != nil {
			return nil, &model.Error{Class: model.ClassInvalid, Provider: "TransformContext", Message: err.Error(), Err: err}
		}
	}
	if f := e.cfg.ConvertToLLM; f != nil {
		msgs = f(slices.Clone(msgs))
	}
	return session.Heal(msgs), nil
}

// hooked is whether the application has a say in what models see.
func (e *Engine) hooked() bool { return e.cfg.TransformContext != nil || e.cfg.ConvertToLLM != nil }

// prefixed puts the profile's examples ahead of the conversation.
func (d *driver) prefixed(msgs []message.Message) []message.Message {
	if len(d.agent.Examples) == 0 {
		return msgs[:len(msgs):len(msgs)]
	}
	return append(d.agent.Examples[:len(d.agent.Examples):len(d.agent.Examples)], msgs...)
}
