package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"agentd/fault"
	"agentd/internal/store"
)

// together has all of txs wait for the writer at the same time, and gives their
// errors and what it took.
func together(t *testing.T, s *Store, txs []*store.Tx) ([]error, Stats) {
	t.Helper()
	before := s.Stats()
	var jobs []*job
	for _, tx := range txs {
		j, err := s.newJob(tx)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j)
	}
	s.queueMu.Lock()
	s.queue, s.writing = append(s.queue, jobs...), true
	s.queueMu.Unlock()
	s.lead()
	var errs []error
	for _, j := range jobs {
		<-j.done
		errs = append(errs, s.readError(j.err))
	}
	after := s.Stats()
	return errs, Stats{Commits: after.Commits - before.Commits, Groups: after.Groups - before.Groups}
}

func TestWaitingCommitsShareATransaction(t *testing.T) {
	s := openTest(t, Memory, nil)
	var txs []*store.Tx
	for i := range 64 {
		txs = append(txs, newSteps(fmt.Sprint("s", i), fmt.Sprint("r", i), 1).start())
	}
	errs, stats := together(t, s, txs)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if stats.Commits != 64 || stats.Groups != 1 {
		t.Errorf("%+v, want 64 commits in a group", stats)
	}
}

func TestRefusedTxInAGroup(t *testing.T) {
	s := openTest(t, Memory, nil)
	var txs []*store.Tx
	for i := range 12 {
		tx := newSteps(fmt.Sprint("s", i), fmt.Sprint("r", i), 1).start()
		if i%3 == 2 {
			tx.DropSessions = []string{"no"} // fails after all else
		}
		txs = append(txs, tx)
	}
	errs, stats := together(t, s, txs)
	for i, err := range errs {
		if want := i%3 == 2; errors.Is(err, store.ErrNotFound) != want || (err != nil) != want {
			t.Errorf("Tx %d: %v", i, err)
		}
		_, err := s.Run(t.Context(), store.DefaultTenant, fmt.Sprint("r", i))
		if (err == nil) == (i%3 == 2) {
			t.Errorf("run %d: %v", i, err)
		}
	}
	if stats.Commits != 8 || stats.Groups != 1 {
		t.Errorf("%+v, want 8 commits in a group", stats)
	}
}

// TestRefusedTxIsForgotten has a Tx that took over a run refused, in the group
// of a Tx of the driver that goes on.
func TestRefusedTxIsForgotten(t *testing.T) {
	s := openTest(t, Memory, nil)
	st := newSteps("s", "r", 1)
	commit(t, s, st.start())
	next := st.step(1)[0]
	takeOver := &store.Tx{Tenant: store.DefaultTenant, NewSessions: []*store.Session{{ID: "new"}},
		Runs:         []store.RunChange{{ID: "r", RunUpdate: store.RunUpdate{Status: "completed", Epoch: 2}}},
		Events:       []*store.Event{{RunID: "r", Seq: 1000, Type: "x"}},
		DropSessions: []string{"no"}}
	inNew := &store.Tx{Tenant: store.DefaultTenant, Leaves: []store.Leaf{{SessionID: "new", Updated: 5}}}
	errs, _ := together(t, s, []*store.Tx{st.tx(), takeOver, next, inNew})
	if errs[0] != nil || !errors.Is(errs[1], store.ErrNotFound) || errs[2] != nil || !errors.Is(errs[3], store.ErrNotFound) {
		t.Errorf("%v", errs)
	}
}

// TestBrokenTransaction has one Tx end the transaction of all: the store is
// full for the big one alone.
func TestBrokenTransaction(t *testing.T) {
	s := openTest(t, Memory, nil)
	var pages int64
	if _, err := s.writer.get("PRAGMA page_count", []any{&pages}); err != nil {
		t.Fatal(err)
	}
	if err := s.writer.script(fmt.Sprint("PRAGMA max_page_count = ", pages+20)); err != nil {
		t.Fatal(err)
	}
	txs := []*store.Tx{}
	for i := range 5 {
		tx := newSteps(fmt.Sprint("s", i), fmt.Sprint("r", i), 1).start()
		if i == 3 {
			tx.Entries = []*store.Entry{{SessionID: "s3", ID: "e", Kind: "message", Body: noise(1 << 20)}}
		}
		txs = append(txs, tx)
	}
	errs, stats := together(t, s, txs)
	for i, err := range errs {
		if i == 3 {
			wantError(t, err, fault.Unavailable, "full", "free some space")
		} else if err != nil {
			t.Errorf("Tx %d: %v", i, err)
		}
	}
	if stats.Commits != 4 {
		t.Errorf("%+v", stats)
	}
	checkIntegrity(t, s)
	commit(t, s, newSteps("after", "after", 1).start())
}

