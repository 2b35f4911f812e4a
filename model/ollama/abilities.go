package ollama

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"agentd/internal/llmwire"
	"agentd/message"
	"agentd/model"
)

// Abilities are what the server says that a model can do.
type Abilities struct {
	// Thinking, Images and Tools: whether it can. All are true of a model whose
	// server does not say.
	Thinking, Images, Tools bool
	// Levels says that thinking has levels, and can not be turned off.
	Levels bool
	// ContextWindow is how many tokens the model was made for, 0 if the server does
	// not say. What it is loaded with is often less.
	ContextWindow int
	// NumCtx is how many tokens the model says that it is to be loaded with, 0 if it
	// does not.
	NumCtx int
}

func everything() Abilities { return Abilities{Thinking: true, Images: true, Tools: true} }

// maxKnown bounds how many models are remembered.
const maxKnown = 1000

// matters reports whether a request depends on what the model can do.
func matters(req *model.Request) bool {
	if req.Thinking != "" && req.Thinking != model.ThinkingOff {
		return true
	}
	return slices.ContainsFunc(req.Messages, func(m message.Message) bool {
		return slices.ContainsFunc(m.Content, func(b message.Block) bool { return b.Type == message.BlockImage })
	})
}

// Abilities asks the server what a model can do; it is asked once for each. A server
// that knows neither the model nor the question says nothing: the call itself will tell.
// Every error is a *model.Error.
func (p *Provider) Abilities(ctx context.Context, id string) (Abilities, error) {
	call := llmwire.Begin(ctx, p.options.Idle)
	defer call.End()
	key, failed := call.Key(p.credential)
	headers := p.headers.Clone()
	if key != "" {
		headers.Set("Authorization", "Bearer "+key)
	}
	var can Abilities
	if failed == nil {
		can, failed = p.abilities(ctx, id, headers)
	}
	if failed != nil {
		failed.Provider, failed.Model = p.name, id
		return Abilities{}, llmwire.Hide(failed, key)
	}
	return can, nil
}

func (p *Provider) abilities(ctx context.Context, id string, headers http.Header) (Abilities, *model.Error) {
	p.mu.Lock()
	can, ok := p.known[id]
	p.mu.Unlock()
	if ok {
		return can, nil
	}
	call := llmwire.Begin(ctx, p.options.Idle)
	defer call.End()
	body := append(llmwire.AppendString(llmwire.AppendKey([]byte{'{'}, "model"), id), '}')
	res, failed := call.Post(p.client, p.base+"/api/show", headers, body)
	if failed != nil {
		return Abilities{}, failed
	}
	text, failed := call.Whole(maxShow)
	switch {
	case failed != nil:
		return Abilities{}, failed
	case res.StatusCode != http.StatusOK:
		return everything(), nil
	}
	can = abilitiesOf(text)
	p.mu.Lock()
	if len(p.known) < maxKnown {
		p.known[id] = can
	}
	p.mu.Unlock()
	return can, nil
}

// maxShow is how much of an answer is read: it holds licences and templates.
const maxShow = 4 << 20

func abilitiesOf(text []byte) Abilities {
	can := everything()
	if !llmwire.Valid(text) {
		return can
	}
	if list := llmwire.Get(text, "capabilities"); !llmwire.Null(list) {
		can = Abilities{}
		for c := llmwire.Array(list); ; {
			one, ok := c.Element()
			if !ok {
				break
			}
			switch llmwire.String(one) {
			case "thinking":
				can.Thinking = true
			case "vision":
				can.Images = true
			case "tools":
				can.Tools = true
			}
		}
	}
	family := llmwire.String(llmwire.Get(llmwire.Get(text, "details"), "family"))
	can.Levels = family == "gptoss" || family == "gpt-oss"
	can.NumCtx = numCtx(llmwire.String(llmwire.Get(text, "parameters")))
	for c := llmwire.Object(llmwire.Get(text, "model_info")); ; {
		key, value, ok := c.Member()
		if !ok {
			return can
		}
		if strings.HasSuffix(string(key), ".context_length") {
			can.ContextWindow = tokens(llmwire.Int(value))
		}
	}
}
