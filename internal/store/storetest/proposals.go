package storetest

import (
	"encoding/json"

	"agentd/internal/store"
)

// testProposals: calls that were recorded, by run and root, decided once.
func testProposals(f *fixture) {
	f.begin("s1", "root")
	child := run("root.c1", "s2", "running")
	child.RootID = "root"
	f.commit(&store.Tx{NewSessions: []*store.Session{session("s2")}, NewRuns: []*store.Run{child}})
	of := func(runID, id string) *store.Proposal {
		return &store.Proposal{ID: runID + "." + id, RunID: runID, CallID: "c", Name: "make", Effect: "once", Key: "k", Args: json.RawMessage(`{"a":1}`),
			Temp: "tmp", Predicted: "it will", Reason: "why", Created: 5, ProposalUpdate: store.ProposalUpdate{Status: "proposed"}}
	}
	f.commit(&store.Tx{NewProposals: []*store.Proposal{of("root.c1", "p1"), of("root", "p1")}})
	f.again()
	list := func(runID string) []*store.Proposal {
		f.Helper()
		return ok[[]*store.Proposal](f)(f.store.Proposals(f.Context(), tenant, runID))
	}
	equal(f, "of the root", list("root"), []*store.Proposal{of("root.c1", "p1"), of("root", "p1")})
	equal(f, "of the child", list("root.c1"), []*store.Proposal{of("root.c1", "p1")})
	f.refused(&store.Tx{NewProposals: []*store.Proposal{of("root", "p1")}}, store.ErrConflict)
	f.refused(&store.Tx{NewProposals: []*store.Proposal{of("no", "p1")}}, store.ErrNotFound)
	done := store.ProposalUpdate{Status: "applied", Result: "made", Real: json.RawMessage(`"7"`), By: "me", Decided: 9}
	change := store.ProposalChange{ID: "root.p1", From: "proposed", ProposalUpdate: done}
	f.commit(&store.Tx{Proposals: []store.ProposalChange{change}})
	f.refused(&store.Tx{Proposals: []store.ProposalChange{change}}, store.ErrConflict)
	equal(f, "decided", list("root")[1].ProposalUpdate, done)
	_, err := f.store.Proposals(f.Context(), "tenant-b", "root")
	if err == nil {
		f.Fatal("another tenant sees it")
	}
}
