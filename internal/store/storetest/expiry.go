package storetest

import "agentd/internal/store"

// testExpiring: the open interrupts that end by themselves, of all tenants.
func testExpiring(f *fixture) {
	f.begin("s1", "r1")
	f.commit(&store.Tx{Tenant: "tenant-b", NewSessions: []*store.Session{session("s1")}, NewRuns: []*store.Run{run("r1", "s1", "running")}})
	add := func(of, id string, expires int64) {
		i := interrupt(id, "r1")
		i.Expires = expires
		f.commit(&store.Tx{Tenant: of, NewInterrupts: []*store.Interrupt{i}})
	}
	add("", "late", 300)
	add("", "never", 0)
	add("", "answered", 50)
	add("tenant-b", "soon", 100)
	f.commit(&store.Tx{Answers: []store.InterruptChange{{ID: "answered", InterruptAnswer: store.InterruptAnswer{Status: "answered"}}}})
	equal(f, "expiring", ok[[]store.InterruptRef](f)(f.store.Expiring(f.Context())), []store.InterruptRef{
		{Tenant: "tenant-b", RunID: "r1", ID: "soon", Expires: 100}, {Tenant: tenant, RunID: "r1", ID: "late", Expires: 300}})
}
