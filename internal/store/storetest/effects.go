package storetest

import (
	"encoding/json"
	"fmt"

	"agentd/internal/store"
)

func asks(runID, id, pool, class string) *store.Tx {
	return &store.Tx{Effects: []store.EffectChange{{Op: store.AskEffect, Effect: store.Effect{RunID: runID, ID: id, Kind: "tool", Version: 1, Pool: pool, Class: class,
		Body: json.RawMessage(`{"of":"` + id + `"}`), Created: 7}}}}
}

func effectTx(op store.EffectOp, e store.Effect) *store.Tx {
	return &store.Tx{Effects: []store.EffectChange{{Op: op, Now: now(), Effect: e}}}
}

func effectNames(es []*store.Effect) []string {
	return ids(es, func(e *store.Effect) string { return e.RunID + "/" + e.ID })
}

// calls gives those of a run.
func (f *fixture) calls(c store.Cluster, runID string) []*store.Effect {
	f.Helper()
	return ok[[]*store.Effect](f)(c.Effects(f.Context(), store.EffectFilter{Tenant: tenant, RunID: runID, Now: now()}))
}

func (f *fixture) takes(c store.Cluster, q store.EffectClaim) []*store.Effect {
	f.Helper()
	q.Version, q.Now = max(q.Version, 1), now()
	return ok[[]*store.Effect](f)(c.ClaimEffects(f.Context(), q))
}

// testEffects: a call is taken by one node, its first result counts, and it goes with
// its run's end.
func testEffects(f *fixture, c store.Cluster) {
	f.join("n1", leaseFor)
	f.join("n2", leaseFor)
	f.begin("s1", "r1")
	f.commit(asks("r1", "a", "tool.gpu", "once"))
	f.commit(asks("r1", "a", "tool.other", "read")) // asked for again: it is there
	f.refused(asks("r9", "a", "tool.gpu", "once"), store.ErrNotFound)
	waits := f.calls(c, "r1")
	if len(waits) != 1 {
		f.Fatalf("asked for: %s", show(waits))
	}
	key := waits[0].Key
	equal(f, "pending", waits[0], &store.Effect{Key: key, Tenant: tenant, RunID: "r1", ID: "a", Kind: "tool", Version: 1, Pool: "tool.gpu", Class: "once", Status: "pending", Created: 7})
	equal(f, "another tenant", len(ok[[]*store.Effect](f)(c.Effects(f.Context(), store.EffectFilter{Tenant: "tenant-b", RunID: "r1"}))), 0)
	equal(f, "load", ok[[]store.PoolLoad](f)(c.Pools(f.Context())), []store.PoolLoad{{Pool: "tool.gpu", Pending: 1, Oldest: 7}})

	equal(f, "not its pool", effectNames(f.takes(c, store.EffectClaim{Node: "n1", Pools: []string{"tool"}, Each: 9})), []string{})
	equal(f, "no room", effectNames(f.takes(c, store.EffectClaim{Node: "n1", Any: true, Each: 9, Room: map[string]int{"tool.gpu": 0}})), []string{})
	got := f.takes(c, store.EffectClaim{Node: "n1", Pools: []string{"tool.gpu"}, Each: 9})
	equal(f, "taken", effectNames(got), []string{"r1/a"})
	equal(f, "body", string(got[0].Body), `{"of":"a"}`)
	equal(f, "owner", []any{got[0].Node, got[0].Attempt, got[0].Status, got[0].Lost}, []any{"n1", 1, "started", false})
	equal(f, "nobody else", effectNames(f.takes(c, store.EffectClaim{Node: "n2", Any: true, Each: 9})), []string{})
	f.refused(effectTx(store.TakeEffect, store.Effect{Key: key, Node: "n2"}), store.ErrConflict)
	f.refused(effectTx(store.TakeEffect, store.Effect{Key: key, Node: "n9"}), store.ErrLapsed)
	equal(f, "of the node", effectNames(ok[[]*store.Effect](f)(c.Effects(f.Context(), store.EffectFilter{Node: "n1", Now: now()}))), []string{"r1/a"})
	equal(f, "load", ok[[]store.PoolLoad](f)(c.Pools(f.Context())), []store.PoolLoad{{Pool: "tool.gpu", Started: 1}})

	f.commit(effectTx(store.FreeEffect, store.Effect{Key: key, Node: "n2", Attempt: 1})) // not its own
	equal(f, "still started", f.calls(c, "r1")[0].Status, "started")
	f.commit(effectTx(store.FreeEffect, store.Effect{Key: key, Node: "n1", Attempt: 1}))
	equal(f, "free", f.calls(c, "r1")[0].Status, "pending")
	got = f.takes(c, store.EffectClaim{Node: "n2", Any: true, Each: 9})
	equal(f, "again", got[0].Attempt, 2)

	done := effectTx(store.FinishEffect, store.Effect{Key: key, Result: json.RawMessage(`{"x":1}`), Ended: 9})
	f.commit(done)
	f.refused(effectTx(store.FinishEffect, store.Effect{Key: key, Result: json.RawMessage(`{"x":2}`), Ended: 9}), store.ErrConflict)
	f.again()
	c, _ = f.store.(store.Cluster)
	one := ok[[]*store.Effect](f)(c.Effects(f.Context(), store.EffectFilter{Tenant: tenant, RunID: "r1", ID: "a", Now: now()}))
	equal(f, "result", []any{one[0].Status, string(one[0].Result), one[0].Ended}, []any{"done", `{"x":1}`, int64(9)})
	f.commit(effectTx(store.StopEffect, store.Effect{RunID: "r1", ID: "a"}))
	f.commit(effectTx(store.CancelEffect, store.Effect{RunID: "r1", ID: "a"}))
	equal(f, "done stays done", []any{f.calls(c, "r1")[0].Status, f.calls(c, "r1")[0].Stop}, []any{"done", false})
	f.commit(effectTx(store.DropEffect, store.Effect{RunID: "r1", ID: "a"}))
	f.commit(effectTx(store.DropEffect, store.Effect{RunID: "r1", ID: "a"}))
	equal(f, "dropped", effectNames(f.calls(c, "r1")), []string{})
	f.refused(done, store.ErrConflict)

	// Asked for anew it is another row: a result that comes late is not its own.
	f.commit(asks("r1", "a", "tool.gpu", "once"))
	equal(f, "taken", effectNames(f.takes(c, store.EffectClaim{Node: "n1", Any: true, Each: 9})), []string{"r1/a"})
	f.refused(done, store.ErrConflict)
	// In one Tx the order counts.
	tx := asks("r1", "b", "model", "read")
	tx.Effects[0].Kind = "model"
	tx.Effects = append(tx.Effects, effectTx(store.DropEffect, store.Effect{RunID: "r1", Kind: "tool"}).Effects...)
	f.commit(tx)
	equal(f, "of another kind", effectNames(f.calls(c, "r1")), []string{"r1/b"})
	tx = asks("r1", "c", "model", "read")
	tx.Runs = []store.RunChange{{ID: "r1", RunUpdate: store.RunUpdate{Status: "completed", Epoch: f.epoch("r1"), Ended: 9}}}
	f.commit(tx)
	equal(f, "ended", effectNames(f.calls(c, "r1")), []string{})
}

