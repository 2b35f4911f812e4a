package storetest

import (
	"errors"

	"agentd/internal/store"
)

func testBlobUses(f *fixture) {
	f.begin("s1", "r1")
	f.begin("s2", "r2")
	shared, own, free := newBlob("shared", "", ""), newBlob("own", "", ""), newBlob("free", "", "")
	f.commit(&store.Tx{Blobs: []*store.Blob{shared, own, free}, BlobUses: []store.BlobUse{{SessionID: "s1", BlobID: shared.ID}, {SessionID: "s1", BlobID: own.ID}}})
	// Twice by one session is one use.
	f.commit(&store.Tx{Blobs: []*store.Blob{shared}, BlobUses: []store.BlobUse{{SessionID: "s2", BlobID: shared.ID}}})
	f.commit(&store.Tx{Blobs: []*store.Blob{shared}, BlobUses: []store.BlobUse{{SessionID: "s2", BlobID: shared.ID}}})
	has := func(want ...bool) {
		f.Helper()
		for i, b := range []*store.Blob{shared, own, free} {
			_, err := f.store.Blob(f.Context(), tenant, b.ID)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				f.Fatal(err)
			}
			equal(f, "blob "+string(b.Data)+" is there", err == nil, want[i])
		}
	}
	has(true, true, true)
	// A session where a run may still go on is not dropped, not even in part.
	f.refused(&store.Tx{DropSessions: []string{"s1"}}, store.ErrSessionBusy)
	has(true, true, true)
	f.end("r1", "r2")
	f.commit(&store.Tx{DropSessions: []string{"s1"}})
	f.again()
	has(true, false, true)
	f.commit(&store.Tx{DropSessions: []string{"s2"}})
	f.again()
	// What no session ever used is nobody's to delete.
	has(false, false, true)
	// The content may come back.
	f.begin("s3", "r3")
	f.commit(&store.Tx{Blobs: []*store.Blob{shared}, BlobUses: []store.BlobUse{{SessionID: "s3", BlobID: shared.ID}}})
	has(true, false, true)
}

func ephemeral(id string, updated int64) *store.Session {
	s := session(id)
	s.Ephemeral, s.Updated = true, updated
	return s
}

func testEphemeral(f *fixture) {
	f.commit(&store.Tx{NewSessions: []*store.Session{session("a"), ephemeral("b", 1000), session("c"), ephemeral("d", 500_000)}})
	f.again()
	list := func(filter store.SessionFilter) []string {
		f.Helper()
		ss, _, err := f.store.Sessions(f.Context(), tenant, filter)
		if err != nil {
			f.Fatal(err)
		}
		return ids(ss, func(s *store.Session) string { return s.ID })
	}
	equal(f, "others", list(store.SessionFilter{}), []string{"c", "a"})
	equal(f, "ephemeral", list(store.SessionFilter{Ephemeral: true}), []string{"d", "b"})
	// A page is full although others lie between.
	equal(f, "page", list(store.SessionFilter{Limit: 2}), []string{"c", "a"})
	// A new leaf keeps it where it is.
	f.commit(&store.Tx{Entries: []*store.Entry{entry("b", "e1", "")}, Leaves: []store.Leaf{{SessionID: "b", EntryID: "e1", Updated: 900_000}}})
	equal(f, "ephemeral", list(store.SessionFilter{Ephemeral: true}), []string{"b", "d"})
}

