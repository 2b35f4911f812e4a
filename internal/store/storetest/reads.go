package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"agentd/fault"
	"agentd/internal/store"
)

func testUnfinished(f *fixture) {
	ref := func(t, id, s, status string) store.RunRef {
		return store.RunRef{Tenant: t, ID: id, SessionID: s, Status: status}
	}
	equal(f, "of nothing", len(ok[[]store.RunRef](f)(f.store.Unfinished(f.Context()))), 0)
	for i, status := range []string{"completed", "running", "failed", "paused_checkpoint", "cancelled", "queued"} {
		id := fmt.Sprint("r", i)
		f.commit(&store.Tx{NewSessions: []*store.Session{session("s" + id)}, NewRuns: []*store.Run{run(id, "s"+id, status)}})
	}
	f.commit(&store.Tx{Tenant: "tenant-b", NewSessions: []*store.Session{session("sr1")}, NewRuns: []*store.Run{run("r1", "sr1", "queued")}})
	f.again()
	equal(f, "unfinished", ok[[]store.RunRef](f)(f.store.Unfinished(f.Context())), []store.RunRef{
		ref(tenant, "r1", "sr1", "running"), ref(tenant, "r3", "sr3", "paused_checkpoint"), ref(tenant, "r5", "sr5", "queued"),
		ref("tenant-b", "r1", "sr1", "queued")})
	child := run("r3.c1", "sc", "completed")
	child.RootID, child.ParentID = "r3", "r3"
	f.commit(&store.Tx{NewSessions: []*store.Session{session("sc")}, NewRuns: []*store.Run{child}})
	if got := ok[[]store.RunRef](f)(f.store.Unfinished(f.Context())); len(got) != 4 || got[0].Parent || !got[1].Parent {
		f.Errorf("the run with a child: %+v", got)
	}
	f.commit(&store.Tx{Runs: []store.RunChange{change("r3", "completed", 1), change("r5", "cancelled", 1)}})
	equal(f, "unfinished", ok[[]store.RunRef](f)(f.store.Unfinished(f.Context())), []store.RunRef{
		ref(tenant, "r1", "sr1", "running"), ref("tenant-b", "r1", "sr1", "queued")})
}

func testRunPages(f *fixture) {
	f.commit(&store.Tx{NewSessions: []*store.Session{session("s0"), session("s1")}})
	add := func(i int) {
		r := run(fmt.Sprintf("r%02d", i), fmt.Sprint("s", i%2), "completed")
		r.Created = int64(1000 + i)
		if i%3 == 0 {
			r.RootID, r.ParentID = "root", fmt.Sprint("parent", i%2)
		}
		if i%5 == 0 {
			r.Status = "queued"
		}
		f.commit(&store.Tx{NewRuns: []*store.Run{r}})
	}
	for i := range 12 {
		add(i)
	}
	page := func(filter store.RunFilter) ([]string, string) {
		f.Helper()
		runs, cursor, err := f.store.Runs(f.Context(), tenant, filter)
		if err != nil {
			f.Fatal(err)
		}
		return runIDs(runs), cursor
	}
	all, cursor := page(store.RunFilter{})
	equal(f, "all", all, []string{"r11", "r10", "r09", "r08", "r07", "r06", "r05", "r04", "r03", "r02", "r01", "r00"})
	equal(f, "cursor at the end", cursor, "")
	for _, c := range []struct {
		filter store.RunFilter
		want   []string
	}{
		{store.RunFilter{SessionID: "s1"}, []string{"r11", "r09", "r07", "r05", "r03", "r01"}},
		{store.RunFilter{SessionID: "no"}, []string{}},
		{store.RunFilter{Status: "queued"}, []string{"r10", "r05", "r00"}},
		{store.RunFilter{RootID: "root"}, []string{"r09", "r06", "r03", "r00"}},
		{store.RunFilter{ParentID: "parent1"}, []string{"r09", "r03"}},
		{store.RunFilter{SessionID: "s0", Status: "queued", RootID: "root", ParentID: "parent0"}, []string{"r00"}},
	} {
		got, _ := page(c.filter)
		equal(f, fmt.Sprintf("%+v", c.filter), got, c.want)
	}

	// Pages hold still while runs are added.
	var got []string
	filter := store.RunFilter{Limit: 5}
	for n := 12; ; n++ {
		ids, cursor := page(filter)
		got = append(got, ids...)
		if cursor == "" {
			break
		}
		equal(f, "size of a page", len(ids), 5)
		filter.Cursor = cursor
		add(n)
		f.again()
	}
	equal(f, "pages", got, all)
	// A page that ends exactly at the end has no cursor.
	_, cursor = page(store.RunFilter{SessionID: "s1", Status: "completed", RootID: "root", Limit: 2})
	equal(f, "cursor of the last page", cursor, "")
}

