package server

import (
	"net/http"

	"agentd/internal/engine"
	"agentd/internal/server/wire"
)

// listArtifacts gives what is known of a session's artifacts.
func (s *Server) listArtifacts(w http.ResponseWriter, r *http.Request) error {
	views, err := s.engine.Artifacts(r.Context(), ref(r))
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, struct {
		Artifacts []*engine.ArtifactView `json:"artifacts"`
	}{list(views)})
	return nil
}
