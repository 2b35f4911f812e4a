package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"agentd/event"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
)

// poolModel is a call of a model, with the request as its home has made it.
type poolModel struct {
	// Name is that of the model among the profile's.
	Name    string         `json:"name"`
	Request *model.Request `json:"request"`
}

// poolModelResult is a reply or a failure.
type poolModelResult struct {
	Reply *message.Message `json:"reply,omitempty"`
	Error *poolModelError  `json:"error,omitempty"`
	// Began: something came from the provider.
	Began bool `json:"began,omitempty"`
	// Told is how many pieces of the reply were passed on.
	Told int `json:"told,omitempty"`
	// Window is the model's as far as it became known where it was called.
	Window int `json:"window,omitempty"`
}

// poolModelError is a model.Error as it is stored.
type poolModelError struct {
	Class        model.Class      `json:"class"`
	Provider     string           `json:"provider,omitempty"`
	Model        string           `json:"model,omitempty"`
	Status       int              `json:"status,omitempty"`
	Code         string           `json:"code,omitempty"`
	Message      string           `json:"message,omitempty"`
	RetryAfterMS int64            `json:"retry_after_ms,omitempty"`
	RequestID    string           `json:"request_id,omitempty"`
	Usage        *message.Usage   `json:"usage,omitempty"`
	Partial      *message.Message `json:"partial,omitempty"`
	// Unreached: the provider was never spoken to.
	Unreached bool `json:"unreached,omitempty"`
}

func (e *poolModelError) err() *model.Error {
	out := &model.Error{Class: e.Class, Provider: e.Provider, Model: e.Model, Status: e.Status, Code: e.Code, Message: e.Message,
		RetryAfter: time.Duration(e.RetryAfterMS) * time.Millisecond, RequestID: e.RequestID, Usage: e.Usage}
	if e.Unreached {
		out.Err = &net.OpError{Op: "dial", Err: errors.New(e.Message)}
	}
	return out
}

// modelAway is whether the calls of a model are made at other nodes.
func (d *driver) modelAway(m *Model) bool { return d.claim != nil && !d.e.node.serves(m.pool()) }

// poolProvider is a model whose calls are made at nodes of its pool. Its clocks are
// theirs.
type poolProvider struct {
	d     *driver
	m     Model
	eff   run.CallModel
	epoch int64
}

// Generate implements model.Provider.
func (p *poolProvider) Generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
	d := p.d
	fails := func(class model.Class, text string) (*message.Message, error) {
		return nil, &model.Error{Class: class, Provider: p.m.Name, Model: req.Model, Message: text}
	}
	body, err := (&poolModel{Name: p.m.Name, Request: req}).body()
	if err != nil {
		return fails(model.ClassInvalid, err.Error())
	}
	// Who asks for the same after a crash of the home finds what was asked for.
	sum := sha256.Sum256(body)
	id := fmt.Sprintf("model/%d/%d/%s", p.eff.Step, p.eff.Attempt, hex.EncodeToString(sum[:6]))
	if err := d.e.node.commit(ctx, &store.Tx{Tenant: d.ref.Tenant, Fences: []store.Fence{{RunID: d.ref.ID, Epoch: p.epoch}}, Effects: []store.EffectChange{{Op: store.AskEffect,
		Effect: store.Effect{RunID: d.ref.ID, ID: id, Kind: poolKindModel, Version: poolVersion, Pool: p.m.pool(), Class: "read", Body: body, Created: d.e.now()}}}}); err != nil {
		if errors.Is(err, store.ErrFenced) {
			d.stop() // another node has the run
		}
		return nil, model.AsError(ctx, p.m.Name, req.Model, fmt.Errorf("the pool could not be asked: %w", err))
	}
	s := &poolStream{name: p.m.Name, emit: emit}
	w := &waited{d: d, id: id, pool: p.m.pool(), what: p.m.Name, step: p.eff.Step, epoch: p.epoch, rung: make(chan struct{}, 1), news: s.take}
	w.seen = func(x *store.Effect) {
		// What was read may be older than what was heard since.
		if s.attempt != 0 && x.Attempt >= s.attempt && (x.Lost || x.Attempt != s.attempt) {
			p.void()
			*s = poolStream{name: s.name, emit: emit, least: s.attempt + 1}
		}
	}
	x, why := w.wait(ctx)
	switch {
	case why == waitOver:
		return fails(model.ClassOpen, strings.TrimPrefix(w.failure(why), "Not executed: "))
	case why == waitLost && ctx.Err() == nil:
		return fails(model.ClassConnection, w.failure(waitLost))
	case x == nil && ctx.Err() != nil:
		return nil, model.AsError(ctx, p.m.Name, req.Model, context.Cause(ctx))
	case x == nil:
		return fails(model.ClassCancelled, w.failure(why))
	}
	var r poolResult
	if err := json.Unmarshal(x.Result, &r); err != nil || r.Model == nil {
		return fails(model.ClassMalformed, "what the pool answered can not be read")
	}
	if r.Model.Began {
		s.start()
	}
	if r.Model.Window > 0 {
		d.e.windows.Store(d.windowAt(&p.m), r.Model.Window)
	}
	if e := r.Model.Error; e != nil {
		if e.Partial != nil {
			emit(model.StreamEvent{Type: model.StreamStart, Partial: e.Partial})
		}
		return nil, e.err()
	}
	if r.Model.Told > 0 && (s.gap || s.attempt != x.Attempt || s.count != r.Model.Told) {
		s.rest(r.Model.Reply)
	}
	return r.Model.Reply, nil
}

