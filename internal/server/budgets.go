package server

import (
	"context"
	"net/http"

	"agentd/internal/engine"
	"agentd/internal/server/wire"
	"agentd/internal/store"
)

// Budgets shows what is used of budgets that runs share.
type Budgets interface {
	Pots(ctx context.Context, tenant string, f engine.PotFilter) (pots []*engine.PotView, cursor string, err error)
}

func (s *Server) listBudgets(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "kind", "id", "limit", "cursor")
	if err != nil {
		return err
	}
	limit, err := limitOf(q)
	if err != nil {
		return err
	}
	if err := oneOf("kind", q.Get("kind"), store.PotRun, store.PotSession, store.PotDay); err != nil {
		return err
	}
	pots, cursor, err := s.engine.Pots(r.Context(), tenant(r), engine.PotFilter{Kind: q.Get("kind"), ID: q.Get("id"), Limit: limit, Cursor: q.Get("cursor")})
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, struct {
		Budgets []*engine.PotView `json:"budgets"`
		Cursor  string            `json:"cursor,omitempty"`
	}{list(pots), cursor})
	return nil
}