// testEffectOwners: what a dead node had is taken by another one, unless it may happen
// once alone, or is wanted no more.
func testEffectOwners(f *fixture, c store.Cluster) {
	f.join("n1", leaseFor)
	f.join("n2", leaseFor)
	f.begin("s1", "r1")
	for _, x := range [][2]string{{"r", "read"}, {"i", "idempotent"}, {"o", "once"}, {"s", "read"}, {"p", "read"}} {
		f.commit(asks("r1", x[0], "tool", x[1]))
	}
	f.commit(asks("r1", "q", "tool", "read"))
	f.commit(effectTx(store.StopEffect, store.Effect{RunID: "r1", ID: "p"}))
	f.commit(effectTx(store.CancelEffect, store.Effect{RunID: "r1", ID: "q"}))
	equal(f, "taken", effectNames(f.takes(c, store.EffectClaim{Node: "n1", Any: true, Each: 9})), []string{"r1/r", "r1/i", "r1/o", "r1/s"})
	f.commit(effectTx(store.StopEffect, store.Effect{RunID: "r1", ID: "s"}))
	f.commit(effectTx(store.CancelEffect, store.Effect{RunID: "r1", ID: "i"})) // too late
	lost := func() []string {
		f.Helper()
		return effectNames(ok[[]*store.Effect](f)(c.Effects(f.Context(), store.EffectFilter{Lost: true, Now: now()})))
	}
	equal(f, "nothing is lost", lost(), []string{})
	f.leaves("n1")
	equal(f, "lost", lost(), []string{"r1/o", "r1/s"})
	for _, e := range f.calls(c, "r1") {
		equal(f, e.ID, []any{e.Status, e.Stop, e.Lost}, map[string][]any{"r": {"started", false, true}, "i": {"started", false, true}, "o": {"started", false, true},
			"s": {"started", true, true}, "p": {"cancelled", true, false}, "q": {"cancelled", true, false}}[e.ID])
	}
	got := f.takes(c, store.EffectClaim{Node: "n2", Any: true, Each: 9})
	equal(f, "taken over", effectNames(got), []string{"r1/r", "r1/i"})
	equal(f, "attempt", []any{got[0].Attempt, got[0].Node}, []any{2, "n2"})
	// The first result counts, whoever brings it.
	f.commit(effectTx(store.FinishEffect, store.Effect{Key: got[0].Key, Result: json.RawMessage(`1`)}))
	f.end("r1")
	f.commit(&store.Tx{DropSessions: []string{"s1"}})
	equal(f, "gone", ok[[]store.PoolLoad](f)(c.Pools(f.Context())), []store.PoolLoad(nil))
}

