package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"agentd/internal/store"
)

// clustered is a test of stores that several nodes share; of others it tests nothing,
// because they do not claim to be one.
func clustered(test func(*fixture, store.Cluster)) func(*fixture) {
	return func(f *fixture) {
		if c, ok := f.store.(store.Cluster); ok {
			test(f, c)
		}
	}
}

// Times of these tests are those of the machine, in milliseconds: a store that several
// machines share goes by its own clock.

const leaseFor = 60_000

func now() int64 { return time.Now().UnixMilli() }

func (f *fixture) join(id string, lasts int64) {
	f.Helper()
	f.commit(&store.Tx{Nodes: []store.NodeChange{{Join: true, Now: now(), For: lasts, Node: store.Node{ID: id, Name: "of " + id, Version: 1, Worker: true, Started: 5}}}})
}

func (f *fixture) leaves(id string) {
	f.Helper()
	f.commit(&store.Tx{Nodes: []store.NodeChange{{Leave: true, Now: now(), Node: store.Node{ID: id}}}})
}

func take(runID, node string, epoch int64) *store.Tx {
	return &store.Tx{Claims: []store.Claim{{RunID: runID, Node: node, Epoch: epoch, Now: now()}}}
}

func (f *fixture) epoch(runID string) int64 {
	f.Helper()
	return ok[*store.Run](f)(f.store.Run(f.Context(), tenant, runID)).Epoch
}

func claimed(cs []store.Claimed) []string {
	return ids(cs, func(c store.Claimed) string { return c.Tenant + "/" + c.ID })
}

// claims claims whatever there is for a node.
func (f *fixture) claims(c store.Cluster, node string, roots, limit int) []store.Claimed {
	f.Helper()
	return ok[[]store.Claimed](f)(c.Claim(f.Context(), store.ClaimRequest{Node: node, Version: 1, Now: now(), Roots: roots, Limit: limit}))
}

// testNodes: a lease lasts as long as it is renewed in time, and is never had again.
func testNodes(f *fixture, c store.Cluster) {
	f.join("n1", leaseFor)
	f.join("n2", leaseFor)
	nodes := ok[[]*store.Node](f)(c.Nodes(f.Context(), now()))
	if len(nodes) != 2 || nodes[0].Until < now() || nodes[0].Until > now()+2*leaseFor {
		f.Fatalf("nodes: %s", show(nodes))
	}
	nodes[0].Until = 0
	equal(f, "node", nodes[0], &store.Node{ID: "n1", Name: "of n1", Version: 1, Worker: true, Started: 5})
	f.commit(&store.Tx{Nodes: []store.NodeChange{{Now: now(), For: leaseFor, Node: store.Node{ID: "n1"}}}})
	f.refused(&store.Tx{Nodes: []store.NodeChange{{Join: true, Now: now(), For: leaseFor, Node: store.Node{ID: "n1"}}}}, store.ErrConflict)
	f.leaves("n2")
	f.join("n3", -1) // over already
	for _, id := range []string{"n2", "n3", "n4"} {
		f.refused(&store.Tx{Nodes: []store.NodeChange{{Now: now(), For: leaseFor, Node: store.Node{ID: id}}}}, store.ErrLapsed)
	}
	if nodes = ok[[]*store.Node](f)(c.Nodes(f.Context(), now())); len(nodes) != 1 {
		f.Fatalf("nodes: %s", show(nodes))
	}
}