// void tells readers to drop what they have of the reply: who wrote it is gone, and
// another node makes the call.
func (p *poolProvider) void() {
	d := p.d
	d.stream.dropLive()
	d.stream.publishLive(event.Event{RunID: d.ref.ID, Time: d.e.now(), Step: p.eff.Step, Type: event.ModelRetry,
		Data: &event.Retry{Attempt: p.eff.Attempt, Model: p.m.Name, Class: string(model.ClassConnection), Message: "the node that made the call is gone: another one makes it"}})
}

// poolPiece is a part of a reply on its way to its home. The bus may lose some: they are
// counted, and what follows a gap waits for the reply.
type poolPiece struct {
	Attempt int              `json:"a"`
	Count   int              `json:"n"`
	Type    model.StreamType `json:"t"`
	Index   int              `json:"i,omitempty"`
	Delta   string           `json:"d,omitempty"`
	Call    *message.Block   `json:"c,omitempty"`
}

// poolStream is what a home hears of a reply.
type poolStream struct {
	name string
	emit func(model.StreamEvent)
	// attempt is whose reply it is, least the first that counts.
	attempt, least int
	count          int
	began          bool
	gap            bool
	blocks         map[int]*poolText
	calls          map[string]bool
}

// poolText is a text that grows. What was read of it stays as it is without a copy.
type poolText struct {
	kind message.BlockType
	text strings.Builder
}

func (s *poolStream) start() {
	if !s.began {
		s.began = true
		s.emit(model.StreamEvent{Type: model.StreamStart, Partial: s.soFar()})
	}
}

// soFar is the reply so far. Who gets it may keep it.
func (s *poolStream) soFar() *message.Message {
	m := &message.Message{Role: message.RoleAssistant}
	m.Provider, m.Model, _ = strings.Cut(s.name, "/")
	for _, i := range slices.Sorted(maps.Keys(s.blocks)) {
		m.Content = append(m.Content, message.Block{Type: s.blocks[i].kind, Text: s.blocks[i].text.String()})
	}
	return m
}

// take hears a piece.
func (s *poolStream) take(x note) {
	var p poolPiece
	if json.Unmarshal(x.Data, &p) != nil || s.gap || p.Attempt < s.least {
		return
	}
	if s.attempt == 0 {
		s.attempt = p.Attempt
	}
	if p.Attempt != s.attempt || p.Count != s.count+1 {
		s.gap = true
		return
	}
	s.count = p.Count
	s.start()
	s.tell(p)
}

