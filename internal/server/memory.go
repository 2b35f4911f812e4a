package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"agentd/fault"
	"agentd/internal/memory"
	"agentd/internal/server/wire"
)

// Memories shows and changes what agents remember. Errors are *fault.Error.
type Memories interface {
	List(ctx context.Context, tenant string, q memory.Query) ([]memory.Entry, error)
	Get(ctx context.Context, tenant, id string, q memory.Query) (memory.Entry, error)
	// Add remembers the text, section and scope of an entry; false if it was known.
	Add(ctx context.Context, tenant string, e memory.Entry, q memory.Query) (memory.Entry, bool, error)
	// Edit changes what is not "".
	Edit(ctx context.Context, tenant, id, text, section string, q memory.Query) (memory.Entry, error)
	Remove(ctx context.Context, tenant, id string, q memory.Query) error
	// Trust makes what others wrote into the project's document the person's own: the
	// entries with these ids, or everything. It gives those that were not.
	Trust(ctx context.Context, tenant string, ids []string, q memory.Query) ([]memory.Entry, error)
}

// memories gives them and whose are meant.
func (s *Server) memories(r *http.Request) (Memories, memory.Query, error) {
	if s.opts.Memories == nil {
		return nil, memory.Query{}, fault.New(fault.Unsupported, "this server has no memory")
	}
	q, err := query(r, "user", "profile")
	return s.opts.Memories, memory.Query{User: q.Get("user"), Profile: q.Get("profile")}, err
}

func (s *Server) listMemory(w http.ResponseWriter, r *http.Request) error {
	m, q, err := s.memories(r)
	if err != nil {
		return err
	}
	all, err := m.List(r.Context(), tenant(r), q)
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, struct {
		Memories []memory.Entry `json:"memories"`
	}{list(all)})
	return nil
}

func (s *Server) getMemory(w http.ResponseWriter, r *http.Request) error {
	m, q, err := s.memories(r)
	if err != nil {
		return err
	}
	e, err := m.Get(r.Context(), tenant(r), r.PathValue("id"), q)
	if err == nil {
		wire.WriteJSON(w, http.StatusOK, e)
	}
	return err
}

func (s *Server) addMemory(w http.ResponseWriter, r *http.Request) error {
	m, q, err := s.memories(r)
	if err != nil {
		return err
	}
	var req struct {
		Text    string       `json:"text"`
		Section string       `json:"section"`
		Scope   memory.Scope `json:"scope"`
	}
	if err := s.read(w, r, &req); err != nil {
		return err
	}
	e, added, err := m.Add(r.Context(), tenant(r), memory.Entry{Text: req.Text, Section: req.Section, Scope: req.Scope}, q)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if added {
		status = http.StatusCreated
		w.Header().Set("Location", "/memory/"+url.PathEscape(e.ID))
	}
	wire.WriteJSON(w, status, e)
	return nil
}

func (s *Server) editMemory(w http.ResponseWriter, r *http.Request) error {
	m, q, err := s.memories(r)
	if err != nil {
		return err
	}
	var req struct {
		Text    string `json:"text"`
		Section string `json:"section"`
	}
	if err := s.read(w, r, &req); err != nil {
		return err
	}
	e, err := m.Edit(r.Context(), tenant(r), r.PathValue("id"), req.Text, req.Section, q)
	if err == nil {
		wire.WriteJSON(w, http.StatusOK, e)
	}
	return err
}

func (s *Server) trustMemory(w http.ResponseWriter, r *http.Request) error {
	m, q, err := s.memories(r)
	if err != nil {
		return err
	}
	var req struct {
		IDs []string `json:"memory_ids"`
		All bool     `json:"all"`
	}
	if err := s.read(w, r, &req); err != nil {
		return err
	}
	if req.All == (len(req.IDs) > 0) {
		return &fault.Error{Op: "memory", Kind: fault.Invalid, Field: "memory_ids", Err: errors.New("it has to be said what is to be trusted"), Hint: "Name entries in memory_ids, or say all: true for everything that is in the file; not both."}
	}
	all, err := m.Trust(r.Context(), tenant(r), req.IDs, q)
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, struct {
		Memories []memory.Entry `json:"memories"`
	}{list(all)})
	return nil
}

func (s *Server) removeMemory(w http.ResponseWriter, r *http.Request) error {
	m, q, err := s.memories(r)
	if err == nil {
		err = m.Remove(r.Context(), tenant(r), r.PathValue("id"), q)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}