// testClaims: a run is one node's as long as that has its lease, and each claim raises
// the epoch, so that who had it before can commit nothing.
func testClaims(f *fixture, c store.Cluster) {
	f.join("n1", leaseFor)
	f.join("n2", leaseFor)
	f.begin("s1", "r1")
	before := f.epoch("r1")
	f.commit(take("r1", "n1", before))
	equal(f, "epoch", f.epoch("r1"), before+1)
	f.refused(take("r1", "n2", before+1), store.ErrFenced)
	f.refused(take("r1", "n1", before), store.ErrFenced)
	f.refused(take("r1", "n9", before+1), store.ErrLapsed)
	f.refused(take("r9", "n1", 0), store.ErrNotFound)
	equal(f, "claimed", claimed(ok[[]store.Claimed](f)(c.Claimed(f.Context(), "n1"))), []string{tenant + "/r1"})
	equal(f, "nothing is free", claimed(f.claims(c, "n2", 9, 9)), []string{})
	// The old driver.
	stale := &store.Tx{Fences: []store.Fence{{RunID: "r1", Epoch: before}}, Runs: []store.RunChange{change("r1", "running", before)}}
	f.refused(stale, store.ErrFenced)
	// A lease that is over frees what it had.
	f.leaves("n1")
	over := f.claims(c, "n2", 9, 9)
	equal(f, "taken over", claimed(over), []string{tenant + "/r1"})
	equal(f, "taken", over[0].Taken, true)
	equal(f, "epoch", f.epoch("r1"), before+2)
	// Giving back is for who has it.
	f.commit(&store.Tx{Claims: []store.Claim{{RunID: "r1", Epoch: before}}})
	equal(f, "still claimed", claimed(ok[[]store.Claimed](f)(c.Claimed(f.Context(), "n2"))), []string{tenant + "/r1"})
	f.commit(&store.Tx{Claims: []store.Claim{{RunID: "r1", Epoch: before + 2}}})
	equal(f, "given back", claimed(ok[[]store.Claimed](f)(c.Claimed(f.Context(), "n2"))), []string{})
	again := f.claims(c, "n2", 9, 9)
	equal(f, "again", claimed(again), []string{tenant + "/r1"})
	equal(f, "not taken", again[0].Taken, false)
	f.commit(&store.Tx{Claims: []store.Claim{{RunID: "r1", Epoch: again[0].Epoch}}})
	// Born with a home; a claim goes with the end of its run.
	born := run("r2", "s2", "queued")
	f.commit(&store.Tx{NewSessions: []*store.Session{session("s2")}, NewRuns: []*store.Run{born}, Claims: []store.Claim{{RunID: "r2", Node: "n2", Epoch: 1, Now: now()}}})
	equal(f, "epoch", f.epoch("r2"), 1)
	equal(f, "born", claimed(ok[[]store.Claimed](f)(c.Claimed(f.Context(), "n2"))), []string{tenant + "/r2"})
	u := store.RunUpdate{Status: "completed", Epoch: 1, Ended: 9}
	f.commit(&store.Tx{Runs: []store.RunChange{{ID: "r2", RunUpdate: u}}})
	equal(f, "ended", claimed(ok[[]store.Claimed](f)(c.Claimed(f.Context(), "n2"))), []string{})
	f.end("r1")
	f.commit(&store.Tx{DropSessions: []string{"s1", "s2"}})
}

// testClaimOrder: what is wanted first, then what was under way, then what has its
// turn, oldest first and within bounds; what waits for people or its turn is left alone.
func testClaimOrder(f *fixture, c store.Cluster) {
	f.join("n1", leaseFor)
	add := func(s, r, status string) {
		tx := &store.Tx{NewRuns: []*store.Run{run(r, s, status)}}
		if s == r {
			tx.NewSessions = []*store.Session{session(s)}
		}
		f.commit(tx)
	}
	add("a", "a", "queued")
	add("a", "a2", "queued") // behind a
	add("b", "b", "running")
	add("c", "c", "paused_checkpoint")
	add("c", "c2", "queued") // behind c
	add("d", "d", "paused_checkpoint")
	add("e", "e", "queued")
	add("g", "g", "paused_checkpoint")
	child := run("b.c1", "h", "queued")
	child.ParentID, child.RootID = "b", "b"
	f.commit(&store.Tx{NewSessions: []*store.Session{session("h")}, NewRuns: []*store.Run{child}})
	f.commit(&store.Tx{Mail: []*store.Mail{{RunID: "d", ID: "m1", Kind: "k", Created: 1}, {RunID: "a2", ID: "m1", Kind: "k", Created: 1}}})
	late, early := interrupt("i1", "g"), interrupt("i2", "c")
	late.Expires, early.Expires = 5, now()+leaseFor
	f.commit(&store.Tx{NewInterrupts: []*store.Interrupt{late, early}})

	one := ok[[]store.Claimed](f)(c.Claim(f.Context(), store.ClaimRequest{Node: "n1", Version: 1, Now: now(), Roots: 1, Limit: 1, Only: &store.RunRef{Tenant: tenant, ID: "e"}}))
	if d := one[0].Now - now(); d < -leaseFor || d > leaseFor {
		f.Errorf("the store's clock is %d ms from this machine's", d)
	}
	one[0].Now = 0
	equal(f, "only", one, []store.Claimed{{RunRef: store.RunRef{Tenant: tenant, ID: "e", SessionID: "e", Status: "queued"}, Epoch: 2, Root: true, Turn: true}})
	one = ok[[]store.Claimed](f)(c.Claim(f.Context(), store.ClaimRequest{Node: "n1", Version: 1, Now: now(), Roots: 1, Limit: 1, Only: &store.RunRef{Tenant: tenant, ID: "c2"}}))
	equal(f, "not its turn", claimed(one), []string{})

	tree := store.ClaimRequest{Node: "n1", Version: 1, Now: now(), Limit: 9, Only: &store.RunRef{Tenant: tenant, ID: "b"}, Below: true}
	one = ok[[]store.Claimed](f)(c.Claim(f.Context(), tree))
	equal(f, "below", claimed(one), []string{tenant + "/b.c1"}) // there is no place for the root
	f.commit(&store.Tx{Claims: []store.Claim{{RunID: "b.c1", Epoch: one[0].Epoch}}})

	look := ok[[]store.Claimed](f)(c.Claim(f.Context(), store.ClaimRequest{Look: true, Version: 1, Now: now(), Roots: 1, Limit: 9}))
	got := f.claims(c, "n1", 1, 9)
	equal(f, "to look claims nothing", claimed(look), claimed(got))
	equal(f, "one place", claimed(got), []string{tenant + "/a2", tenant + "/d", tenant + "/g", tenant + "/b", tenant + "/b.c1"})
	equal(f, "behind", got[0].Turn, false)
	equal(f, "with mail", []bool{got[0].Mail, got[1].Mail, got[2].Mail, got[3].Root, got[4].Root}, []bool{true, true, false, true, false})
	equal(f, "the next", claimed(f.claims(c, "n1", 9, 9)), []string{tenant + "/a"})
	equal(f, "no more", claimed(f.claims(c, "n1", 9, 9)), []string{})
	f.end("a")
	f.commit(&store.Tx{Claims: []store.Claim{{RunID: "a2", Epoch: f.epoch("a2")}}})
	if got = f.claims(c, "n1", 9, 9); len(got) != 1 || !got[0].Turn {
		f.Fatalf("its turn: %s", show(got))
	}
	equal(f, "ahead", ok[string](f)(c.Ahead(f.Context(), tenant, "c", now())), "c")
	equal(f, "limit", claimed(f.claims(c, "n1", 9, 0)), []string{})
}

