package openai

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/server/wire"
)

// Completions answers a chat: it starts a run, or joins the one that an earlier
// request with the same Idempotency-Key started, and tells it.
func (f *Face) Completions(w http.ResponseWriter, r *http.Request) error {
	raw, err := wire.ReadBody(w, r, f.cfg.Limits)
	if err != nil {
		return err
	}
	c, b, err := decodeCall(raw)
	if err != nil {
		return err
	}
	req := &c.start
	req.Ephemeral = true // the client keeps the history
	req.Tenant, req.Profile, req.IdempotencyKey = wire.RequestOf(r.Context()).Tenant, c.model, r.Header.Get("Idempotency-Key")
	req.Caller = engine.CallerOf(wire.RequestOf(r.Context()).Key)
	if named := wire.UserOf(r, f.cfg.UserHeader); named != "" {
		req.User = named
	}
	if len(req.IdempotencyKey) > 255 {
		return invalid("Idempotency-Key", "Idempotency-Key has more than 255 characters.")
	}
	task := isTask(r.Header, b, c)
	if task {
		f.oneShot(req)
	} else if req.Profile == "" {
		if req.Profile = f.cfg.DefaultProfile; req.Profile == "" {
			return newError(http.StatusBadRequest, "missing_required_parameter", "model", "model is missing: name a profile.")
		}
	}
	if !task {
		if err := f.conversation(r, raw, req); err != nil {
			return err
		}
	}
	started, err := f.start(r.Context(), c)
	if err != nil {
		return err
	}
	ref := engine.Ref{Tenant: req.Tenant, ID: started.ID}
	wire.RequestOf(r.Context()).Run = started.ID
	h := w.Header()
	h.Set("X-Agentd-Run-Id", started.ID)
	h.Set("X-Agentd-Session-Id", started.SessionID)
	if started.Rates != nil {
		rateHeaders(h, started.Rates)
	}
	if len(c.ignored) > 0 {
		h.Set("X-Agentd-Ignored", strings.Join(c.ignored, ", "))
	}
	a := &answer{id: "chatcmpl-" + started.ID, created: f.cfg.Now().Unix(), model: c.model, fingerprint: fingerprint(started)}
	n := &narrator{engine: f.engine, ref: ref, hold: started.JSON || req.Overrides.JSON}
	f.clients.join(ref)
	gone := true // also after a panic
	defer func() {
		if gone {
			f.clients.lose(ref, req.IdempotencyKey != "")
		} else {
			f.clients.leave(ref)
		}
	}()
	if c.stream {
		err = f.stream(w, r, c, a, n)
	} else {
		err = f.whole(w, r, a, n)
	}
	// A client whose key has ended is as good as gone, but is told.
	left := errors.Is(err, wire.ErrGone)
	if gone = left || errors.Is(err, wire.ErrKeyEnded); left {
		return nil
	}
	return err
}

// start starts the run. A model that is not a profile gets the default one, if
// there is a default.
func (f *Face) start(ctx context.Context, c *call) (*engine.Run, error) {
	started, err := f.engine.Start(ctx, c.start)
	if fault.KindOf(err) != fault.NotFound || err == nil {
		return started, err
	}
	asked := c.start.Profile
	if f.cfg.DefaultProfile == "" || asked == f.cfg.DefaultProfile {
		return nil, unknownModel(asked)
	}
	c.start.Profile = f.cfg.DefaultProfile
	if started, err = f.engine.Start(ctx, c.start); err != nil {
		if fault.KindOf(err) == fault.NotFound {
			return nil, unknownModel(f.cfg.DefaultProfile)
		}
		return nil, err
	}
	c.model = started.Profile
	return started, nil
}

// fingerprint names what answered.
func fingerprint(r *engine.Run) string {
	if r.ProfileVersion == "" {
		return "fp_agentd"
	}
	return "fp_" + r.ProfileVersion
}

// collector is the speaker of an answer that is not streamed.
type collector struct {
	text, thoughts []byte
	// place is how long both were at the mark.
	place [2]int
}

