package postgres

import (
	"context"
	"path/filepath"
	"testing"

	"agentd/internal/store"
	"agentd/internal/store/postgres/pgtest"
	"agentd/internal/store/sqlite"
	"agentd/internal/store/transfer"
)

// Keys of what was deleted are not given out again by a copy: usage still has them.
func TestCopyKeepsCounting(t *testing.T) {
	c := pgtest.Start(t)
	ctx := t.Context()
	file := func() *sqlite.Store {
		t.Helper()
		s, err := sqlite.Open(filepath.Join(t.TempDir(), "x.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	alone := func() *Store { return openTest(t, c.NewURL(), &Options{Exclusive: true}) }
	type place interface {
		store.Store
		Transfer(ctx context.Context, f func(transfer.Target) error) error
	}
	first := file()
	run := func(id, session string) *store.Run {
		return &store.Run{ID: id, SessionID: session, Created: 1, RunUpdate: store.RunUpdate{Status: "completed", Ended: 1}}
	}
	begin := func(s store.Store, id string) {
		t.Helper()
		if err := s.Commit(ctx, &store.Tx{Tenant: tenant, NewSessions: []*store.Session{{ID: "s" + id, Created: 1, Updated: 1}}, NewRuns: []*store.Run{run("r"+id, "s"+id)}}); err != nil {
			t.Fatal(err)
		}
	}
	begin(first, "1")
	begin(first, "2")
	if err := first.Commit(ctx, &store.Tx{Tenant: tenant, Usage: []*store.Usage{{RunID: "r2", SessionID: "s2", Provider: "p", Model: "m", Cost: 7}},
		Entries: []*store.Entry{{SessionID: "s1", ID: "e", Kind: "message", RunID: "r1", Body: []byte(`{"text":"the entry is the dictionary of the journal, the entry is"}`)}},
		Events:  []*store.Event{{RunID: "r1", Seq: 5, Type: "final_text", Data: []byte(`{"text":"the entry is the dictionary of the journal, the entry is"}`)}}}); err != nil {
		t.Fatal(err)
	}
	if err := first.Commit(ctx, &store.Tx{Tenant: tenant, DropSessions: []string{"s2"}}); err != nil {
		t.Fatal(err)
	}
	at := place(first)
	for n, next := range []place{alone(), file(), alone(), alone()} {
		if err := at.Transfer(ctx, func(from transfer.Target) error {
			return next.Transfer(ctx, func(to transfer.Target) error {
				_, err := transfer.Copy(ctx, from, to, nil)
				return err
			})
		}); err != nil {
			t.Fatalf("copy %d: %v", n, err)
		}
		id := string(rune('a' + n))
		begin(next, id)
		for what, f := range map[string]store.UsageFilter{"session": {SessionID: "s" + id}, "run": {RunID: "r" + id}} {
			if u, err := next.Usage(ctx, tenant, f); err != nil || len(u) != 0 {
				t.Errorf("copy %d: a new %s has the usage of a deleted one: %+v, %v", n, what, u, err)
			}
		}
		if u, err := next.Usage(ctx, tenant, store.UsageFilter{}); err != nil || len(u) != 1 || u[0].Cost != 7 {
			t.Errorf("copy %d: %+v, %v", n, u, err)
		}
		if ev, err := next.Events(ctx, tenant, "r1", 0, 0); err != nil || len(ev) != 1 || string(ev[0].Data) != `{"text":"the entry is the dictionary of the journal, the entry is"}` {
			t.Errorf("copy %d: %+v, %v", n, ev, err)
		}
		if err := next.Commit(ctx, &store.Tx{Tenant: tenant, DropSessions: []string{"s" + id}}); err != nil {
			t.Fatal(err)
		}
		at = next
	}
}