// TestForgetting has more runs than the writer remembers.
func TestForgetting(t *testing.T) {
	s := openTest(t, Memory, nil)
	m := map[int]int{}
	for i := range maxRemembered + 1 {
		remember(m, i, i)
	}
	if len(m) != 1 {
		t.Errorf("a full map of %d became one of %d", maxRemembered, len(m))
	}
	st := newSteps("s", "r", 1)
	commit(t, s, st.start())
	commit(t, s, st.step(1)...)
	// After a refusal nothing is remembered, and all still holds.
	if err := s.Commit(t.Context(), &store.Tx{Tenant: store.DefaultTenant, DropSessions: []string{"no"}}); !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	commit(t, s, st.step(2)...)
	old := st.tx()
	old.Events = []*store.Event{{RunID: "r", Seq: st.seq, Type: "x"}}
	if err := s.Commit(t.Context(), old); !errors.Is(err, store.ErrConflict) {
		t.Fatalf("an old event: %v", err)
	}
}

func TestDiskBudget(t *testing.T) {
	at200, conversation := diskOfSession(t, pageSize, 160, 200)
	at400, _ := diskOfSession(t, pageSize, 160, 400)
	if at200 > 2*conversation {
		t.Errorf("200 steps take %d bytes, more than twice their conversation of %d", at200, conversation)
	}
	if at400 > 2*at200 {
		t.Errorf("200 steps take %d bytes and 400 take %d: more than linear", at200, at400)
	}
}

// TestDropLeavesNoRows looks behind the port, where rows without an owner do
// not show.
func TestDropLeavesNoRows(t *testing.T) {
	s := openTest(t, Memory, nil)
	st := newSteps("s", "r", 1)
	tx := st.start()
	tx.NewRuns[0].Metadata = []byte("{}")
	tx.Inputs = []*store.Input{{RunID: "r", ID: "i"}}
	tx.NewInterrupts = []*store.Interrupt{{ID: "i", RunID: "r", InterruptAnswer: store.InterruptAnswer{Status: "open"}}}
	commit(t, s, tx)
	commit(t, s, st.step(1)...)
	blob := &store.Blob{ID: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
	commit(t, s, &store.Tx{Tenant: store.DefaultTenant, Blobs: []*store.Blob{blob}, BlobUses: []store.BlobUse{{SessionID: "s", BlobID: blob.ID}}})
	for _, want := range []bool{true, false} {
		for _, table := range []string{"sessions", "entries", "runs", "run_specs", "inputs", "journal", "interrupts", "blobs", "blob_uses"} {
			var n int64
			if _, err := s.writer.get("SELECT count(*) FROM "+table, []any{&n}); err != nil || (n > 0) != want {
				t.Errorf("%d rows in %s (%v)", n, table, err)
			}
		}
		if want {
			commit(t, s, st.ended(), &store.Tx{Tenant: store.DefaultTenant, DropSessions: []string{"s"}})
		}
	}
}

func TestDeletedSpaceIsUsedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	size := func(rounds int) int64 {
		s, err := Open(path, &Options{Durability: Process})
		if err != nil {
			t.Fatal(err)
		}
		for i := range rounds {
			id := fmt.Sprint("session", i)
			st := newSteps(id, "r", 1)
			commit(t, s, st.start(),
				&store.Tx{Tenant: store.DefaultTenant, Inputs: []*store.Input{{RunID: "r", ID: "i", Body: bytes.Repeat([]byte("x"), 20_000)}}},
				&store.Tx{Tenant: store.DefaultTenant, DropInputs: []store.InputRef{{RunID: "r", ID: "i"}}},
				st.ended(),
				&store.Tx{Tenant: store.DefaultTenant, DropSessions: []string{id}})
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		fi, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return fi.Size()
	}
	first := size(3)
	if later := size(200); later > first+2*pageSize {
		t.Errorf("the file grew from %d to %d bytes while everything in it was deleted", first, later)
	}
}

// noise is what can not be packed.
func noise(n int) []byte {
	rnd := rand.New(rand.NewPCG(1, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}