func (s *poolStream) tell(p poolPiece) {
	if s.blocks == nil {
		s.blocks, s.calls = map[int]*poolText{}, map[string]bool{}
	}
	ev := model.StreamEvent{Type: p.Type, Index: p.Index, Delta: p.Delta, ToolCall: p.Call}
	switch p.Type {
	case model.StreamTextDelta, model.StreamThinkingDelta:
		b := s.blocks[p.Index]
		if b == nil {
			b = &poolText{kind: message.BlockText}
			if p.Type == model.StreamThinkingDelta {
				b.kind = message.BlockThinking
			}
			s.blocks[p.Index] = b
		}
		b.text.WriteString(p.Delta)
	case model.StreamToolStart:
		if p.Call != nil {
			s.calls[p.Call.ID] = true
		}
	}
	ev.Partial = s.soFar()
	s.emit(ev)
}

// rest tells what the bus did not bring of a reply.
func (s *poolStream) rest(m *message.Message) {
	s.start()
	for i := range m.Content {
		b := &m.Content[i]
		have := ""
		if t := s.blocks[i]; t != nil {
			have = t.text.String()
		}
		switch b.Type {
		case message.BlockText, message.BlockThinking:
			if more, ok := strings.CutPrefix(b.Text, have); ok && more != "" {
				t := model.StreamTextDelta
				if b.Type == message.BlockThinking {
					t = model.StreamThinkingDelta
				}
				s.tell(poolPiece{Type: t, Index: i, Delta: more})
			}
		case message.BlockToolCall:
			if !s.calls[b.ID] {
				s.tell(poolPiece{Type: model.StreamToolStart, Index: i, Call: b})
			}
		}
	}
}

// performModel calls a model as its home would, under the same clocks.
func (n *node) performModel(m *making, row *store.Run, c *poolModel) *poolModelResult {
	failed := func(e *model.Error, began bool, partial *message.Message) *poolModelResult {
		out := &poolModelError{Class: e.Class, Provider: e.Provider, Model: e.Model, Status: e.Status, Code: e.Code, Message: e.Message,
			RetryAfterMS: e.RetryAfter.Milliseconds(), RequestID: e.RequestID, Usage: e.Usage, Unreached: e.Class == model.ClassConnection && free(e)}
		if e.Class == model.ClassCancelled && partial != nil {
			out.Partial = partial
		}
		return &poolModelResult{Error: out, Began: began}
	}
	a, err := n.e.agentOf(m.ctx, m.ref.Tenant, row)
	if err != nil {
		return failed(&model.Error{Class: model.ClassInvalid, Provider: c.Name, Message: describe(err)}, false, nil)
	}
	var used *Model
	for i := range a.Models {
		if a.Models[i].Name == c.Name {
			used = &a.Models[i]
		}
	}
	if used == nil {
		used = a.find(c.Name)
	}
	if s := a.Compaction.Model; used == nil && s != nil && s.Name == c.Name {
		used = s
	}
	if used == nil || c.Request == nil {
		return failed(&model.Error{Class: model.ClassNotFound, Provider: c.Name, Message: fmt.Sprintf("the node %s that serves the pool has no such model in this profile, or no key for it", n.cfg.Name)}, false, nil)
	}
	if !m.lease.holds() {
		m.cancel(errLeaving)
		return nil
	}
	c.Request.Schema = noNull(c.Request.Schema)
	for i := range c.Request.Tools {
		c.Request.Tools[i].Schema = noNull(c.Request.Tools[i].Schema)
	}
	g := &poolGeneration{n: n, m: m, idle: a.ModelIdle, total: a.ModelTotal, name: used.Name}
	msg, merr, partial := g.run(used, c.Request)
	if merr != nil {
		return failed(merr, g.began.Load(), partial)
	}
	window := 0
	if used.Learned != nil {
		window = used.Learned()
	}
	return &poolModelResult{Reply: message.Clean(msg), Began: g.began.Load(), Told: g.count, Window: window}
}

// noNull is a schema as its home had it: older ones wrote null where there is none, which
// is read as a schema and would be sent to the provider.
func noNull(schema json.RawMessage) json.RawMessage {
	if string(schema) == "null" {
		return nil
	}
	return schema
}

