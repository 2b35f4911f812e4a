package postgres

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"agentd/internal/store"
	"agentd/internal/store/postgres/pgtest"
	"agentd/internal/store/sqlite"
	"agentd/internal/store/transfer"
)

// A copy has nothing of the processes that used the store: their leases would count by
// another clock, and what somebody asked for who is gone would be done some day. What
// runs have to look at goes along.
func TestACopyLeavesNodesBehind(t *testing.T) {
	c := pgtest.Start(t)
	ctx := t.Context()
	file, err := sqlite.Open(filepath.Join(t.TempDir(), "x.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	type place interface {
		store.Store
		store.Cluster
		store.Checker
		Transfer(ctx context.Context, f func(transfer.Target) error) error
	}
	first, last := openTest(t, c.NewURL(), &Options{Exclusive: true}), openTest(t, c.NewURL(), &Options{Exclusive: true})
	must := func(s store.Store, tx *store.Tx) {
		t.Helper()
		tx.Tenant = tenant
		if err := s.Commit(ctx, tx); err != nil {
			t.Fatal(err)
		}
	}
	run := &store.Run{ID: "r", SessionID: "s", Created: 1, RunUpdate: store.RunUpdate{Status: "running"}}
	must(first, &store.Tx{NewSessions: []*store.Session{{ID: "s", Created: 1, Updated: 1}, {ID: "s2", Created: 1, Updated: 1}}, NewRuns: []*store.Run{run}})
	from := place(first)
	for n, to := range []place{file, last} {
		must(from, &store.Tx{Nodes: []store.NodeChange{{Join: true, For: 1 << 40, Now: 1 << 41, Node: store.Node{ID: "n"}}}})
		epoch := int64(0)
		if r, err := from.Run(ctx, tenant, "r"); err != nil {
			t.Fatal(err)
		} else {
			epoch = r.Epoch
		}
		must(from, &store.Tx{Claims: []store.Claim{{RunID: "r", Node: "n", Epoch: epoch, Now: 1 << 41}}, Holds: []store.Hold{{Name: store.HoldSession + "s2", ID: "h", Node: "n", Now: 1 << 41}},
			Mail: []*store.Mail{{RunID: "r", ID: string(rune('a' + n)), Kind: "cancel_requested", Body: json.RawMessage(`{"v":1}`), Created: 1}}})
		if n == 0 {
			must(from, &store.Tx{Mail: []*store.Mail{{RunID: "r", ID: "look", Kind: "look", Created: 1}}})
		}
		if err := from.Transfer(ctx, func(a transfer.Target) error {
			return to.Transfer(ctx, func(b transfer.Target) error {
				_, err := transfer.Copy(ctx, a, b, nil)
				return err
			})
		}); err != nil {
			t.Fatal(err)
		}
		if nodes, err := to.Nodes(ctx, 1<<41); err != nil || len(nodes) != 0 {
			t.Errorf("copy %d: nodes %v, %v", n, nodes, err)
		}
		if held, err := to.Ahead(ctx, tenant, "s2", 1<<41); err != nil || held != "" {
			t.Errorf("copy %d: held by %q, %v", n, held, err)
		}
		mail, err := to.Mail(ctx, tenant, "r")
		if err != nil || len(mail) != 1 || mail[0].ID != "look" {
			t.Errorf("copy %d: mail %v, %v", n, mail, err)
		}
		got, err := to.Claim(ctx, store.ClaimRequest{Look: true, Version: 1, Now: 1 << 41, Roots: 1, Limit: 1})
		if err != nil || !slices.ContainsFunc(got, func(c store.Claimed) bool { return c.ID == "r" }) {
			t.Errorf("copy %d: nobody can claim its run: %v, %v", n, got, err)
		}
		report, err := to.Check(ctx, store.CheckOptions{})
		if err != nil || len(report.Findings) > 0 {
			t.Errorf("copy %d: %+v, %v", n, report, err)
		}
		from = to
	}
}
