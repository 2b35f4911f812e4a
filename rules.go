package agentd

import (
	"context"

	"agentd/internal/engine"
)

// Rule is what a person allowed for the rest of a session.
type Rule = engine.RuleView

// Rules gives what people allowed for the rest of a session, oldest first.
func (rt *Runtime) Rules(ctx context.Context, sessionID string) ([]*Rule, error) {
	return rt.engine.Rules(ctx, rt.ref(sessionID))
}

// Revoke takes a rule of a session back, or all of them if rule is "".
func (rt *Runtime) Revoke(ctx context.Context, sessionID, rule string) error {
	if err := rt.writable("Revoke"); err != nil {
		return err
	}
	return rt.engine.Revoke(ctx, rt.ref(sessionID), rule)
}