func testSessionPages(f *fixture) {
	for i := range 7 {
		s := session(fmt.Sprint("s", i))
		s.Updated = int64(100_000 * (i / 2)) // some at the same time
		f.commit(&store.Tx{NewSessions: []*store.Session{s}, Entries: []*store.Entry{entry(s.ID, "e1", "")}})
	}
	page := func(filter store.SessionFilter) ([]string, string) {
		f.Helper()
		ss, cursor, err := f.store.Sessions(f.Context(), tenant, filter)
		if err != nil {
			f.Fatal(err)
		}
		for i := 1; i < len(ss); i++ {
			if ss[i].Updated > ss[i-1].Updated {
				f.Fatalf("%s (%d) comes after %s (%d)", ss[i].ID, ss[i].Updated, ss[i-1].ID, ss[i-1].Updated)
			}
		}
		return ids(ss, func(s *store.Session) string { return s.ID }), cursor
	}
	// A new leaf moves a session to the front, within a minute and beyond.
	f.commit(&store.Tx{Leaves: []store.Leaf{{SessionID: "s0", EntryID: "e1", Updated: 300_001}}})
	f.commit(&store.Tx{Leaves: []store.Leaf{{SessionID: "s3", EntryID: "e1", Updated: 900_000}}})
	all, cursor := page(store.SessionFilter{})
	equal(f, "front", all[:2], []string{"s3", "s0"})
	equal(f, "number", len(all), 7)
	equal(f, "cursor at the end", cursor, "")

	var got []string
	filter := store.SessionFilter{Limit: 2}
	for n := int64(0); ; n++ {
		ids, cursor := page(filter)
		got = append(got, ids...)
		if cursor == "" {
			break
		}
		filter.Cursor = cursor
		// New ones and updated ones that were shown already come in front.
		s := session(fmt.Sprint("new", n))
		s.Updated = 950_000 + n
		f.commit(&store.Tx{NewSessions: []*store.Session{s}, Leaves: []store.Leaf{{SessionID: "s3", EntryID: "e1", Updated: 960_000 + n}}})
	}
	equal(f, "pages", got, all)
	got7 := ok[*store.Session](f)(f.store.Session(f.Context(), tenant, "s3"))
	equal(f, "leaf", got7.Leaf, "e1")
	equal(f, "created", got7.Created, 1000)
}

func testBadCursor(f *fixture) {
	f.begin("s1", "r1")
	f.begin("s2", "r2")
	// A cursor is of its own list, and made by the store.
	_, ofRuns, err := f.store.Runs(f.Context(), tenant, store.RunFilter{Limit: 1})
	_, ofSessions, err2 := f.store.Sessions(f.Context(), tenant, store.SessionFilter{Limit: 1})
	if err := errors.Join(err, err2); err != nil || ofRuns == "" || ofSessions == "" {
		f.Fatalf("cursors %q and %q: %v", ofRuns, ofSessions, err)
	}
	if _, _, err := f.store.Sessions(f.Context(), tenant, store.SessionFilter{Cursor: ofRuns}); fault.KindOf(err) != fault.Invalid {
		f.Errorf("Sessions, a cursor of runs: %v", err)
	}
	if _, _, err := f.store.Runs(f.Context(), tenant, store.RunFilter{Cursor: ofSessions}); fault.KindOf(err) != fault.Invalid {
		f.Errorf("Runs, a cursor of sessions: %v", err)
	}
	if _, _, err := f.store.Interrupts(f.Context(), tenant, store.InterruptFilter{Cursor: ofRuns}); fault.KindOf(err) != fault.Invalid {
		f.Errorf("Interrupts, a cursor of runs: %v", err)
	}
	for _, c := range []string{"!", "a.b.c", "''", "9999999999999999999999", "zzz", "zzz.zzz", "1", ofRuns + "0", strings.ToUpper(ofRuns)} {
		if _, _, err := f.store.Runs(f.Context(), tenant, store.RunFilter{Cursor: c}); fault.KindOf(err) != fault.Invalid {
			f.Errorf("Runs, cursor %q: %v", c, err)
		}
		if _, _, err := f.store.Sessions(f.Context(), tenant, store.SessionFilter{Cursor: c}); fault.KindOf(err) != fault.Invalid {
			f.Errorf("Sessions, cursor %q: %v", c, err)
		}
		if _, _, err := f.store.Interrupts(f.Context(), tenant, store.InterruptFilter{Cursor: c}); fault.KindOf(err) != fault.Invalid {
			f.Errorf("Interrupts, cursor %q: %v", c, err)
		}
	}
}

