package storetest

import (
	"fmt"

	"agentd/internal/store"
)

// testClaimChildren: a node that has no place left takes child runs all the same, however
// many runs wait for a place ahead of them: its places become free when they end.
func testClaimChildren(f *fixture, c store.Cluster) {
	f.join("n1", leaseFor)
	f.begin("s0", "r0")
	const limit = 4
	for i := range 2 * limit {
		id := fmt.Sprint("q", i)
		f.commit(&store.Tx{NewSessions: []*store.Session{session(id)}, NewRuns: []*store.Run{run(id, id, "queued")}})
	}
	child := run("r0.c1", "s1", "queued")
	child.ParentID, child.RootID = "r0", "r0"
	f.commit(&store.Tx{NewSessions: []*store.Session{session("s1")}, NewRuns: []*store.Run{child}})
	f.commit(&store.Tx{Mail: []*store.Mail{{RunID: "q7", ID: "m1", Kind: "k", Created: 1}}})
	equal(f, "a full node", claimed(f.claims(c, "n1", 0, limit)), []string{tenant + "/q7", tenant + "/r0.c1"})
	equal(f, "one place", claimed(f.claims(c, "n1", 1, limit)), []string{tenant + "/r0"})
}

// testOrphans: who waits for people below a run that has ended is told once.
func testOrphans(f *fixture, c store.Cluster) {
	f.begin("s0", "r0")
	f.begin("s1", "r1")
	for i, parent := range []string{"r0", "r1", "gone"} {
		id := parent + ".c1"
		child := run(id, fmt.Sprint("c", i), "paused_checkpoint")
		child.ParentID, child.RootID = parent, parent
		f.commit(&store.Tx{NewSessions: []*store.Session{session(child.SessionID)}, NewRuns: []*store.Run{child}})
	}
	f.end("r1")
	orphans := func(limit int) []string {
		f.Helper()
		return ids(ok[[]store.RunRef](f)(c.Orphans(f.Context(), limit)), func(r store.RunRef) string { return r.Tenant + "/" + r.SessionID + "/" + r.ID })
	}
	equal(f, "orphans", orphans(9), []string{tenant + "/c1/r1.c1", tenant + "/c2/gone.c1"})
	equal(f, "at most one", orphans(1), []string{tenant + "/c1/r1.c1"})
	f.commit(&store.Tx{Mail: []*store.Mail{{RunID: "r1.c1", ID: "m1", Kind: "k", Created: 1}}})
	equal(f, "one was told", orphans(9), []string{tenant + "/c2/gone.c1"})
}
