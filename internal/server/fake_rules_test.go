package server_test

import (
	"context"

	"agentd/fault"
	"agentd/internal/engine"
)

// Rules implements server.People: the fake's sessions have one rule, "rule_1".
func (e *fake) Rules(ctx context.Context, session engine.Ref) ([]*engine.RuleView, error) {
	if _, err := e.Session(ctx, session); err != nil {
		return nil, err
	}
	return []*engine.RuleView{{ID: "rule_1", Tool: "write", Allows: `{"path":"a"}`, CreatedAt: "2026-01-01T00:00:00.000Z"}}, nil
}

// Revoke implements server.People.
func (e *fake) Revoke(ctx context.Context, session engine.Ref, rule string) error {
	if _, err := e.Session(ctx, session); err != nil {
		return err
	}
	if rule != "" && rule != "rule_1" {
		return fault.New(fault.NotFound, "no such rule")
	}
	return nil
}