func testEntries(f *fixture) {
	f.begin("s1", "r1")
	// Written in another order than that of their ids, and parents after children.
	f.commit(&store.Tx{Entries: []*store.Entry{entry("s1", "e5", "e4"), entry("s1", "e3", "e2")}})
	f.commit(&store.Tx{Entries: []*store.Entry{entry("s1", "e4", "e3"), entry("s1", "e1", ""), entry("s1", "e2", "e1")}})
	list := func(after string, limit int) []string {
		return entryIDs(ok[[]*store.Entry](f)(f.store.Entries(f.Context(), tenant, "s1", after, limit)))
	}
	equal(f, "all", list("", 0), []string{"e1", "e2", "e3", "e4", "e5"})
	equal(f, "limit", list("", 2), []string{"e1", "e2"})
	equal(f, "after", list("e2", 2), []string{"e3", "e4"})
	equal(f, "after an id that is not there", list("e25", 0), []string{"e3", "e4", "e5"})
	equal(f, "end", list("e5", 2), []string{})
	// A run of another store is kept as it is.
	e := entry("s1", "e6", "e5")
	e.RunID = "a run of another store"
	f.commit(&store.Tx{Entries: []*store.Entry{e}})
	equal(f, "entry", ok[*store.Entry](f)(f.store.Entry(f.Context(), tenant, "s1", "e6")), e)
}

func testPath(f *fixture) {
	f.begin("s1", "r1")
	//  a - b - c - d
	//       \- x - y
	f.commit(&store.Tx{Entries: []*store.Entry{entry("s1", "a", ""), entry("s1", "b", "a"), entry("s1", "c", "b"), entry("s1", "d", "c"),
		entry("s1", "x", "b"), entry("s1", "y", "x")}, Leaves: []store.Leaf{{SessionID: "s1", EntryID: "d", Updated: 5}}})
	path := func(leaf string) []string {
		return entryIDs(ok[[]*store.Entry](f)(f.store.Path(f.Context(), tenant, "s1", leaf)))
	}
	for range 2 {
		equal(f, "path", path("d"), []string{"a", "b", "c", "d"})
		equal(f, "branch", path("y"), []string{"a", "b", "x", "y"})
		equal(f, "root", path("a"), []string{"a"})
		equal(f, "empty leaf", path(""), []string{})
		f.again()
	}
	e := entry("s1", "e", "d")
	e.RunID = "r1"
	f.commit(&store.Tx{Entries: []*store.Entry{e}})
	p := ok[[]*store.Entry](f)(f.store.Path(f.Context(), tenant, "s1", "e"))
	equal(f, "entry of a path", p[4], e)
	// A long one.
	tx := &store.Tx{Entries: []*store.Entry{entry("s1", "n0000", "")}}
	want := []string{"n0000"}
	for i := 1; i < 1500; i++ {
		id := fmt.Sprintf("n%04d", i)
		tx.Entries = append(tx.Entries, entry("s1", id, want[i-1]))
		want = append(want, id)
	}
	f.commit(tx)
	equal(f, "long path", path("n1499"), want)
	testPathAhead(f, "y")
	testPathAhead(f, "n1499")
}