func (c *collector) content(s string) bool   { c.text = append(c.text, s...); return true }
func (c *collector) reasoning(s string) bool { c.thoughts = append(c.thoughts, s...); return true }
func (c *collector) mark()                   { c.place = [2]int{len(c.text), len(c.thoughts)} }
func (c *collector) rollback() bool {
	c.text, c.thoughts = c.text[:c.place[0]], c.thoughts[:c.place[1]]
	return true
}

// whole answers in one piece. Nothing was sent before, so every failure is an
// HTTP error.
func (f *Face) whole(w http.ResponseWriter, r *http.Request, a *answer, n *narrator) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		select {
		case <-f.cfg.Stream.Closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	var c collector
	n.to = &c
	end, err := n.follow(ctx)
	switch {
	case wire.KeyEnded(ctx) != nil:
		return wire.KeyEnded(ctx)
	case r.Context().Err() != nil:
		return wire.ErrGone
	case ctx.Err() != nil:
		return closing(n.ref.ID)
	case err != nil:
		return err
	}
	wire.WriteJSON(w, http.StatusOK, a.completion(&c, end))
	return nil
}

// closing is the error of an answer that a shutdown cut short.
func closing(runID string) *Error {
	return newError(http.StatusServiceUnavailable, "unavailable", "", "the server is shutting down; the run goes on: GET /runs/%s", runID)
}

// chunks is the speaker of a streamed answer.
type chunks struct {
	a   *answer
	out *wire.Out
	// begun is whether the first chunk, with the role, was sent.
	begun bool
}

func (c *chunks) put(fill func(b []byte) []byte) bool {
	b, ok := c.out.Begin()
	if !ok {
		return false
	}
	if !c.begun {
		c.begun = true
		b = c.a.role(b)
	}
	c.out.End(fill(b))
	return true
}

func (c *chunks) mark()          {}
func (c *chunks) rollback() bool { return false }

func (c *chunks) content(s string) bool {
	return c.put(func(b []byte) []byte { return c.a.delta(b, `"content":`, s) })
}

func (c *chunks) reasoning(s string) bool {
	return c.put(func(b []byte) []byte { return c.a.delta(b, `"reasoning_content":`, s) })
}

// stream answers in chunks.
func (f *Face) stream(w http.ResponseWriter, r *http.Request, c *call, a *answer, n *narrator) error {
	a.prepare()
	st := wire.NewStream(w, f.cfg.Stream)
	sp := &chunks{a: a}
	err := st.Run(r.Context(), func(ctx context.Context, out *wire.Out) error {
		sp.out, n.to = out, sp
		end, err := n.follow(ctx)
		if err != nil {
			return err
		}
		sp.put(func(b []byte) []byte { return a.finish(b, end, c.includeUsage) })
		return nil
	})
	switch {
	case err == nil:
		return nil
	case wire.KeyEnded(r.Context()) != nil && st.Started():
		_ = st.Write(a.failure(nil, asError(r.Context(), wire.KeyEnded(r.Context()))))
		return wire.ErrGone
	case wire.KeyEnded(r.Context()) != nil:
		return wire.KeyEnded(r.Context())
	case errors.Is(err, wire.ErrGone) || r.Context().Err() != nil:
		return wire.ErrGone
	case !st.Started():
		if errors.Is(err, wire.ErrClosing) {
			return closing(n.ref.ID)
		}
		return err
	}
	var b []byte
	if !sp.begun {
		b = a.role(b)
	}
	var failed *runFailure
	if errors.As(err, &failed) && !failed.internal() && !failed.provider() {
		text := failed.say()
		if n.spoke {
			text = "\n\n" + text
		}
		end := ending{finish: "stop", usage: failed.usage}
		if failed.cause.Kind == "refused" {
			end.finish = "content_filter"
		}
		b = a.finish(a.delta(b, `"content":`, text), end, c.includeUsage)
	} else {
		e := asError(r.Context(), err)
		if errors.Is(err, wire.ErrClosing) {
			e = closing(n.ref.ID)
		} else if failed == nil || failed.internal() {
			wire.RequestOf(r.Context()).Err = err
			f.cfg.Log.ErrorContext(r.Context(), "a chat stream failed", "request_id", wire.RequestOf(r.Context()).ID, "run_id", n.ref.ID, "error", err)
		}
		b = a.failure(b, e)
	}
	if st.Write(b) != nil {
		return wire.ErrGone
	}
	return nil
}