// testClaimRace: many nodes at once, each run is claimed once.
func testClaimRace(f *fixture, c store.Cluster) {
	const nodes, runs = 8, 24
	for i := range nodes {
		f.join(fmt.Sprint("n", i), leaseFor)
	}
	for i := range runs {
		id := fmt.Sprint("r", i)
		f.commit(&store.Tx{NewSessions: []*store.Session{session(id)}, NewRuns: []*store.Run{run(id, id, "queued")}})
	}
	got := make([][]store.Claimed, nodes)
	errs := race(nodes, func(i int) error {
		for {
			more, err := c.Claim(f.Context(), store.ClaimRequest{Node: fmt.Sprint("n", i), Version: 1, Now: now(), Roots: 5, Limit: 5})
			got[i] = append(got[i], more...)
			if err != nil || len(got[i]) == 0 || len(more) == 0 {
				return err
			}
		}
	})
	seen := map[string]bool{}
	for i := range nodes {
		if errs[i] != nil {
			f.Fatal(errs[i])
		}
		for _, x := range got[i] {
			if seen[x.ID] {
				f.Fatalf("%s was claimed twice", x.ID)
			}
			seen[x.ID] = true
			equal(f, "epoch", x.Epoch, 2)
		}
	}
	for i := range nodes { // whoever lost all races leaves some
		for _, x := range f.claims(c, fmt.Sprint("n", i), runs, runs) {
			if seen[x.ID] {
				f.Fatalf("%s was claimed again", x.ID)
			}
			seen[x.ID] = true
		}
	}
	if len(seen) != runs {
		f.Fatalf("%d of %d runs were claimed", len(seen), runs)
	}
}

// testClaimNeeds: a run that is too new for a node is left to one that understands it.
func testClaimNeeds(f *fixture, c store.Cluster) {
	f.join("n1", leaseFor)
	f.begin("s1", "r1")
	f.commit(take("r1", "n1", f.epoch("r1")))
	f.commit(&store.Tx{Claims: []store.Claim{{RunID: "r1", Epoch: f.epoch("r1"), Needs: 2}}})
	equal(f, "too new", claimed(f.claims(c, "n1", 9, 9)), []string{})
	got := ok[[]store.Claimed](f)(c.Claim(f.Context(), store.ClaimRequest{Node: "n1", Version: 2, Now: now(), Roots: 1, Limit: 1}))
	equal(f, "new enough", claimed(got), []string{tenant + "/r1"})
}

