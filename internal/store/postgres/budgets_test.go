package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/internal/store/postgres/pgtest"
)

// spender is a run that reserves and settles, and keeps books of its own.
type spender struct {
	id      string
	pots    []store.PotCap
	rand    *rand.Rand
	open    int64 // what is held for a call that was not settled
	settled int64
	granted int
	refused int
}

// rounds are calls of models: reserved, and then settled in one of four ways. Other
// changes of pots are among them.
func (x *spender) rounds(ctx context.Context, w *workload, s store.Store, from, n int) error {
	for i := from; i < from+n; i++ {
		call, keep := 1+x.rand.Int64N(40), x.rand.Int64N(10)
		caps := slices.Clone(x.pots)
		x.rand.Shuffle(len(caps), func(i, j int) { caps[i], caps[j] = caps[j], caps[i] })
		err := w.commit(ctx, s, &store.Tx{Fences: []store.Fence{{RunID: x.id, Epoch: 1}}, Reserves: []store.Reservation{{RunID: x.id, Key: fmt.Sprint("k", i),
			Call: store.Amounts{Money: call, Tokens: 2 * call}, Keep: store.Amounts{Money: keep, Tokens: 2 * keep}, Pots: caps, Time: int64(i)}}})
		var full *store.ExhaustedError
		if errors.As(err, &full) {
			if full.Used+full.Held+full.Need <= full.Cap || full.Limit != store.LimitCost && full.Limit != store.LimitTokens {
				return fmt.Errorf("refused without a reason: %w", err)
			}
			x.refused++
			continue
		}
		if err != nil {
			return err
		}
		x.settled, x.open = x.settled+x.open, call // one that was never settled is lost
		x.granted++
		pots, err := s.Pots(ctx, tenant, x.id, []store.PotRef{x.pots[0].PotRef})
		if err != nil {
			return err
		}
		if p := pots[0]; p.Own.Money != call+keep || p.Settled.Money+p.Held.Money > x.pots[0].Max.Money {
			return fmt.Errorf("%s holds %d, the pot has %+v", x.id, call+keep, p)
		}
		used, how := x.rand.Int64N(call+1), ""
		switch i % 4 {
		case 0:
			continue // nobody says what became of it
		case 1:
			how = store.SettledUsed
			x.settled += used
		case 2:
			how = store.SettledFree
		case 3:
			how = store.SettledLost
			x.settled += call
		}
		x.open = 0
		refs := refsOf(caps)
		if err := w.commit(ctx, s, &store.Tx{Settles: []store.Settlement{{RunID: x.id, How: how, Used: store.Amounts{Money: used, Tokens: 2 * used}, Pots: refs, Time: int64(i)}},
			Counts: []store.PotCount{{Pots: refs, Calls: 1, Time: int64(i)}}}); err != nil {
			return err
		}
	}
	return nil
}

