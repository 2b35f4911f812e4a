package openai

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"time"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/session"
)

// Clients of this protocol send their whole history with each call. One that names its
// conversation gets a session for it, in whose tree the history is found again: what is
// there is not stored twice, and an edit is a branch.

// maxConversation bounds the name of a conversation, in bytes.
const maxConversation = 256

// maxTold bounds how many answers are remembered; others are told again from what is
// stored.
const maxTold = 1024

// maxToldText bounds, in bytes, an answer that is remembered.
const maxToldText = 64 << 10

// tellTimeout bounds the telling of one stored answer.
const tellTimeout = 30 * time.Second

// conversation makes a request go on in the session of the conversation that its client
// names; one that names none is left as it is.
func (f *Face) conversation(r *http.Request, raw []byte, req *engine.StartRequest) error {
	if f.cfg.ConversationHeader == "" {
		return nil
	}
	name := strings.TrimSpace(r.Header.Get(f.cfg.ConversationHeader))
	if name == "" {
		return nil
	}
	if len(name) > maxConversation {
		return invalid(f.cfg.ConversationHeader, "%s has more than %d characters.", f.cfg.ConversationHeader, maxConversation)
	}
	user := req.User
	if user == "" {
		user = "\x00" + req.Caller // no name of a user begins so
	}
	c := &engine.Conversation{Tenant: req.Tenant, Name: name, User: user, Messages: req.History, Input: req.Input, IdempotencyKey: req.IdempotencyKey,
		Told: func(run engine.Ref) (session.Told, bool) { return f.told.of(r.Context(), f.engine, run) }}
	var at engine.Place
	var err error
	for range 3 { // it may be deleted between two steps
		if at, err = f.engine.Converse(r.Context(), c); fault.KindOf(err) != fault.NotFound || err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	sum := sha256.Sum256(raw)
	req.SessionID, req.From, req.History, req.Ephemeral = at.SessionID, at.From, req.History[at.Known:], false
	// Where it goes on is another place the second time; the request is the same.
	req.Fingerprint = "chat " + name + "\n" + hex.EncodeToString(sum[:])
	return nil
}

// answers remembers what clients were told by runs. Its zero value is empty.
type answers struct {
	mu   sync.Mutex
	by   map[engine.Ref]session.Told
	last []engine.Ref
}

func (a *answers) keep(run engine.Ref, t session.Told) {
	if len(t.Text) > maxToldText {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.by == nil {
		a.by = map[engine.Ref]session.Told{}
	}
	if _, there := a.by[run]; !there {
		if a.last = append(a.last, run); len(a.last) > maxTold {
			delete(a.by, a.last[0])
			a.last = a.last[1:]
		}
	}
	a.by[run] = t
}

// of gives what a client was told by a run that has ended, or would have been.
func (a *answers) of(ctx context.Context, e Engine, run engine.Ref) (session.Told, bool) {
	a.mu.Lock()
	t, there := a.by[run]
	a.mu.Unlock()
	if there {
		return t, true
	}
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	var c collector
	n := &narrator{engine: e, ref: run, to: &c}
	end, err := n.follow(ctx)
	if err != nil {
		return t, false
	}
	t = session.Told{Text: string(c.text), Calls: end.calls}
	a.keep(run, t)
	return t, true
}