// testMail: in order, applied once, and gone with its session.
func testMail(f *fixture, c store.Cluster) {
	f.begin("s1", "r1")
	f.commit(&store.Tx{Mail: []*store.Mail{{RunID: "r1", ID: "b", Kind: "k", Body: json.RawMessage(`{"x":1}`), Created: 7}, {RunID: "r1", ID: "a", Kind: "k", Created: 8}}})
	f.refused(&store.Tx{Mail: []*store.Mail{{RunID: "r1", ID: "a", Kind: "k"}}}, store.ErrConflict)
	f.refused(&store.Tx{Mail: []*store.Mail{{RunID: "r2", ID: "a", Kind: "k"}}}, store.ErrNotFound)
	mail := func() []string {
		f.Helper()
		return ids(ok[[]*store.Mail](f)(c.Mail(f.Context(), tenant, "r1")), func(m *store.Mail) string { return m.ID })
	}
	equal(f, "in order", mail(), []string{"b", "a"})
	done := store.MailOutcome{RunID: "r1", ID: "b", Applied: 9, Outcome: json.RawMessage(`{"y":2}`)}
	f.commit(&store.Tx{MailDone: []store.MailOutcome{done}})
	f.refused(&store.Tx{Entries: []*store.Entry{entry("s1", "e1", "")}, MailDone: []store.MailOutcome{done}}, store.ErrConflict)
	equal(f, "entries", len(ok[[]*store.Entry](f)(f.store.Entries(f.Context(), tenant, "s1", "", 0))), 0)
	equal(f, "what waits", mail(), []string{"a"})
	f.again()
	c, _ = f.store.(store.Cluster)
	equal(f, "outcome", ok[*store.Mail](f)(c.Outcome(f.Context(), tenant, "r1", "b")),
		&store.Mail{RunID: "r1", ID: "b", Kind: "k", Body: json.RawMessage(`{"x":1}`), Created: 7, Applied: 9, Outcome: json.RawMessage(`{"y":2}`)})
	if _, err := c.Outcome(f.Context(), "tenant-b", "r1", "b"); !errors.Is(err, store.ErrNotFound) {
		f.Fatalf("another tenant: %v", err)
	}
	f.commit(&store.Tx{DropMail: []store.MailRef{{RunID: "r1", ID: "a"}, {RunID: "r1", ID: "x"}}})
	equal(f, "dropped", mail(), []string{})
	f.join("n1", leaseFor)
	f.commit(&store.Tx{Nodes: []store.NodeChange{{Now: now(), For: leaseFor, Sweep: 10, Node: store.Node{ID: "n1"}}}})
	if _, err := c.Outcome(f.Context(), tenant, "r1", "b"); !errors.Is(err, store.ErrNotFound) {
		f.Fatalf("swept: %v", err)
	}
}

// testHolds: a hold keeps runs of a session from being claimed, as long as its node
// has a lease.
func testHolds(f *fixture, c store.Cluster) {
	f.join("n1", leaseFor)
	f.join("n2", leaseFor)
	name := store.HoldSession + "s1"
	hold := func(id, node string) *store.Tx {
		return &store.Tx{Holds: []store.Hold{{Name: name, ID: id, Node: node, Now: now()}}}
	}
	f.commit(&store.Tx{NewSessions: []*store.Session{session("s1")}})
	f.commit(hold("h1", "n1"))
	f.refused(hold("h2", "n2"), store.ErrConflict)
	f.refused(hold("h2", "n9"), store.ErrLapsed)
	f.refused(hold("h2", ""), store.ErrConflict)
	equal(f, "held", ok[string](f)(c.Ahead(f.Context(), tenant, "s1", now())), "h1")
	f.commit(&store.Tx{NewRuns: []*store.Run{run("r1", "s1", "queued")}})
	equal(f, "not while it is held", claimed(f.claims(c, "n2", 9, 9)), []string{})
	f.refused(take("r1", "n2", 1), store.ErrFenced)
	f.commit(hold("h1", ""))
	equal(f, "claimed", claimed(f.claims(c, "n2", 9, 9)), []string{tenant + "/r1"})
	f.refused(hold("h1", "n1"), store.ErrSessionBusy)
	f.end("r1")
	f.commit(hold("h1", "n1"))
	f.leaves("n1")
	equal(f, "a dead holder", ok[string](f)(c.Ahead(f.Context(), tenant, "s1", now())), "")
	f.commit(hold("h2", "n2"))
	f.refused(hold("h1", ""), store.ErrConflict)
	f.commit(&store.Tx{Holds: []store.Hold{{Name: "other", ID: "h1", Node: "n2", Now: now()}}})
}

// testHoldRace: one of many holds a session, and no run starts meanwhile.
func testHoldRace(f *fixture, _ store.Cluster) {
	f.join("n1", leaseFor)
	f.commit(&store.Tx{NewSessions: []*store.Session{session("s1")}})
	f.oneWinner(race(8, func(i int) error {
		return f.commitIn(f.Context(), &store.Tx{Holds: []store.Hold{{Name: store.HoldSession + "s1", ID: fmt.Sprint(i), Node: "n1", Now: now()}}})
	}), is(store.ErrConflict))
}
