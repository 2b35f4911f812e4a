package server

import (
	"net/http"

	"agentd/internal/engine"
	"agentd/internal/server/wire"
)

// compactSession starts the run that compacts a session.
func (s *Server) compactSession(w http.ResponseWriter, r *http.Request) error {
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	var b struct {
		Profile      string `json:"profile"`
		Instructions string `json:"instructions"`
		WhenBusy     string `json:"when_busy"`
	}
	if err := s.readOptional(w, r, &b); err != nil {
		return err
	}
	id := ref(r)
	run, err := s.engine.Compact(r.Context(), engine.StartRequest{Tenant: id.Tenant, SessionID: id.ID, Profile: b.Profile, WhenBusy: engine.WhenBusy(b.WhenBusy),
		IdempotencyKey: key, User: wire.UserOf(r, s.opts.UserHeader), Caller: engine.CallerOf(wire.RequestOf(r.Context()).Key),
		Compact: &engine.CompactRequest{Instructions: b.Instructions}})
	if err != nil {
		return err
	}
	return started(w, r, run)
}