// testPathAhead compares the path to a leaf of a session with what is read ahead of it.
func testPathAhead(f *fixture, leaf string) {
	s, can := f.store.(store.AheadReader)
	if !can {
		return
	}
	want := ok[[]*store.Entry](f)(f.store.Path(f.Context(), tenant, "s1", leaf))
	all := ok[[]*store.Entry](f)(f.store.Entries(f.Context(), tenant, "s1", "", 0))
	for _, take := range []bool{false, true} {
		var mu sync.Mutex
		bodies := map[string]json.RawMessage{}
		got := ok[[]*store.Entry](f)(s.PathAhead(f.Context(), tenant, "s1", leaf, func(entries []*store.Entry, body func(*store.Entry) ([]byte, error)) {
			for i, e := range entries {
				b, err := body(e)
				if err != nil || i > 0 && entries[i-1].ID <= e.ID {
					f.Errorf("entry %s: %v", e.ID, err)
				}
				mu.Lock()
				if _, twice := bodies[e.ID]; twice {
					f.Errorf("entry %s comes twice", e.ID)
				}
				bodies[e.ID] = bytes.Clone(b)
				mu.Unlock()
				if take {
					e.Body = nil
				}
			}
		}))
		if len(bodies) != len(all) {
			f.Errorf("%d entries of %d are read ahead", len(bodies), len(all))
		}
		for _, e := range got {
			if !take {
				continue
			}
			if e.Body != nil {
				f.Fatalf("entry %s has a body again", e.ID)
			}
			e.Body = bodies[e.ID]
		}
		equal(f, "path that was read ahead", got, want)
	}
	if _, err := s.PathAhead(f.Context(), tenant, "s1", "no", func([]*store.Entry, func(*store.Entry) ([]byte, error)) {}); !is(store.ErrNotFound)(err) {
		f.Errorf("a leaf that is not there: %v", err)
	}
	if p := ok[[]*store.Entry](f)(s.PathAhead(f.Context(), tenant, "s1", "", nil)); len(p) != 0 {
		f.Errorf("no leaf: %v", entryIDs(p))
	}
}

func testPathGap(f *fixture) {
	f.begin("s1", "r1")
	f.commit(&store.Tx{Entries: []*store.Entry{entry("s1", "a", ""), entry("s1", "c", "b")}})
	fails := func(leaf string) {
		f.Helper()
		if p, err := f.store.Path(f.Context(), tenant, "s1", leaf); !is(store.ErrNotFound)(err) {
			f.Fatalf("Path(%s): %v, %v", leaf, entryIDs(p), err)
		}
	}
	fails("c")
	fails("no")
	f.again()
	f.commit(&store.Tx{Entries: []*store.Entry{entry("s1", "b", "a")}})
	equal(f, "path", entryIDs(ok[[]*store.Entry](f)(f.store.Path(f.Context(), tenant, "s1", "c"))), []string{"a", "b", "c"})
}

func testLeaf(f *fixture) {
	f.begin("s1", "r1")
	f.commit(&store.Tx{NewSessions: []*store.Session{session("s2")}, Entries: []*store.Entry{entry("s2", "other", "")}})
	f.refused(&store.Tx{Leaves: []store.Leaf{{SessionID: "s1", EntryID: "no", Updated: 9}}}, store.ErrNotFound)
	f.refused(&store.Tx{Leaves: []store.Leaf{{SessionID: "s1", EntryID: "other", Updated: 9}}}, store.ErrNotFound)
	f.refused(&store.Tx{Entries: []*store.Entry{entry("s2", "e1", "")}, Leaves: []store.Leaf{{SessionID: "s1", EntryID: "e1", Updated: 9}}}, store.ErrNotFound)
	f.commit(&store.Tx{Entries: []*store.Entry{entry("s1", "e1", "")}, Leaves: []store.Leaf{{SessionID: "s1", EntryID: "e1", Updated: 9}}})
	f.commit(&store.Tx{Leaves: []store.Leaf{{SessionID: "s1", EntryID: "", Updated: 10}}})
	s := ok[*store.Session](f)(f.store.Session(f.Context(), tenant, "s1"))
	equal(f, "leaf", s.Leaf, "")
	equal(f, "updated", s.Updated, 10)
}

func testEvents(f *fixture) {
	f.begin("s1", "r1")
	// Several in one Tx, numbers with gaps, some with little and some with
	// nothing to say.
	for _, nums := range [][]int64{{1, 2, 3}, {10}, {11, 19, 20, 21}, {40}} {
		tx := &store.Tx{}
		for _, n := range nums {
			e := event("r1", n)
			if n == 19 {
				e.Data, e.Step, e.Time = nil, 0, 0
			}
			tx.Events = append(tx.Events, e)
		}
		f.commit(tx)
	}
	f.again()
	for _, c := range []struct {
		after int64
		limit int
		want  []int64
	}{
		{0, 0, []int64{1, 2, 3, 10, 11, 19, 20, 21, 40}},
		{-1, 2, []int64{1, 2}},
		{2, 0, []int64{3, 10, 11, 19, 20, 21, 40}},
		{2, 3, []int64{3, 10, 11}},
		{12, 1, []int64{19}},
		{19, 2, []int64{20, 21}},
		{21, 9, []int64{40}},
		{40, 0, nil},
		{1 << 60, 0, nil},
	} {
		es := ok[[]*store.Event](f)(f.store.Events(f.Context(), tenant, "r1", c.after, c.limit))
		equal(f, fmt.Sprintf("after %d, limit %d", c.after, c.limit), seqs(es), c.want)
	}
	got := ok[[]*store.Event](f)(f.store.Events(f.Context(), tenant, "r1", 10, 2))
	bare := event("r1", 19)
	bare.Data, bare.Step, bare.Time = nil, 0, 0
	equal(f, "events", got, []*store.Event{event("r1", 11), bare})
}