// Any number of runs in two processes spend from the same pots, named in any order,
// while the server is ended at once: a cap is never passed, what was used is in the
// books to the cent, nobody waits for one that waits for it, and nothing stays held.
func TestBudgetsOfTwoStores(t *testing.T) {
	const runs, rounds, limit = 12, 15, 4000
	c := pgtest.Start(t)
	url := c.NewURL()
	o := &Options{RetryFor: 30 * time.Second}
	stores := []*Store{openTest(t, url, o), openTest(t, url, o)}
	w, ctx := &workload{}, t.Context()
	all := make([]*spender, runs)
	for i := range all {
		id := fmt.Sprint("r", i)
		if err := w.start(ctx, stores[0], id); err != nil {
			t.Fatal(err)
		}
		pot := func(kind, id string, limit int64) store.PotCap {
			return store.PotCap{PotRef: store.PotRef{Kind: kind, ID: id}, Max: store.PotLimits{Money: limit, Tokens: 2 * limit}}
		}
		all[i] = &spender{id: id, rand: rand.New(rand.NewPCG(1, uint64(i))), pots: []store.PotCap{pot(store.PotDay, "2026-01-02", limit),
			pot(store.PotRun, fmt.Sprint("r", i%3), limit), pot(store.PotSession, "s-r0", limit)}}
	}
	var pass atomic.Int64
	spend := func() {
		t.Helper()
		from := int(pass.Add(1)) * rounds
		for i, err := range atOnce(runs, stores, func(i int, s *Store) error { return all[i].rounds(ctx, w, s, from, rounds) }) {
			if err != nil {
				t.Errorf("%s: %v", all[i].id, err)
			}
		}
	}
	deadlocks := func() (n int64) {
		t.Helper()
		s := openTest(t, url, &Options{Connections: 1})
		if _, err := get(ctx, s.pool, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()", func(r row) { n = r.Int(0) }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	spend()
	for _, s := range stores {
		s.pool.Reset() // connections that end say what they counted
	}
	if n := deadlocks(); n > 0 {
		t.Errorf("%d deadlocks", n)
	}
	// Now the server goes away in the middle.
	var done sync.WaitGroup
	done.Go(spend)
	for i := range 2 {
		w.progress(t, int64(25+11*i))
		c.Kill(t)
		c.Restart(t)
	}
	done.Wait()
	if t.Failed() {
		return
	}
	var settled int64
	granted, refused := 0, 0
	for _, x := range all {
		if err := w.commit(ctx, stores[0], &store.Tx{Settles: []store.Settlement{{RunID: x.id, Last: true}},
			Runs: []store.RunChange{{ID: x.id, RunUpdate: store.RunUpdate{Status: "completed", Epoch: 1, Ended: 1}}}}); err != nil {
			t.Fatal(err)
		}
		settled += x.settled + x.open
		granted, refused = granted+x.granted, refused+x.refused
	}
	pots, err := stores[1].Pots(ctx, tenant, "", []store.PotRef{all[0].pots[0].PotRef, all[0].pots[2].PotRef})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pots {
		if p.Settled != (store.Amounts{Money: settled, Tokens: 2 * settled}) || p.Held != (store.Amounts{}) || settled > limit {
			t.Errorf("%+v; the runs used %d, the cap is %d", p, settled, limit)
		}
	}
	if granted < runs || refused == 0 {
		t.Errorf("%d granted, %d refused", granted, refused)
	}
	report, err := stores[0].Check(ctx, store.CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.Check == "budgets" {
			t.Errorf("%+v", f)
		}
	}
	t.Logf("%d granted, %d refused, %d settled", granted, refused, settled)
}

// Who reserves in the pot of a session that is deleted meanwhile holds something in a
// pot that is there, or is refused.
func TestBudgetsOfDroppedSessions(t *testing.T) {
	url := pgtest.Start(t, "fsync = off").NewURL()
	stores := []*Store{openTest(t, url, nil), openTest(t, url, nil)}
	ctx, w := t.Context(), &workload{}
	for round := range 15 {
		root, child := fmt.Sprint("root", round), fmt.Sprint("child", round)
		for _, id := range []string{root, child} {
			if err := w.start(ctx, stores[0], id); err != nil {
				t.Fatal(err)
			}
		}
		caps := []store.PotCap{{PotRef: store.PotRef{Kind: store.PotRun, ID: root}, Max: store.PotLimits{Money: 100}}, {PotRef: store.PotRef{Kind: store.PotSession, ID: "s-" + root}}}
		tx := func(key string) *store.Tx {
			return &store.Tx{Tenant: tenant, Reserves: []store.Reservation{{RunID: child, Key: key, Call: store.Amounts{Money: 60}, Pots: caps}}}
		}
		if err := stores[0].Commit(ctx, &store.Tx{Tenant: tenant, Runs: []store.RunChange{{ID: root, RunUpdate: store.RunUpdate{Status: "completed", Epoch: 1, Ended: 1}}}}); err != nil {
			t.Fatal(err)
		}
		for i, err := range atOnce(4, stores, func(i int, s *Store) error {
			if i == 0 {
				return s.Commit(ctx, &store.Tx{Tenant: tenant, DropSessions: []string{"s-" + root}})
			}
			return s.Commit(ctx, tx("k"))
		}) {
			if err != nil {
				t.Errorf("round %d, %d: %v", round, i, err)
			}
		}
		if err := stores[1].Commit(ctx, tx("k")); err != nil {
			t.Error(err)
		}
		pots, err := stores[1].Pots(ctx, tenant, child, []store.PotRef{caps[0].PotRef, caps[1].PotRef})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pots {
			if p.Own.Money != 60 || p.Held.Money != 60 {
				t.Errorf("round %d: %+v", round, p)
			}
		}
	}
}

// What the doctor repairs of budgets and artifacts is repaired here, too.
func TestRepairs(t *testing.T) {
	url := pgtest.Start(t, "fsync = off").NewURL()
	s := openTest(t, url, &Options{Exclusive: true})
	ctx, w := t.Context(), &workload{}
	if err := w.start(ctx, s, "r"); err != nil {
		t.Fatal(err)
	}
	day := store.PotRef{Kind: store.PotDay, ID: "2026-01-02"}
	blob := &store.Blob{ID: "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", Data: []byte("x"), Created: 5}
	for _, tx := range []*store.Tx{
		{Reserves: []store.Reservation{{RunID: "r", Key: "k", Call: store.Amounts{Money: 40, Tokens: 4}, Keep: store.Amounts{Money: 7, Tokens: 1}, Pots: []store.PotCap{{PotRef: day}}}}},
		{Blobs: []*store.Blob{blob}, BlobUses: []store.BlobUse{{SessionID: "s-r", BlobID: blob.ID, Name: "x.txt"}},
			Quarantine: []*store.Quarantine{{SessionID: "s-r", EntryID: "e", What: "images", Reason: "nobody \xff takes it", RunID: "r", Created: 1}}},
	} {
		if err := w.commit(ctx, s, tx); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{
		"UPDATE runs SET status = 'completed', ended = 1",
		"UPDATE pots SET held_money = held_money + 3",
		"DELETE FROM blobs",
		"INSERT INTO artifacts (session, hash, size, created, expired) VALUES (4711, 'x', 1, 1, 0)",
		"INSERT INTO quarantine (session, entry, what, created) VALUES (4711, 'e', 'text', 1)",
	} {
		if _, err := s.pool.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	check := func(repair bool) map[string]int {
		t.Helper()
		r, err := s.Check(ctx, store.CheckOptions{Repair: repair, Now: 9})
		if err != nil {
			t.Fatal(err)
		}
		n := map[string]int{}
		for _, f := range r.Findings {
			if f.Check == "server" {
				continue // it does not wait for the disk
			}
			if n[f.Check]++; repair && f.Repair != "" && !f.Repaired {
				t.Errorf("not repaired: %+v", f)
			}
		}
		return n
	}
	found := check(false)
	if found["budgets"] != 2 || found["artifacts"] != 1 || found["orphans"] != 3 || found["quarantine"] != 1 {
		t.Errorf("found %v", found)
	}
	check(true)
	if left := check(false); len(left) != 1 || left["quarantine"] != 1 {
		t.Errorf("after the repair: %v", left)
	}
	pots, err := s.Pots(ctx, tenant, "r", []store.PotRef{day})
	if err != nil || pots[0].Settled != (store.Amounts{Money: 40, Tokens: 4}) || pots[0].Held != (store.Amounts{}) {
		t.Errorf("%+v, %v", pots, err)
	}
	as, err := s.Artifacts(ctx, tenant, "s-r")
	if err != nil || len(as) != 1 || as[0].Expired != 9 || as[0].Why != "its content was lost" {
		t.Errorf("%+v, %v", as, err)
	}
}

// Damage costs what is damaged: the rest of a run can be read.
func TestDamagedRows(t *testing.T) {
	s := openTest(t, pgtest.Start(t, "fsync = off").NewURL(), nil)
	ctx, w := t.Context(), &workload{}
	if err := w.start(ctx, s, "r"); err != nil {
		t.Fatal(err)
	}
	for n := int64(1); n <= 4; n++ {
		if err := w.commit(ctx, s, &store.Tx{Events: []*store.Event{eventOfStep("r", 2*n), eventOfStep("r", 2*n+1)}, Trace: []*store.Trace{{RunID: "r", Kind: "x"}}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{"UPDATE journal SET body = '\\x02c801ffff' WHERE last_seq = 5", "UPDATE runs SET state = '\\x0209'", "INSERT INTO run_specs (run, spec) SELECT key, '\\x4d0101' FROM runs"} {
		if _, err := s.pool.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	events, err1 := s.Events(ctx, tenant, "r", 0, 0)
	trace, err2 := s.Trace(ctx, tenant, "r", 0, 0)
	r, err3 := s.Run(ctx, tenant, "r")
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	var seqs []int64
	for _, e := range events {
		if seqs = append(seqs, e.Seq); (e.Type == "events_lost") != (e.Seq == 5) {
			t.Errorf("event %d is %s", e.Seq, e.Type)
		}
	}
	if !slices.Equal(seqs, []int64{2, 3, 5, 6, 7, 8, 9}) || len(trace) != 4 || trace[1].Kind != "Lost" || string(r.State) != "\x02\x09" || string(r.Spec) != "M\x01\x01" {
		t.Errorf("%v, %d rows of trace, %+v", seqs, len(trace), r)
	}
	if page, err := s.Events(ctx, tenant, "r", 4, 2); err != nil || len(page) != 2 || page[0].Seq != 5 {
		t.Errorf("%+v, %v", page, err)
	}
	report, err := s.Check(ctx, store.CheckOptions{})
	if err != nil || !slices.ContainsFunc(report.Findings, func(f store.Finding) bool { return f.Check == "journal" }) {
		t.Errorf("%+v, %v", report, err)
	}
	// A budget's key that is no text is refused, and not a failure of the server.
	if err := w.commit(ctx, s, &store.Tx{Reserves: []store.Reservation{{RunID: "r", Key: "a\x00"}}}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a key that is no text: %v", err)
	}
}
