package sqlite

import (
	"path/filepath"
	"strings"
	"testing"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

// TestNoScans asks SQLite how it runs every statement that the store has used:
// none may read a whole table.
func TestNoScans(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "x.db"), nil)
	ctx, tenant := t.Context(), store.DefaultTenant
	st := newSteps("s", "r", 1)
	tx := st.start()
	tx.NewRuns[0].IdempotencyKey = "key"
	tx.NewSessions[0].IdempotencyKey = "key"
	run := tx.NewRuns[0]
	tx.Inputs = []*store.Input{{RunID: "r", ID: "i"}}
	tx.NewInterrupts = []*store.Interrupt{{ID: "i", RunID: "r", InterruptAnswer: store.InterruptAnswer{Status: "open"}}}
	commit(t, s, tx)
	commit(t, s, st.step(1)...)
	for range 2 { // the second of each is refused, which asks more
		_ = s.Commit(ctx, &store.Tx{Tenant: tenant, DropInputs: []store.InputRef{{RunID: "r", ID: "i"}},
			Answers: []store.InterruptChange{{ID: "i", InterruptAnswer: store.InterruptAnswer{Status: "answered"}}}})
	}
	_ = s.Commit(ctx, tx)
	_ = s.Commit(ctx, &store.Tx{Tenant: tenant, NewRuns: []*store.Run{run}})
	_ = s.Commit(ctx, &store.Tx{Tenant: tenant, Leaves: []store.Leaf{{SessionID: "s", EntryID: st.leaf, Updated: 7}}})

	read := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	read(s.Run(ctx, tenant, "r"))
	read(s.Session(ctx, tenant, "s"))
	read(s.Entry(ctx, tenant, "s", st.leaf))
	read(s.Entries(ctx, tenant, "s", "", 0))
	read(s.Path(ctx, tenant, "s", st.leaf))
	read(s.Inputs(ctx, tenant, "r"))
	_, _ = s.LastKeyed(ctx, tenant, "k")
	_, _ = s.Schedule(ctx, tenant, "s")
	_, _ = s.Memory(ctx, tenant, "m")
	for n := range int64(2) {
		read(nil, s.Commit(ctx, &store.Tx{Tenant: tenant, Memories: []*store.Memory{{Name: "m", Text: []byte("x"), Revision: n + 1}}}))
	}
	for _, f := range []store.ScheduleFilter{{}, {AllTenants: true}} {
		_, _, err := s.Schedules(ctx, tenant, f)
		read(nil, err)
	}
	read(s.Events(ctx, tenant, "r", 0, 0))
	read(s.Trace(ctx, tenant, "r", 0, 0))
	read(s.Unfinished(ctx))
	read(s.Interrupt(ctx, tenant, "i"))
	for _, f := range []store.InterruptFilter{{}, {Status: "open"}, {RunID: "r"}, {RunID: "r", Status: "open"}, {Cursor: form.Cursor(form.InterruptList, 1)}} {
		_, _, err := s.Interrupts(ctx, tenant, f)
		read(nil, err)
	}
	for _, f := range []store.UsageFilter{{}, {RunID: "r"}, {SessionID: "s"}, {From: 1, To: 2}, {User: "u"}} {
		read(s.Usage(ctx, tenant, f))
	}
	for _, f := range []store.RecentFilter{{}, {One: true}} {
		_, _, err := s.Recent(ctx, tenant, f)
		read(nil, err)
	}
	for _, f := range []store.RunFilter{{}, {SessionID: "s"}, {Status: "running"}, {RootID: "r"}, {ParentID: "r"}, {SessionID: "s", Status: "running"}} {
		_, _, err := s.Runs(ctx, tenant, f)
		read(nil, err)
	}
	_, _, err := s.Sessions(ctx, tenant, store.SessionFilter{})
	read(nil, err)
	_, _, err = s.Sessions(ctx, tenant, store.SessionFilter{Ephemeral: true})
	read(nil, err)
	read(s.Expired(ctx, 1, 1))
	read(s.Family(ctx, tenant, "s"))
	blob := store.Blob{ID: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
	commit(t, s, &store.Tx{Tenant: tenant, Blobs: []*store.Blob{&blob}, BlobUses: []store.BlobUse{{SessionID: "s", BlobID: blob.ID}}})
	read(s.Artifacts(ctx, tenant, "s"))
	read(s.ArtifactUses(ctx, tenant, blob.ID))
	read(s.Overdue(ctx, store.Retention{Files: 1}, &store.SessionRef{Tenant: tenant, ID: "s"}, 9))
	read(s.Quarantined(ctx, tenant, "s"))
	commit(t, s, &store.Tx{Tenant: tenant, Quarantine: []*store.Quarantine{{SessionID: "s", EntryID: "e", What: "text"}},
		ExpireArtifacts: []store.ArtifactExpiry{{SessionID: "s", ID: blob.ID, At: 1}}})
	k := &store.APIKey{ID: "k", Tenant: tenant, Hash: make([]byte, 32), Scopes: []string{"read"}}
	commit(t, s, &store.Tx{Tenant: tenant, NewKeys: []*store.APIKey{k}}, &store.Tx{Tenant: tenant, Keys: []store.KeyChange{{ID: "k", Revoked: 1}}})
	read(s.APIKey(ctx, "k"))
	for _, f := range []store.KeyFilter{{}, {AllTenants: true}} {
		_, _, err := s.APIKeys(ctx, tenant, f)
		read(nil, err)
	}
	_, _ = s.Blob(ctx, tenant, strings.Repeat("0", 64))
	commit(t, s, st.ended())
	commit(t, s, &store.Tx{Tenant: tenant, DropSessions: []string{"s"}})

	if len(s.idle) != 1 {
		t.Errorf("reads one after the other opened %d connections", len(s.idle))
	}
	seen := 0
	for _, c := range []*conn{s.writer, s.idle[0]} {
		var sqls []string
		for sql := range c.stmts {
			sqls = append(sqls, sql)
		}
		for _, sql := range sqls {
			if word, _, _ := strings.Cut(sql, " "); word != "SELECT" && word != "UPDATE" && word != "DELETE" {
				continue
			}
			seen++
			if err := c.query(ctx, "EXPLAIN QUERY PLAN "+sql, func(r row) error {
				if step := r.text(3); strings.HasPrefix(step, "SCAN ") && !strings.Contains(step, "CONSTANT ROW") &&
					!strings.Contains(sql, "schema") && !strings.Contains(step, "runs_unfinished") {
					t.Errorf("%s: %s", step, sql)
				}
				return nil
			}, make([]any, strings.Count(sql, "?"))...); err != nil {
				t.Errorf("%v: %s", err, sql)
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d statements were looked at", seen)
	}
}
