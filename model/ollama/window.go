package ollama

import (
	"context"
	"net/http"
	"strings"
	"time"

	"agentd/internal/llmwire"
)

const (
	// psTime is how long the question for loaded models may take: it is asked behind a
	// reply, and nobody waits for more.
	psTime = 2 * time.Second
	// windowTime is how long an answer to it counts: a server that is started again may
	// load its models otherwise.
	windowTime = 5 * time.Minute
	maxPS      = 1 << 20
)

// loaded is how many tokens a model was loaded with, and when the server said so.
type loaded struct {
	window int
	asked  time.Time
}

// Window is how many tokens a request to a model may have, 0 if that is not known yet. It
// asks nobody. What counts is, in this order: Options.NumCtx, which each request loads the
// model with; what the server said that the model is loaded with (/api/ps), after the
// first reply; the model's own num_ctx (/api/show). How many tokens a model was made for
// counts only where the server passes it on (…-cloud): on machines of one's own the server
// loads most of them with less.
func (p *Provider) Window(id string) int {
	if p.options.NumCtx > 0 {
		return p.options.NumCtx
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.loaded[id]; l.window > 0 {
		return l.window
	}
	can := p.known[id]
	if can.NumCtx == 0 && PassedOn(id) {
		return can.ContextWindow
	}
	return can.NumCtx
}

// PassedOn reports whether the server only passes a model on, to ollama.com.
func PassedOn(id string) bool {
	return strings.HasSuffix(id, "-cloud") || strings.HasSuffix(id, ":cloud")
}

// lookAgain asks what a model is loaded with, now that it is, unless that is known. Nothing
// depends on it: whatever goes wrong, the next reply asks again.
func (p *Provider) lookAgain(ctx context.Context, id string, headers http.Header) {
	if p.options.NumCtx > 0 {
		return
	}
	now := p.options.Now()
	p.mu.Lock()
	l, ok := p.loaded[id]
	fresh := ok && now.Sub(l.asked) < windowTime
	if !fresh && (ok || len(p.loaded) < maxKnown) {
		l.asked = now
		p.loaded[id] = l // others need not ask too
	}
	p.mu.Unlock()
	if fresh {
		return
	}
	if PassedOn(id) { // it is loaded elsewhere
		_, _ = p.abilities(ctx, id, headers)
		return
	}
	ctx, stop := context.WithTimeout(ctx, psTime)
	defer stop()
	call := llmwire.Begin(ctx, -1)
	defer call.End()
	res, failed := call.Get(p.client, p.base+"/api/ps", headers)
	if failed != nil {
		return
	}
	text, failed := call.Whole(maxPS)
	if failed != nil || res.StatusCode != http.StatusOK {
		return
	}
	if window := windowOf(text, id); window > 0 {
		p.mu.Lock()
		if _, ok := p.loaded[id]; ok {
			p.loaded[id] = loaded{window, now}
		}
		p.mu.Unlock()
	}
}

// windowOf finds how many tokens a model is loaded with in an answer of /api/ps; 0 if it
// is not in it.
func windowOf(text []byte, id string) int {
	if !llmwire.Valid(text) {
		return 0
	}
	for list := llmwire.Array(llmwire.Get(text, "models")); ; {
		one, ok := list.Element()
		if !ok {
			return 0
		}
		for _, key := range []string{"name", "model"} {
			if name := llmwire.String(llmwire.Get(one, key)); name == id || name == id+":latest" {
				return tokens(llmwire.Int(llmwire.Get(one, "context_length")))
			}
		}
	}
}

// tokens is a number of them that a server gave.
func tokens(n int64) int { return int(min(max(n, 0), 1<<31-1)) }

// numCtx is num_ctx in the parameters of a model, which are lines of names and values.
func numCtx(parameters string) int {
	for line := range strings.Lines(parameters) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" {
			return tokens(llmwire.Int([]byte(f[1])))
		}
	}
	return 0
}
