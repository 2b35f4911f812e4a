package server_test

import (
	"context"

	"agentd/internal/engine"
)

// Artifacts implements server.Catalogue: the fake's sessions have one that is kept and
// one that is not.
func (e *fake) Artifacts(ctx context.Context, session engine.Ref) ([]*engine.ArtifactView, error) {
	if _, err := e.Session(ctx, session); err != nil {
		return nil, err
	}
	const at = "2026-01-01T00:00:00.000Z"
	return []*engine.ArtifactView{
		{ID: "a1", SessionID: session.ID, RunID: "run_1", ToolCallID: "c1", Name: "grep.txt", MimeType: "text/plain", Bytes: 9, CreatedAt: at, ExpiredAt: at, Reason: "old"},
		{ID: "a2", SessionID: session.ID, Name: "grep.txt", MimeType: "text/plain", Bytes: 10, CreatedAt: at, ExpiresAt: at}}, nil
}
