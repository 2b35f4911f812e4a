package storetest

import (
	"encoding/json"

	"agentd/internal/store"
)

func rule(session, id string) *store.Rule {
	return &store.Rule{SessionID: session, ID: id, Tool: "write", Pattern: json.RawMessage(`{"args":{}}`), Text: "{}", Interrupt: "i1", By: "me", Created: 7}
}

// testSessionRules: rules belong to a session of a tenant, and go with it.
func testSessionRules(f *fixture) {
	f.begin("s1", "r1")
	f.begin("s2", "r2")
	f.commit(&store.Tx{Tenant: "tenant-b", NewSessions: []*store.Session{session("s1")}})
	f.commit(&store.Tx{NewRules: []*store.Rule{rule("s1", "b"), rule("s1", "a"), rule("s2", "b")}})
	f.commit(&store.Tx{Tenant: "tenant-b", NewRules: []*store.Rule{rule("s1", "b")}})
	has := func(of, session string, want ...string) {
		f.Helper()
		got := ok[[]*store.Rule](f)(f.store.Rules(f.Context(), of, session))
		equal(f, "rules of "+session, ids(got, func(r *store.Rule) string { return r.ID }), append([]string{}, want...))
	}
	f.again()
	has(tenant, "s1", "b", "a")
	equal(f, "rule", ok[[]*store.Rule](f)(f.store.Rules(f.Context(), tenant, "s1"))[0], rule("s1", "b"))
	f.refused(&store.Tx{NewRules: []*store.Rule{rule("s1", "a")}}, store.ErrConflict)
	f.refused(&store.Tx{NewRules: []*store.Rule{rule("no", "a")}}, store.ErrNotFound)
	f.refused(&store.Tx{DropRules: []store.RuleRef{{SessionID: "s1", ID: "c"}}}, store.ErrNotFound)
	f.commit(&store.Tx{DropRules: []store.RuleRef{{SessionID: "s1", ID: "b"}}})
	has(tenant, "s1", "a")
	has(tenant, "s2", "b")
	has("tenant-b", "s1", "b")
	f.end("r1", "r2")
	f.commit(&store.Tx{DropSessions: []string{"s1"}})
	f.begin("s1", "r3")
	has(tenant, "s1")
	has("tenant-b", "s1", "b")
}
