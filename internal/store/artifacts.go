package store

import "context"

// Artifact is what is known of a blob that a session uses. It outlives the
// content: of one that was given up it says so.
type Artifact struct {
	SessionID string
	// ID is that of the blob.
	ID string
	// RunID and CallID are the run and the tool call that made it.
	RunID, CallID  string
	Name, MimeType string
	// Size is in bytes.
	Size    int64
	Created int64
	// Expired is when the session gave the content up, 0 while it has it; Why
	// says for what reason, for people.
	Expired int64
	Why     string
}

// ArtifactExpiry gives up the content of an artifact of a session. What is known of
// it stays; the blob goes when no session uses it any more. One that the session
// has given up already, or never had, is ErrNotFound.
type ArtifactExpiry struct {
	SessionID, ID string
	At            int64
	Why           string
}

// Retention is which artifacts are kept. 0 means no limit.
type Retention struct {
	// Before is the time from which on artifacts are kept.
	Before int64
	// Files and Bytes bound what one session has; the newest are kept.
	Files, Bytes int64
}

// Overdue is an artifact that a retention gives up, by the first limit that does.
type Overdue struct {
	Tenant, SessionID, ID string
	// Limit is "age", "files" or "bytes".
	Limit string
}

// ArtifactReader reads what sessions use.
type ArtifactReader interface {
	// Artifacts gives those of a session, oldest first, with those whose content
	// was given up.
	Artifacts(ctx context.Context, tenant, sessionID string) ([]*Artifact, error)
	// ArtifactUses gives what the sessions of a tenant know of one blob, oldest
	// first. None is no error.
	ArtifactUses(ctx context.Context, tenant, id string) ([]*Artifact, error)
	// Overdue gives artifacts that a retention gives up, at most limit: of one
	// session, or of all sessions of all tenants if it is nil.
	Overdue(ctx context.Context, r Retention, session *SessionRef, limit int) ([]Overdue, error)
}

// Quarantine says that requests leave an entry, or a part of it, out: a provider
// refused them because of it. The entry stays as it is. It goes with the session.
type Quarantine struct {
	SessionID, EntryID string
	// What is left out: "images", "text" (all but its beginning), or "message"
	// (all that it says; that it was there remains).
	What string
	// Reason is for people and models, RunID the run that found out.
	Reason, RunID string
	Created       int64
}

// QuarantineReader reads what is left out of conversations.
type QuarantineReader interface {
	// Quarantined gives what is left out of a session's conversation, oldest first.
	Quarantined(ctx context.Context, tenant, sessionID string) ([]*Quarantine, error)
}
