package server

import (
	"net/http"

	"agentd/internal/engine"
	"agentd/internal/server/wire"
)

// listRules gives what people allowed for the rest of a session.
func (s *Server) listRules(w http.ResponseWriter, r *http.Request) error {
	rules, err := s.engine.Rules(r.Context(), ref(r))
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, struct {
		Rules []*engine.RuleView `json:"rules"`
	}{list(rules)})
	return nil
}

// revokeRules takes one rule back, or all of a session.
func (s *Server) revokeRules(w http.ResponseWriter, r *http.Request) error {
	if err := s.engine.Revoke(r.Context(), ref(r), r.PathValue("rule")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
