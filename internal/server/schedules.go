package server

import (
	"context"
	"net/http"
	"net/url"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/server/wire"
	"agentd/internal/timetable"
)

// Schedules keeps and shows what starts runs at certain times. Errors are *fault.Error.
type Schedules interface {
	List(ctx context.Context, tenant, cursor string, limit int) (views []*timetable.View, next string, err error)
	Get(ctx context.Context, ref engine.Ref) (*timetable.View, error)
	Create(ctx context.Context, tenant string, req timetable.Request) (*timetable.View, error)
	Update(ctx context.Context, ref engine.Ref, req timetable.Request) (*timetable.View, error)
	Delete(ctx context.Context, ref engine.Ref) error
	// Trigger starts a run now; with a key a repetition gives the first run.
	Trigger(ctx context.Context, ref engine.Ref, key string) (*engine.Run, error)
}

func (s *Server) timetable() (Schedules, error) {
	if s.opts.Schedules == nil {
		return nil, fault.New(fault.Unsupported, "this server has no schedules")
	}
	return s.opts.Schedules, nil
}

func (s *Server) listSchedules(w http.ResponseWriter, r *http.Request) error {
	table, err := s.timetable()
	if err != nil {
		return err
	}
	q, err := query(r, "limit", "cursor")
	if err != nil {
		return err
	}
	limit, err := limitOf(q)
	if err != nil {
		return err
	}
	all, cursor, err := table.List(r.Context(), tenant(r), q.Get("cursor"), limit)
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, struct {
		Schedules []*timetable.View `json:"schedules"`
		Cursor    string            `json:"cursor,omitempty"`
	}{list(all), cursor})
	return nil
}

func (s *Server) getSchedule(w http.ResponseWriter, r *http.Request) error {
	table, err := s.timetable()
	if err != nil {
		return err
	}
	v, err := table.Get(r.Context(), ref(r))
	if err == nil {
		wire.WriteJSON(w, http.StatusOK, v)
	}
	return err
}

func (s *Server) createSchedule(w http.ResponseWriter, r *http.Request) error {
	table, err := s.timetable()
	if err != nil {
		return err
	}
	var req timetable.Request
	if err := s.read(w, r, &req); err != nil {
		return err
	}
	v, err := table.Create(r.Context(), tenant(r), req)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/schedules/"+url.PathEscape(v.ID))
	wire.WriteJSON(w, http.StatusCreated, v)
	return nil
}

func (s *Server) updateSchedule(w http.ResponseWriter, r *http.Request) error {
	table, err := s.timetable()
	if err != nil {
		return err
	}
	var req timetable.Request
	if err := s.read(w, r, &req); err != nil {
		return err
	}
	v, err := table.Update(r.Context(), ref(r), req)
	if err == nil {
		wire.WriteJSON(w, http.StatusOK, v)
	}
	return err
}

func (s *Server) deleteSchedule(w http.ResponseWriter, r *http.Request) error {
	table, err := s.timetable()
	if err == nil {
		err = table.Delete(r.Context(), ref(r))
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

func (s *Server) triggerSchedule(w http.ResponseWriter, r *http.Request) error {
	table, err := s.timetable()
	if err != nil {
		return err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	if err := s.readOptional(w, r, &struct{}{}); err != nil {
		return err
	}
	run, err := table.Trigger(r.Context(), ref(r), key)
	if err != nil {
		return err
	}
	return started(w, r, run)
}
