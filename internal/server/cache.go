package server

import (
	"net/http"

	"agentd/internal/server/wire"
)

// sessionCache gives what providers' prompt caches did for a session.
func (s *Server) sessionCache(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "limit", "cursor")
	if err != nil {
		return err
	}
	limit, err := limitOf(q)
	if err != nil {
		return err
	}
	view, err := s.engine.Cache(r.Context(), ref(r), q.Get("cursor"), limit)
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, view)
	return nil
}