// poolGeneration is a model call that is made for another node.
type poolGeneration struct {
	n           *node
	m           *making
	idle, total time.Duration
	name        string
	began       atomic.Bool
	count       int
}

// run gives the reply, or the error and what there is of the reply, if the adapter no
// longer writes to it.
func (g *poolGeneration) run(used *Model, req *model.Request) (*message.Message, *model.Error, *message.Message) {
	ctx, cancel := context.WithCancelCause(g.m.ctx)
	defer cancel(nil)
	var watchdog *time.Timer
	if g.idle > 0 {
		watchdog = time.AfterFunc(g.idle, func() { cancel(errIdle) })
		defer watchdog.Stop()
	}
	if g.total > 0 {
		defer time.AfterFunc(g.total, func() { cancel(errTotal) }).Stop()
	}
	var partial *message.Message
	emit := func(ev model.StreamEvent) {
		switch {
		case watchdog == nil:
		case ev.Type == model.StreamWaiting:
			watchdog.Stop()
		default:
			watchdog.Reset(g.idle)
		}
		if ev.Type == model.StreamWaiting || ev.Type == model.StreamAdmitted || ctx.Err() != nil {
			return
		}
		g.began.Store(true)
		partial = ev.Partial
		g.pass(ev)
	}
	type outcome struct {
		msg, partial *message.Message
		err          error
	}
	done := make(chan outcome, 1)
	g.n.e.workers.run(func() {
		var o outcome
		defer func() {
			if p := recover(); p != nil {
				o.msg, o.err = nil, &model.Error{Class: model.ClassMalformed, Provider: g.name, Message: fmt.Sprint("the adapter panicked: ", p)}
			}
			if partial != nil {
				whole := *partial
				o.partial = &whole
			}
			done <- o
		}()
		o.msg, o.err = used.Provider.Generate(ctx, req, emit)
	})
	var o outcome
	select {
	case o = <-done:
	case <-ctx.Done():
		select {
		case o = <-done:
		case <-time.After(g.n.e.cfg.AbandonAfter):
			o.err = &model.Error{Class: model.ClassCancelled, Provider: g.name, Message: "the call did not end and was abandoned"}
		}
	}
	if o.err == nil && o.msg == nil {
		o.err = &model.Error{Class: model.ClassMalformed, Provider: g.name, Model: req.Model, Message: "the adapter gave neither a reply nor an error"}
	}
	if o.err == nil {
		if o.msg.Timestamp == 0 {
			o.msg.Timestamp = g.n.e.now()
		}
		return o.msg, nil, nil
	}
	merr := model.AsError(ctx, g.name, req.Model, o.err)
	late := func(cause error, text string) {
		merr = &model.Error{Class: model.ClassTimeout, Provider: g.name, Model: req.Model, Err: cause, Usage: merr.Usage, Message: text}
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errIdle):
		late(cause, fmt.Sprintf("nothing came for %s", g.idle))
	case errors.Is(cause, errTotal):
		late(cause, fmt.Sprintf("the call took longer than %s", g.total))
	}
	return nil, merr, o.partial
}

// pass passes a piece of the reply on to the home.
func (g *poolGeneration) pass(ev model.StreamEvent) {
	send := func(p poolPiece) {
		g.count++
		p.Attempt, p.Count, p.Type, p.Index = g.m.attempt, g.count, ev.Type, ev.Index
		if raw, err := json.Marshal(p); err == nil {
			g.n.hub.send(note{Kind: noteNews, Tenant: g.m.ref.Tenant, Run: g.m.ref.ID, ID: g.m.ref.call, Data: raw})
		}
	}
	switch ev.Type {
	case model.StreamTextDelta, model.StreamThinkingDelta:
		for _, s := range texts(ev.Delta, progressPiece) {
			send(poolPiece{Delta: s})
		}
	case model.StreamToolStart:
		p := poolPiece{}
		if ev.ToolCall != nil {
			p.Call = &message.Block{Type: message.BlockToolCall, ID: ev.ToolCall.ID, Name: ev.ToolCall.Name}
		}
		send(p)
	}
}
