package enginetest

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"agentd/internal/engine"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/tool"
)

// Newer gives a store as nodes of the next version see and write it: its states are of
// that version, and are read as what they are.
func Newer(st store.Store) store.Store { return &newer{st, st.(store.Cluster)} }

type newer struct {
	store.Store
	store.Cluster
}

func thisVersion() []byte { return fmt.Appendf(nil, `"v":%d`, run.StateVersion) }
func nextVersion() []byte { return fmt.Appendf(nil, `"v":%d`, run.StateVersion+1) }

func (s *newer) Commit(ctx context.Context, tx *store.Tx) error {
	t := *tx
	t.Runs, t.Nodes = nil, nil
	for _, r := range tx.Runs {
		r.State = bytes.Replace(r.State, thisVersion(), nextVersion(), 1)
		t.Runs = append(t.Runs, r)
	}
	for _, n := range tx.Nodes {
		n.Version++
		t.Nodes = append(t.Nodes, n)
	}
	err := s.Store.Commit(ctx, &t)
	tx.Attempt = t.Attempt
	return err
}

func (s *newer) Claim(ctx context.Context, q store.ClaimRequest) ([]store.Claimed, error) {
	q.Version++
	return s.Cluster.Claim(ctx, q)
}

func (s *newer) Run(ctx context.Context, tenant, id string) (*store.Run, error) {
	return understood(s.Store.Run(ctx, tenant, id))
}

func (s *newer) Load(ctx context.Context, tenant, id string) (*store.Run, error) {
	return understood(s.Store.Load(ctx, tenant, id))
}

func understood(r *store.Run, err error) (*store.Run, error) {
	if err == nil {
		r.State = bytes.Replace(r.State, nextVersion(), thisVersion(), 1)
	}
	return r, err
}

// Adjacent tests that nodes of two versions run together: what the newer one wrote, the
// older one gives back, whole, and the newer one goes on with it; the older one goes on
// with what it understands. node makes a worker that is one of several; the first is
// also spoken to.
func Adjacent(t *testing.T, node func(t *testing.T, name string, cfg engine.Config) *engine.Engine) {
	w := New(t, func(t *testing.T, cfg engine.Config) []*engine.Engine {
		return []*engine.Engine{node(t, "old", cfg)}
	}, one(calling("act", `{"n":1}`), approved(tool.Once)))
	r, other := w.Start(engine.StartRequest{}), w.Start(engine.StartRequest{})
	i, j := w.Asks(r.ID), w.Asks(other.ID)
	row, err := w.Config.Store.Run(t.Context(), store.DefaultTenant, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	row.State = bytes.Replace(row.State, thisVersion(), nextVersion(), 1)
	if err := w.Config.Store.Commit(t.Context(), &store.Tx{Tenant: store.DefaultTenant, Runs: []store.RunChange{{ID: r.ID, RunUpdate: row.RunUpdate}}}); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := w.nodes[0].Answer(t.Context(), engine.AnswerRequest{Interrupt: i.ID, Decision: "approve"})
		answered <- err
	}()
	w.Until("the older node has given the run back", func() bool {
		for version, want := range map[int]int{run.StateVersion: 0, run.StateVersion + 1: 1} {
			got, err := w.Config.Store.(store.Cluster).Claim(t.Context(), store.ClaimRequest{Look: true, Version: version, Roots: 9, Limit: 9, Only: &store.RunRef{Tenant: store.DefaultTenant, ID: r.ID}})
			if err != nil || len(got) != want {
				return false
			}
		}
		return true
	})
	w.Answer(engine.AnswerRequest{Interrupt: j.ID, Decision: "approve"})
	w.Ended(other.ID, "completed")
	cfg := w.Config
	cfg.Store = Newer(cfg.Store)
	w.nodes = append(w.nodes, node(t, "newer", cfg))
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	w.Ended(r.ID, "completed")
	if row, err = w.Config.Store.Run(t.Context(), store.DefaultTenant, r.ID); err != nil || !bytes.Contains(row.State, nextVersion()) {
		t.Errorf("the newer node did not write the end of it: %.200s, %v", row.State, err)
	}
	for _, line := range w.Calls.All() {
		if line[len(line)-3:] != ": 1" {
			t.Errorf("a call was made twice: %s", line)
		}
	}
}