// testEffectOrder: runs take turns, pools have room of their own, and what is too new
// is left alone.
func testEffectOrder(f *fixture, c store.Cluster) {
	f.join("n1", leaseFor)
	f.begin("s1", "r1")
	f.begin("s2", "r2")
	for _, x := range []string{"r1/a", "r1/b", "r1/c", "r2/d"} {
		f.commit(asks(x[:2], x[3:], "tool", "read"))
	}
	f.commit(asks("r2", "m", "model", "read"))
	late := asks("r2", "n", "model", "read")
	late.Effects[0].Version = 2
	f.commit(late)
	equal(f, "in turn", effectNames(f.takes(c, store.EffectClaim{Node: "n1", Any: true, Each: 2, Room: map[string]int{"model": 0}})), []string{"r1/a", "r2/d"})
	equal(f, "one more", effectNames(f.takes(c, store.EffectClaim{Node: "n1", Any: true, Each: 9, Room: map[string]int{"tool": 1}})), []string{"r1/b", "r2/m"})
	equal(f, "named", effectNames(f.takes(c, store.EffectClaim{Node: "n1", Pools: []string{"tool", "model"}, Each: 9})), []string{"r1/c"})
	equal(f, "new enough", effectNames(f.takes(c, store.EffectClaim{Node: "n1", Version: 2, Any: true, Each: 9})), []string{"r2/n"})
	// The sweep finds what a run of an older version left behind.
	f.end("r1")
	f.end("r2")
	f.commit(&store.Tx{Nodes: []store.NodeChange{{Now: now(), For: leaseFor, Sweep: 10, Node: store.Node{ID: "n1"}}}})
	equal(f, "swept", ok[[]store.PoolLoad](f)(c.Pools(f.Context())), []store.PoolLoad(nil))
	f.commit(&store.Tx{Nodes: []store.NodeChange{{Join: true, Now: now(), For: leaseFor, Node: store.Node{ID: "n7", Pools: []string{"tool.gpu", "model"}}}}})
	nodes := ok[[]*store.Node](f)(c.Nodes(f.Context(), now()))
	equal(f, "pools", nodes[len(nodes)-1].Pools, []string{"tool.gpu", "model"})
}

// testEffectRace: many nodes at once, each call is taken once.
func testEffectRace(f *fixture, c store.Cluster) {
	const nodes, calls = 6, 24
	f.begin("s1", "r1")
	for i := range nodes {
		f.join(fmt.Sprint("n", i), leaseFor)
	}
	for i := range calls {
		f.commit(asks("r1", fmt.Sprint("c", i), "tool", "once"))
	}
	got := make([][]*store.Effect, nodes)
	errs := race(nodes, func(i int) error {
		for range calls {
			more, err := c.ClaimEffects(f.Context(), store.EffectClaim{Node: fmt.Sprint("n", i), Version: 1, Now: now(), Any: true, Each: 3})
			got[i] = append(got[i], more...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	seen := map[string]bool{}
	for i := range nodes {
		if errs[i] != nil {
			f.Fatal(errs[i])
		}
		for _, x := range got[i] {
			if seen[x.ID] {
				f.Fatalf("%s was taken twice", x.ID)
			}
			seen[x.ID] = true
			equal(f, "owner", []any{x.Node, x.Attempt}, []any{fmt.Sprint("n", i), 1})
		}
	}
	if len(seen) != calls {
		f.Fatalf("%d of %d calls were taken", len(seen), calls)
	}
	var first *store.Effect
	for i := range nodes {
		if len(got[i]) > 0 {
			first = got[i][0]
		}
	}
	f.oneWinner(race(8, func(i int) error {
		return f.commitIn(f.Context(), effectTx(store.FinishEffect, store.Effect{Key: first.Key, Result: json.RawMessage(fmt.Sprint(i))}))
	}), is(store.ErrConflict))
}
