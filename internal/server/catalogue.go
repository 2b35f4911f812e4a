package server

import (
	_ "embed"
	"mime"
	"net/http"
	"strconv"
	"time"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/server/wire"
	"agentd/message"
)

//go:embed openapi.json
var openapi []byte

func (s *Server) document(w http.ResponseWriter, _ *http.Request) error {
	wire.WriteRaw(w, http.StatusOK, "application/json", openapi)
	return nil
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) error {
	wire.WriteJSON(w, http.StatusOK, struct {
		Status  string `json:"status"`
		Version string `json:"version,omitempty"`
	}{"ok", s.opts.Version})
	return nil
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	select {
	case <-s.leaving:
		return fault.New(fault.Unavailable, "the server is shutting down")
	default:
	}
	if err := s.engine.Ready(r.Context()); err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, map[string]string{"status": "ready"})
	return nil
}

func (s *Server) listProfiles(w http.ResponseWriter, r *http.Request) error {
	views, err := s.engine.Profiles(r.Context(), tenant(r))
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, struct {
		Profiles []engine.ProfileView `json:"profiles"`
	}{list(views)})
	return nil
}

// getArtifact gives what an agent made. It is never shown in place by a browser:
// an agent's HTML must not run with this server's origin.
func (s *Server) getArtifact(w http.ResponseWriter, r *http.Request) error {
	name, mimeType, data, err := s.engine.Artifact(r.Context(), ref(r))
	if err != nil {
		return err
	}
	if mimeType == "" {
		mimeType = "application/octet-stream"
	}
	disposition := "attachment"
	if name != "" {
		if d := mime.FormatMediaType("attachment", map[string]string{"filename": name}); d != "" {
			disposition = d
		}
	}
	w.Header().Set("Content-Disposition", disposition)
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
	wire.WriteRaw(w, http.StatusOK, mimeType, data)
	return nil
}

func (s *Server) getUsage(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "from", "to", "session_id", "user")
	if err != nil {
		return err
	}
	from, err := instant("from", q.Get("from"))
	if err != nil {
		return err
	}
	to, err := instant("to", q.Get("to"))
	if err != nil {
		return err
	}
	views, err := s.engine.Usage(r.Context(), tenant(r), from, to, q.Get("session_id"), q.Get("user"))
	if err != nil {
		return err
	}
	var cost message.Money
	for i := range views {
		cost += views[i].Cost
	}
	wire.WriteJSON(w, http.StatusOK, struct {
		Usage []engine.UsageView `json:"usage"`
		Cost  message.Money      `json:"cost"`
	}{list(views), cost})
	return nil
}

// instant reads a time: RFC 3339, a date, or Unix milliseconds. Empty is 0.
func instant(field, v string) (int64, error) {
	if v == "" {
		return 0, nil
	}
	if ms, err := strconv.ParseInt(v, 10, 64); err == nil && ms >= 0 {
		return ms, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, v); err == nil {
			return t.UnixMilli(), nil
		}
	}
	return 0, &fault.Error{Kind: fault.Invalid, Field: field, Err: fault.New(fault.Invalid, "is not a time"),
		Hint: "Use 2006-01-02, 2006-01-02T15:04:05Z or Unix milliseconds."}
}
