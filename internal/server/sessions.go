package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/server/wire"
)

func (s *Server) createSession(w http.ResponseWriter, r *http.Request) error {
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	var b struct {
		Title    string          `json:"title"`
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := s.readOptional(w, r, &b); err != nil {
		return err
	}
	if err := object("metadata", b.Metadata); err != nil {
		return err
	}
	view, err := s.engine.CreateSession(r.Context(), engine.SessionRequest{Tenant: tenant(r), Title: b.Title, Metadata: given(b.Metadata), IdempotencyKey: key})
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/sessions/"+url.PathEscape(view.ID))
	wire.WriteJSON(w, http.StatusCreated, view)
	return nil
}

func (s *Server) listSessions(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "limit", "cursor", "ephemeral")
	if err != nil {
		return err
	}
	limit, err := limitOf(q)
	if err != nil {
		return err
	}
	f := engine.SessionFilter{Cursor: q.Get("cursor"), Limit: limit}
	switch v := q.Get("ephemeral"); v {
	case "", "false":
	case "true":
		f.Ephemeral = true
	default:
		return &fault.Error{Kind: fault.Invalid, Field: "ephemeral", Err: fmt.Errorf("%q is not true or false", v)}
	}
	views, cursor, err := s.engine.Sessions(r.Context(), tenant(r), f)
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, struct {
		Sessions []*engine.SessionView `json:"sessions"`
		Cursor   string                `json:"cursor,omitempty"`
	}{list(views), cursor})
	return nil
}

func (s *Server) getSession(w http.ResponseWriter, r *http.Request) error {
	view, err := s.engine.Session(r.Context(), ref(r))
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, view)
	return nil
}

func (s *Server) deleteSession(w http.ResponseWriter, r *http.Request) error {
	if err := s.engine.DeleteSession(r.Context(), ref(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) listEntries(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "limit", "after")
	if err != nil {
		return err
	}
	limit, err := limitOf(q)
	if err != nil {
		return err
	}
	views, err := s.engine.Entries(r.Context(), ref(r), q.Get("after"), limit)
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, struct {
		Entries []*engine.EntryView `json:"entries"`
	}{list(views)})
	return nil
}
