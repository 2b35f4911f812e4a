package storetest

import (
	"encoding/json"
	"errors"

	"agentd/internal/store"
)

// testTrees: a session has any number of ways and beginnings, its leaf goes to any of
// them, and what it has of another session stays when that one goes.
func testTrees(f *fixture) {
	f.begin("s1", "r1")
	entry := func(session, id, parent, kind, run string) *store.Entry {
		return &store.Entry{SessionID: session, ID: id, Parent: parent, Kind: kind, RunID: run, Created: 7, Body: json.RawMessage(`{"a":1}`)}
	}
	f.commit(&store.Tx{Entries: []*store.Entry{entry("s1", "a", "", "message", "r1"), entry("s1", "b", "a", "message", "r1"), entry("s1", "c", "a", "branch", ""),
		entry("s1", "d", "", "label", "")}, Leaves: []store.Leaf{{SessionID: "s1", EntryID: "d", Updated: 8}}})
	path := func(session, leaf string, want ...string) {
		f.Helper()
		got := ok[[]*store.Entry](f)(f.store.Path(f.Context(), tenant, session, leaf))
		equal(f, "path to "+leaf, ids(got, func(e *store.Entry) string { return e.ID }), append([]string{}, want...))
	}
	f.again()
	path("s1", "b", "a", "b")
	path("s1", "c", "a", "c")
	path("s1", "d", "d")
	// Back, and to the beginning.
	for _, leaf := range []string{"b", ""} {
		f.commit(&store.Tx{Leaves: []store.Leaf{{SessionID: "s1", EntryID: leaf, Updated: 9}}})
		equal(f, "leaf", ok[*store.Session](f)(f.store.Session(f.Context(), tenant, "s1")).Leaf, leaf)
	}
	f.refused(&store.Tx{Entries: []*store.Entry{entry("s1", "e", "c", "label", "")}, Leaves: []store.Leaf{{SessionID: "s1", EntryID: "f", Updated: 9}}}, store.ErrNotFound)
	// A copy in one commit, of runs that nobody finds by that name.
	fork := session("s2")
	fork.Leaf, fork.IdempotencyKey, fork.RequestHash = "z", "\x1fa key that no header has", "h"
	f.commit(&store.Tx{NewSessions: []*store.Session{fork}, Entries: []*store.Entry{entry("s2", "x", "", "message", "from:r1"), entry("s2", "y", "x", "message", "from:r1"), entry("s2", "z", "y", "fork", "")}})
	f.end("r1")
	f.commit(&store.Tx{DropSessions: []string{"s1"}})
	f.again()
	path("s2", "z", "x", "y", "z")
	got := ok[[]*store.Entry](f)(f.store.Entries(f.Context(), tenant, "s2", "", 0))
	equal(f, "entry", got[0], entry("s2", "x", "", "message", "from:r1"))
	var exists *store.ExistsError
	again := keyedSession("s3", fork.IdempotencyKey, "h")
	if err := f.commitIn(f.Context(), &store.Tx{NewSessions: []*store.Session{again}}); !errors.As(err, &exists) || exists.SessionID != "s2" || !exists.SameRequest {
		f.Errorf("%v", err)
	}
}
