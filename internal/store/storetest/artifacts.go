package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"agentd/internal/store"
)

func testArtifacts(f *fixture) {
	f.begin("s1", "r1")
	f.begin("s2", "r2")
	a, b := newBlob("first", "text/plain", "a.txt"), newBlob("second", "text/plain", "b.txt")
	f.commit(&store.Tx{Blobs: []*store.Blob{a, b}, BlobUses: []store.BlobUse{
		{SessionID: "s1", BlobID: a.ID, RunID: "r1", CallID: "c1", Name: "mine.txt", Created: 2000}, {SessionID: "s1", BlobID: b.ID}, {SessionID: "s2", BlobID: a.ID, Created: 3000}}})
	f.again()
	want := &store.Artifact{SessionID: "s1", ID: a.ID, RunID: "r1", CallID: "c1", Name: "mine.txt", MimeType: "text/plain", Size: 5, Created: 2000}
	filledArtifact := *want
	filledArtifact.Expired, filledArtifact.Why = 1, "x"
	filled(f, &filledArtifact)
	other := &store.Artifact{SessionID: "s1", ID: b.ID, Name: "b.txt", MimeType: "text/plain", Size: 6, Created: 1012}
	of := func(session string) []*store.Artifact {
		f.Helper()
		return ok[[]*store.Artifact](f)(f.store.Artifacts(f.Context(), tenant, session))
	}
	uses := func(tenantID, id string) []string {
		f.Helper()
		return ids(ok[[]*store.Artifact](f)(f.store.ArtifactUses(f.Context(), tenantID, id)), func(a *store.Artifact) string { return a.SessionID })
	}
	equal(f, "of a session", of("s1"), []*store.Artifact{other, want})
	equal(f, "of a blob", uses(tenant, a.ID), []string{"s1", "s2"})
	equal(f, "of another tenant", uses("tenant-b", a.ID), []string{})
	equal(f, "of no blob", uses(tenant, "zz"), []string{})
	if _, err := f.store.Artifacts(f.Context(), "tenant-b", "s1"); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("of another tenant's session: %v", err)
	}

	// The content stays while one session needs it, and what is known of it for good.
	expire := func(session, id string) *store.Tx {
		return &store.Tx{ExpireArtifacts: []store.ArtifactExpiry{{SessionID: session, ID: id, At: 5000, Why: "older than 7 days"}}}
	}
	there := func(id string, want bool) {
		f.Helper()
		_, err := f.store.Blob(f.Context(), tenant, id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			f.Fatal(err)
		}
		equal(f, "blob is there", err == nil, want)
	}
	f.commit(expire("s1", a.ID))
	f.refused(expire("s1", a.ID), store.ErrNotFound)
	f.refused(expire("s1", newBlob("nobody's", "", "").ID), store.ErrNotFound)
	tx := expire("s2", a.ID)
	tx.Tenant = "tenant-b"
	f.refused(tx, store.ErrNotFound)
	f.again()
	there(a.ID, true)
	want.Expired, want.Why = 5000, "older than 7 days"
	equal(f, "of a session", of("s1"), []*store.Artifact{other, want})
	f.commit(expire("s2", a.ID))
	f.again()
	there(a.ID, false)
	there(b.ID, true)
	equal(f, "of a blob", uses(tenant, a.ID), []string{"s1", "s2"})
	// It may come back, and is then as new as that.
	f.commit(&store.Tx{Blobs: []*store.Blob{a}, BlobUses: []store.BlobUse{{SessionID: "s1", BlobID: a.ID, RunID: "r1", CallID: "c2", Created: 9000}}})
	there(a.ID, true)
	back := of("s1")[1]
	equal(f, "again", []any{back.Expired, back.Why, back.Created, back.CallID}, []any{int64(0), "", int64(9000), "c2"})
	// A blob that was there before uses were noted, or that no session used, stays.
	f.end("r1", "r2")
	f.commit(&store.Tx{DropSessions: []string{"s1"}})
	there(a.ID, false)
	equal(f, "of a blob", uses(tenant, a.ID), []string{"s2"})
}

