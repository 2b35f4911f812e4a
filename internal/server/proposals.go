package server

import (
	"context"
	"net/http"

	"agentd/internal/engine"
	"agentd/internal/server/wire"
)

// decideBody says which proposals are meant.
type decideBody struct {
	ProposalID string `json:"proposal_id"`
	Uncertain  string `json:"uncertain"`
	RealID     string `json:"real_id"`
}

func (s *Server) listProposals(w http.ResponseWriter, r *http.Request) error {
	views, err := s.engine.Proposals(r.Context(), ref(r))
	return writeProposals(w, views, err)
}

func (s *Server) applyProposals(w http.ResponseWriter, r *http.Request) error {
	return s.decide(w, r, s.engine.Apply)
}

func (s *Server) discardProposals(w http.ResponseWriter, r *http.Request) error {
	return s.decide(w, r, s.engine.Discard)
}

func (s *Server) decide(w http.ResponseWriter, r *http.Request, f func(context.Context, engine.DecideRequest) ([]*engine.ProposalView, error)) error {
	var b decideBody
	if err := s.read(w, r, &b); err != nil {
		return err
	}
	if err := oneOf("uncertain", b.Uncertain, "retry", "done"); err != nil {
		return err
	}
	views, err := f(r.Context(), engine.DecideRequest{Tenant: tenant(r), Run: r.PathValue("id"), Proposal: b.ProposalID, By: by(r),
		Uncertain: b.Uncertain, RealID: b.RealID})
	return writeProposals(w, views, err)
}

func writeProposals(w http.ResponseWriter, views []*engine.ProposalView, err error) error {
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, struct {
		Proposals []*engine.ProposalView `json:"proposals"`
	}{list(views)})
	return nil
}
