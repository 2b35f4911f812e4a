package store

import (
	"context"
	"encoding/json"
)

// Rule is what a person allowed for the rest of a session: calls of a tool that a
// pattern covers. It goes with its session.
type Rule struct {
	SessionID string
	// ID is unique in the session.
	ID   string
	Tool string
	// Pattern is policy's, Text the same for people, without secrets.
	Pattern json.RawMessage
	Text    string
	// Interrupt is the one that was answered, By who did.
	Interrupt, By string
	Created       int64
}

// RuleRef names a rule of a session.
type RuleRef struct{ SessionID, ID string }

// RuleReader reads rules.
type RuleReader interface {
	// Rules gives the rules of a session, oldest first.
	Rules(ctx context.Context, tenant, sessionID string) ([]*Rule, error)
}
