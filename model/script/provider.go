package script

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/tidwall/gjson"

	"agentd/fault"
	"agentd/message"
	"agentd/model"
)

// Options are the optional settings of a [Provider]. The zero value is the default.
type Options struct {
	// Sleep waits for latencies and stalls. Nil means [Sleep]: real time.
	Sleep SleepFunc
	// Name is the provider's name in messages and errors. Empty means "script".
	Name string
}

// Provider is a [model.Provider] that answers from a script, in process. It is
// safe for concurrent use.
type Provider struct {
	player *Player
	sleep  SleepFunc
	name   string
}

// New returns a provider that plays the script.
func New(s *Script, o *Options) *Provider {
	p := &Provider{player: NewPlayer(s), sleep: Sleep, name: "script"}
	if o != nil {
		if o.Sleep != nil {
			p.sleep = o.Sleep
		}
		if o.Name != "" {
			p.name = o.Name
		}
	}
	return p
}

// Generate implements [model.Provider].
func (p *Provider) Generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, p.fail(ctx, req, err)
	}
	if s := p.player.script; !s.Answers(req.Model) {
		return nil, &model.Error{Class: model.ClassNotFound, Provider: p.name, Model: req.Model, Status: 404,
			Message: "the script " + s.name + " does not answer this model: add it to the script's models"}
	}
	r, err := p.player.Reply(FromRequest(req))
	if err != nil {
		return nil, p.fail(ctx, req, err)
	}
	if r.Fault.Instead() {
		return nil, p.fail(ctx, req, r.Fault.failure())
	}
	m := &message.Message{Role: message.RoleAssistant, API: "script", Provider: p.name, Model: req.Model,
		ResponseID: "resp_" + r.ID, StopReason: r.Stop, Usage: &r.Usage}
	if emit == nil && r.Latency == (Latency{}) && r.Fault == nil {
		m.Content = r.Blocks
	} else {
		m.Content = make([]message.Block, 0, len(r.Blocks))
		if err := r.Play(ctx, p.sleep, &emitter{r: r, m: m, emit: emit}); err != nil {
			if errors.Is(err, ErrFault) {
				err = r.Fault.failure()
			}
			return nil, p.fail(ctx, req, err)
		}
	}
	for i := range m.Content {
		if b := &m.Content[i]; b.Type == message.BlockToolCall && !object(b.Arguments) {
			return nil, p.fail(ctx, req, &model.Error{Class: model.ClassMalformed,
				Message: "the script gives the tool " + b.Name + " arguments that are no JSON object"})
		}
	}
	return m, nil
}

func object(b json.RawMessage) bool {
	s := string(b)
	return gjson.Valid(s) && gjson.Parse(s).IsObject()
}

// fail makes every error a *model.Error that names the provider.
func (p *Provider) fail(ctx context.Context, req *model.Request, err error) error {
	var fe *fault.Error
	if errors.As(err, &fe) {
		msg := fe.Error()
		if fe.Hint != "" {
			msg += " (" + fe.Hint + ")"
		}
		return &model.Error{Class: model.ClassInvalid, Provider: p.name, Model: req.Model, Message: msg, Err: err}
	}
	e := model.AsError(ctx, p.name, req.Model, err)
	e.Provider, e.Model = p.name, req.Model
	return e
}

// emitter turns the pieces of a reply into stream events, and the message into
// what was streamed so far.
type emitter struct {
	r    *Reply
	m    *message.Message
	emit func(model.StreamEvent)
	done int // bytes of the current block
}

func (e *emitter) send(ev model.StreamEvent) error {
	if e.emit != nil {
		ev.Partial = e.m
		e.emit(ev)
	}
	return nil
}

// kinds are the event types of a block: start, delta, end.
func kinds(t message.BlockType) (start, delta, end model.StreamType) {
	switch t {
	case message.BlockThinking:
		return model.StreamThinkingStart, model.StreamThinkingDelta, model.StreamThinkingEnd
	case message.BlockToolCall:
		return model.StreamToolStart, model.StreamToolDelta, model.StreamToolEnd
	}
	return model.StreamTextStart, model.StreamTextDelta, model.StreamTextEnd
}

// Start implements Sink.
func (e *emitter) Start() error { return e.send(model.StreamEvent{Type: model.StreamStart}) }

// BlockStart implements Sink.
func (e *emitter) BlockStart(i int) error {
	b := e.r.Blocks[i]
	start, _, _ := kinds(b.Type)
	e.done = 0
	ev := model.StreamEvent{Type: start, Index: i}
	if b.Type == message.BlockToolCall {
		b.Arguments = json.RawMessage("{}")
		ev.ToolCall = &b
	} else {
		b.Text, b.Signature = "", ""
	}
	e.m.Content = append(e.m.Content, b)
	return e.send(ev)
}

// Delta implements Sink.
func (e *emitter) Delta(i int, piece string) error {
	b := &e.r.Blocks[i]
	_, delta, _ := kinds(b.Type)
	ev := model.StreamEvent{Type: delta, Index: i, Delta: piece}
	e.done += len(piece)
	if b.Type == message.BlockToolCall {
		ev.ToolCall = &e.m.Content[i]
	} else {
		e.m.Content[i].Text = b.Text[:e.done]
	}
	return e.send(ev)
}

// BlockEnd implements Sink.
func (e *emitter) BlockEnd(i int) error {
	b := e.r.Blocks[i]
	_, _, end := kinds(b.Type)
	e.m.Content[i] = b
	ev := model.StreamEvent{Type: end, Index: i, Content: b.Text}
	if b.Type == message.BlockToolCall {
		ev.ToolCall = &b
	}
	return e.send(ev)
}
