package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentd/fault"
	"agentd/internal/store"
)

// ArtifactLimits say how long the contents of artifacts are kept. What is known
// of one stays with its session. 0 means no limit.
type ArtifactLimits struct {
	// Keep is how long a session keeps a content.
	Keep time.Duration
	// Files and Bytes bound what one session keeps, its newest. Of a content that
	// is larger than Bytes the beginning is stored.
	Files int
	Bytes int64
}

func (l *ArtifactLimits) any() bool { return l.Keep > 0 || l.Files > 0 || l.Bytes > 0 }

// ArtifactView is an artifact of a session as clients see it.
type ArtifactView struct {
	ID         string `json:"artifact_id"`
	SessionID  string `json:"session_id"`
	RunID      string `json:"run_id,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`
	Name       string `json:"name,omitempty"`
	MimeType   string `json:"mime_type,omitempty"`
	Bytes      int64  `json:"bytes"`
	CreatedAt  string `json:"created_at"`
	// ExpiresAt is when the content goes at the latest; ExpiredAt and Reason say
	// when it went, and why.
	ExpiresAt string `json:"expires_at,omitempty"`
	ExpiredAt string `json:"expired_at,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// Artifacts gives those of a session, oldest first, with those whose content is gone.
func (e *Engine) Artifacts(ctx context.Context, session Ref) ([]*ArtifactView, error) {
	rows, err := e.store.Artifacts(ctx, session.Tenant, session.ID)
	if err != nil {
		return nil, notFound("session", session.ID, err)
	}
	views := make([]*ArtifactView, len(rows))
	for i, a := range rows {
		v := &ArtifactView{ID: a.ID, SessionID: a.SessionID, RunID: a.RunID, ToolCallID: a.CallID, Name: a.Name, MimeType: a.MimeType, Bytes: a.Size,
			CreatedAt: timestamp(a.Created), ExpiredAt: timestamp(a.Expired), Reason: a.Why}
		if keep := e.cfg.Artifacts.Keep; keep > 0 && a.Expired == 0 {
			v.ExpiresAt = timestamp(a.Created + keep.Milliseconds())
		}
		views[i] = v
	}
	return views, nil
}

// Artifact gives a stored payload. Of one that is no longer kept the error, of kind
// NotFound, says since when and why.
func (e *Engine) Artifact(ctx context.Context, ref Ref) (name, mimeType string, data []byte, err error) {
	b, err := e.store.Blob(ctx, ref.Tenant, ref.ID)
	if err == nil {
		return b.Name, b.MimeType, b.Data, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return "", "", nil, internal("engine.Artifact", err)
	}
	uses, err := e.store.ArtifactUses(ctx, ref.Tenant, ref.ID)
	if err != nil {
		return "", "", nil, internal("engine.Artifact", err)
	}
	for i := len(uses) - 1; i >= 0; i-- {
		if uses[i].Expired > 0 {
			return "", "", nil, &fault.Error{Kind: fault.NotFound, Err: errors.New(gone(uses[i])),
				Hint: "artifacts.keep_days, max_files and max_bytes of agentd.yaml say how long contents are kept."}
		}
	}
	return "", "", nil, notFound("artifact", ref.ID, store.ErrNotFound)
}

// gone says of an artifact that its content is no longer kept.
func gone(a *store.Artifact) string {
	s := fmt.Sprintf("artifact %s (%s, %d bytes) expired on %s", a.ID, a.Name, a.Size, timestamp(a.Expired))
	if a.Why != "" {
		s += ": " + a.Why
	}
	return s
}

// retention is what is kept as of now.
func (e *Engine) retention() store.Retention {
	l := &e.cfg.Artifacts
	r := store.Retention{Files: int64(l.Files), Bytes: l.Bytes}
	if l.Keep > 0 {
		r.Before = e.cfg.Now().Add(-l.Keep).UnixMilli()
	}
	return r
}

// why says which limit an artifact was over.
func (l *ArtifactLimits) why(limit string) string {
	switch limit {
	case "files":
		return fmt.Sprintf("its session has %d newer ones (artifacts.max_files)", l.Files)
	case "bytes":
		return fmt.Sprintf("its session has %d bytes of newer ones with it (artifacts.max_bytes)", l.Bytes)
	}
	if l.Keep%(24*time.Hour) == 0 {
		return fmt.Sprintf("it was older than %d days (artifacts.keep_days)", l.Keep/(24*time.Hour))
	}
	return fmt.Sprintf("it was older than %s", l.Keep)
}

// artifactsEvery is how often artifacts are looked for whose time is over. The
// limits of a session are kept whenever one is stored in it.
const artifactsEvery = 10 * time.Minute

// sweepArtifacts gives up what is no longer kept until the engine closes.
func (e *Engine) sweepArtifacts() {
	defer e.wg.Done()
	for {
		pause := artifactsEvery
		if e.expireArtifacts(nil) {
			pause = sweepPause
		}
		select {
		case <-time.After(pause):
		case <-e.ctx.Done():
			return
		}
	}
}

// trimArtifacts gives up what a session has too much of, now that it got another one.
func (e *Engine) trimArtifacts(session Ref) {
	if !e.cfg.Artifacts.any() {
		return
	}
	e.wg.Add(1)
	go func() {
		defer e.wg.Done()
		for e.expireArtifacts(&store.SessionRef{Tenant: session.Tenant, ID: session.ID}) {
		}
	}()
}

// expireArtifacts makes one pass, over one session or all, and reports whether
// there may be more to give up. Each is a commit of its own: whatever happens
// meanwhile, an artifact has its content or says that it has none.
func (e *Engine) expireArtifacts(session *store.SessionRef) (more bool) {
	over, err := e.store.Overdue(e.ctx, e.retention(), session, sweepMost)
	if err != nil {
		if e.ctx.Err() == nil && !errors.Is(err, store.ErrNotFound) {
			e.log.Error("expired artifacts can not be looked for", "error", err)
		}
		return false
	}
	for _, o := range over {
		if e.ctx.Err() != nil {
			return false
		}
		err := e.put(e.ctx, &store.Tx{Tenant: o.Tenant,
			ExpireArtifacts: []store.ArtifactExpiry{{SessionID: o.SessionID, ID: o.ID, At: e.now(), Why: e.cfg.Artifacts.why(o.Limit)}}})
		if err != nil && !errors.Is(err, store.ErrNotFound) { // not found: the session was deleted meanwhile
			e.log.Error("an expired artifact can not be given up", "session", o.SessionID, "artifact", o.ID, "error", err)
			return false
		}
	}
	return len(over) == sweepMost
}