func testExpired(f *fixture) {
	const before = 10_000_000
	ended := func(id, session, status string, at int64) *store.Run {
		r := run(id, session, status)
		r.Ended = at
		return r
	}
	below := func(r *store.Run, root, parent string) *store.Run {
		r.RootID, r.ParentID = root, parent
		return r
	}
	f.commit(&store.Tx{NewSessions: []*store.Session{session("kept"), ephemeral("old", 1000), ephemeral("older", 500), ephemeral("fresh", before),
		ephemeral("late", 1000), ephemeral("waits", 1000), ephemeral("queued", 1000), ephemeral("parent", 1000), ephemeral("child", 1000),
		ephemeral("family", 1000), ephemeral("below", 1000), ephemeral("deep", 1000), ephemeral("empty", 2000)},
		NewRuns: []*store.Run{ended("k", "kept", "completed", 1000), ended("o", "old", "failed", before-1), ended("o2", "older", "cancelled", 1),
			ended("f", "fresh", "completed", 1000), ended("l", "late", "failed", before), ended("l0", "late", "completed", 1),
			ended("w", "waits", "paused_checkpoint", 0), ended("q0", "queued", "completed", 1), ended("q", "queued", "queued", 0),
			// A child that goes on keeps the session of its root.
			ended("p", "parent", "completed", 1), below(ended("c", "child", "running", 0), "p", "p"),
			ended("fa", "family", "completed", 1), below(ended("b", "below", "completed", 1), "fa", "fa"), below(ended("d", "deep", "completed", 1), "fa", "b")}})
	other := &store.Tx{Tenant: "tenant-b", NewSessions: []*store.Session{ephemeral("old", 60_000_000)}, NewRuns: []*store.Run{ended("p", "old", "completed", 60_000_000)}}
	f.commit(other)
	f.again()
	expired := func(before int64, limit int) []store.SessionRef {
		f.Helper()
		return ok[[]store.SessionRef](f)(f.store.Expired(f.Context(), before, limit))
	}
	set := func(refs []store.SessionRef) map[store.SessionRef]bool {
		m := map[store.SessionRef]bool{}
		for _, r := range refs {
			m[r] = true
		}
		return m
	}
	want := set([]store.SessionRef{{Tenant: tenant, ID: "old"}, {Tenant: tenant, ID: "older"}, {Tenant: tenant, ID: "family"}, {Tenant: tenant, ID: "empty"}})
	equal(f, "expired", set(expired(before, 100)), want)
	equal(f, "a page", len(expired(before, 2)), 2)
	equal(f, "nothing that old", len(expired(2, 100)), 0)
	want[store.SessionRef{Tenant: "tenant-b", ID: "old"}] = true
	want[store.SessionRef{Tenant: tenant, ID: "fresh"}] = true
	want[store.SessionRef{Tenant: tenant, ID: "late"}] = true
	equal(f, "expired of all tenants", set(expired(60_000_001, 100)), want)
	// What is dropped is not given again.
	f.commit(&store.Tx{DropSessions: []string{"old", "older", "family", "below", "deep", "empty"}})
	equal(f, "expired", len(expired(before, 100)), 0)
}

func testFamily(f *fixture) {
	f.begin("s1", "r1")
	child := func(id, session, root, parent string) {
		r := run(id, session, "completed")
		r.RootID, r.ParentID = root, parent
		f.commit(&store.Tx{NewSessions: []*store.Session{ephemeral(session, 1)}, NewRuns: []*store.Run{r}})
	}
	child("r2", "s2", "r1", "r1")
	child("r3", "s3", "r1", "r2")
	child("r4", "s4", "r1", "r1")
	f.begin("other", "ro")
	f.commit(&store.Tx{Tenant: "tenant-b", NewSessions: []*store.Session{session("x")}, NewRuns: []*store.Run{run("r1", "x", "completed")}})
	f.again()
	family := func(id string) []string {
		f.Helper()
		return ok[[]string](f)(f.store.Family(f.Context(), tenant, id))
	}
	got := family("s1")
	equal(f, "itself", got[0], "s1")
	equal(f, "how many", len(got), 4)
	equal(f, "below a child", family("s2"), []string{"s2", "s3"})
	equal(f, "alone", family("other"), []string{"other"})
	for _, tenantID := range []string{tenant, "tenant-b"} {
		if _, err := f.store.Family(f.Context(), tenantID, "no"); !errors.Is(err, store.ErrNotFound) {
			f.Errorf("family of nothing: %v", err)
		}
	}
	equal(f, "of another tenant", ok[[]string](f)(f.store.Family(f.Context(), "tenant-b", "x")), []string{"x"})
}
