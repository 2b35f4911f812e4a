package server

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/keys"
	"agentd/internal/server/wire"
)

// prometheusType is the content type of Prometheus' text form.
const prometheusType = "text/plain; version=0.0.4; charset=utf-8"

// metrics shows the metrics of the whole process, of all tenants together: they
// are the operator's.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	if tenant(r) != keys.Operator {
		return &fault.Error{Kind: fault.Forbidden, Err: errors.New("metrics are those of all tenants together, and for the operator alone"),
			Hint: "Use an admin key of the tenant " + keys.Operator + "."}
	}
	if s.opts.Metrics == nil {
		return fault.New(fault.NotFound, "this server has no metrics")
	}
	var b bytes.Buffer
	if err := s.opts.Metrics(r.Context(), &b); err != nil {
		return err
	}
	wire.WriteRaw(w, http.StatusOK, prometheusType, b.Bytes())
	return nil
}

// Limits of a page of the trace.
const (
	defaultTrace = 200
	maxTrace     = 2000
)

// trace lists the inputs and effects of a run.
func (s *Server) trace(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "after", "limit")
	if err != nil {
		return err
	}
	number := func(field string, def, least, most int) (int, error) {
		v := q.Get(field)
		if v == "" {
			return def, nil
		}
		n, err := strconv.Atoi(v)
		if err != nil || n < least || n > most {
			return 0, wire.Invalid(field, "must be a number from %d to %d", least, most)
		}
		return n, nil
	}
	after, err := number("after", 0, 0, 1<<31-1)
	if err != nil {
		return err
	}
	limit, err := number("limit", defaultTrace, 1, maxTrace)
	if err != nil {
		return err
	}
	wire.RequestOf(r.Context()).Run = r.PathValue("id")
	rows, more, err := s.engine.Trace(r.Context(), ref(r), after, limit)
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, struct {
		Trace []engine.TraceView `json:"trace"`
		More  bool               `json:"more"`
	}{list(rows), more})
	return nil
}