func testOverdue(f *fixture) {
	for i, s := range []string{"s1", "s2", "s3"} {
		f.begin(s, fmt.Sprint("r", i))
	}
	other := &store.Tx{Tenant: "tenant-b", NewSessions: []*store.Session{session("s1")}}
	f.commit(other)
	add := func(tenantID, session, data string, created int64) string {
		b := newBlob(data, "", "")
		f.commit(&store.Tx{Tenant: tenantID, Blobs: []*store.Blob{b}, BlobUses: []store.BlobUse{{SessionID: session, BlobID: b.ID, Created: created}}})
		return b.ID
	}
	name := map[string]string{}
	for _, a := range []struct {
		tenant, session, data string
		created               int64
	}{{tenant, "s1", "old", 10}, {tenant, "s1", "five5", 20}, {tenant, "s1", "six666", 30}, {tenant, "s1", "one", 40},
		{tenant, "s2", "one", 15}, {"tenant-b", "s1", "one", 5}, {tenant, "s3", "a very long one", 99}} {
		name[add(a.tenant, a.session, a.data, a.created)] = a.data
	}
	overdue := func(r store.Retention, s *store.SessionRef, limit int) []string {
		f.Helper()
		got := ok[[]store.Overdue](f)(f.store.Overdue(f.Context(), r, s, limit))
		out := ids(got, func(o store.Overdue) string { return o.Tenant + "/" + o.SessionID + "/" + name[o.ID] + "/" + o.Limit })
		slices.SortFunc(out, cmp.Compare)
		return out
	}
	f.again()
	equal(f, "no limits", overdue(store.Retention{}, nil, 99), []string{})
	equal(f, "age", overdue(store.Retention{Before: 16}, nil, 99), []string{"tenant-a/s1/old/age", "tenant-a/s2/one/age", "tenant-b/s1/one/age"})
	equal(f, "files", overdue(store.Retention{Files: 2}, nil, 99), []string{"tenant-a/s1/five5/files", "tenant-a/s1/old/files"})
	equal(f, "bytes", overdue(store.Retention{Bytes: 9}, nil, 99), []string{"tenant-a/s1/five5/bytes", "tenant-a/s1/old/bytes", "tenant-a/s3/a very long one/bytes"})
	equal(f, "of one", overdue(store.Retention{Files: 3, Before: 100}, &store.SessionRef{Tenant: tenant, ID: "s2"}, 99), []string{"tenant-a/s2/one/age"})
	equal(f, "a page", len(overdue(store.Retention{Before: 100}, nil, 3)), 3)
	if _, err := f.store.Overdue(f.Context(), store.Retention{}, &store.SessionRef{Tenant: "tenant-b", ID: "s2"}, 9); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("of another tenant: %v", err)
	}
	// What is given up counts no more.
	for _, o := range ok[[]store.Overdue](f)(f.store.Overdue(f.Context(), store.Retention{Files: 2}, nil, 99)) {
		f.commit(&store.Tx{Tenant: o.Tenant, ExpireArtifacts: []store.ArtifactExpiry{{SessionID: o.SessionID, ID: o.ID, At: 50}}})
	}
	equal(f, "again", overdue(store.Retention{Files: 2, Bytes: 9}, nil, 99), []string{"tenant-a/s3/a very long one/bytes"})
}

func testQuarantine(f *fixture) {
	f.begin("s1", "r1")
	q := &store.Quarantine{SessionID: "s1", EntryID: "e1", What: "images", Reason: "too large", RunID: "r1", Created: 1000}
	filled(f, q)
	// Who finds out again changes nothing.
	again := *q
	again.Reason = "still too large"
	text := &store.Quarantine{SessionID: "s1", EntryID: "e1", What: "text"}
	f.commit(&store.Tx{Quarantine: []*store.Quarantine{q}})
	f.commit(&store.Tx{Quarantine: []*store.Quarantine{&again, text}})
	f.refused(&store.Tx{Tenant: "tenant-b", Quarantine: []*store.Quarantine{q}}, store.ErrNotFound)
	f.again()
	equal(f, "quarantine", ok[[]*store.Quarantine](f)(f.store.Quarantined(f.Context(), tenant, "s1")), []*store.Quarantine{q, text})
	if _, err := f.store.Quarantined(f.Context(), "tenant-b", "s1"); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("of another tenant: %v", err)
	}
	f.end("r1")
	f.commit(&store.Tx{DropSessions: []string{"s1"}})
	f.begin("s1", "r2")
	equal(f, "of a new session", len(ok[[]*store.Quarantine](f)(f.store.Quarantined(f.Context(), tenant, "s1"))), 0)
}