// testEventPages reads a run of many commits in pages of every kind.
func testEventPages(f *fixture) {
	f.begin("s1", "r1")
	var want []int64
	for n, next := 0, int64(1); n < 200; n++ {
		tx := &store.Tx{Trace: []*store.Trace{{RunID: "r1", Time: 1, Kind: "x"}}} // a commit may have no events at all
		for range n % 4 {
			tx.Events = append(tx.Events, event("r1", next))
			want, next = append(want, next), next+int64(1+n%3)
		}
		f.commit(tx)
	}
	f.again()
	equal(f, "all", seqs(ok[[]*store.Event](f)(f.store.Events(f.Context(), tenant, "r1", 0, 0))), want)
	for _, limit := range []int{1, 7, 63, 64, 65, len(want) - 1, len(want), len(want) + 1} {
		var got []int64
		for after := int64(0); ; after = got[len(got)-1] {
			page := seqs(ok[[]*store.Event](f)(f.store.Events(f.Context(), tenant, "r1", after, limit)))
			if got = append(got, page...); len(page) < limit {
				break
			}
			equal(f, "size of a page", len(page), limit)
		}
		equal(f, fmt.Sprint("pages of ", limit), got, want)
	}
}

func testEventsOfSeveralRuns(f *fixture) {
	f.begin("s1", "r1")
	child := run("r2", "s2", "running")
	child.ParentID, child.RootID = "r1", "r1"
	e1, e2 := entry("s1", "e1", ""), entry("s2", "e1", "")
	e1.RunID, e2.RunID = "r1", "r2"
	f.commit(&store.Tx{NewSessions: []*store.Session{session("s2")}, NewRuns: []*store.Run{child}, Entries: []*store.Entry{e1, e2},
		Events: []*store.Event{event("r1", 1), event("r2", 1), event("r1", 2)},
		Trace:  []*store.Trace{{RunID: "r2", Kind: "started"}, {RunID: "r1", Kind: "spawn"}}})
	// The entry of a run need not be in its session; dropping that session
	// must leave the run whole.
	e3 := entry("s2", "e3", "")
	e3.RunID = "r1"
	f.commit(&store.Tx{Entries: []*store.Entry{e3}, Events: []*store.Event{event("r1", 3)}})
	f.end("r2")
	f.commit(&store.Tx{DropSessions: []string{"s2"}})
	f.again()
	equal(f, "events", ok[[]*store.Event](f)(f.store.Events(f.Context(), tenant, "r1", 0, 0)),
		[]*store.Event{event("r1", 1), event("r1", 2), event("r1", 3)})
	equal(f, "trace", ok[[]*store.Trace](f)(f.store.Trace(f.Context(), tenant, "r1", 0, 0)), []*store.Trace{{RunID: "r1", Kind: "spawn"}})
	f.refused(&store.Tx{Events: []*store.Event{event("r2", 2)}}, store.ErrNotFound)
}

func testTrace(f *fixture) {
	f.begin("s1", "r1")
	var want []*store.Trace
	for i := range 30 {
		tx := &store.Tx{}
		for k := range i % 4 {
			tx.Trace = append(tx.Trace, &store.Trace{RunID: "r1", Time: int64(1000 - i), Kind: fmt.Sprint("kind", k), Body: []byte(fmt.Sprintf(`{"n":%d}`, i))})
		}
		want = append(want, tx.Trace...)
		if i%5 == 0 {
			tx.Events = []*store.Event{event("r1", int64(i+1))}
		}
		f.commit(tx)
	}
	f.again()
	equal(f, "trace", ok[[]*store.Trace](f)(f.store.Trace(f.Context(), tenant, "r1", 0, 0)), want)
}
