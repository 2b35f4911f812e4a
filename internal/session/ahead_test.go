package session

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"agentd/internal/store"
	"agentd/message"
)

// What was read ahead is what is read of the path: on any branch, with compactions and
// damaged entries, whatever the entries are called and however many come at a time.
func TestWhatIsReadAheadIsTheSame(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		n := 1 + rnd.IntN(150)
		names := rnd.Perm(n)
		if seed%4 != 0 { // as nearly always
			slices.Sort(names)
		}
		var all []*store.Entry
		for i := range n {
			e := row(fmt.Sprintf("e%04d", names[i]), KindMessage, message.User(fmt.Sprint("message ", i)))
			switch rnd.IntN(20) {
			case 0:
				e.Body = e.Body[:len(e.Body)-3]
			case 1:
				e = row(e.ID, KindCompaction, Compaction{Summary: "so far", FirstKept: fmt.Sprintf("e%04d", names[rnd.IntN(i+1)])})
			case 2:
				e = row(e.ID, KindModelChange, ModelChange{Model: "m"})
			case 3:
				e.Kind = "of another version"
			case 4, 5, 6:
				e = row(e.ID, KindMessage, message.Message{Role: message.RoleAssistant, StopReason: message.StopEnd, Content: []message.Block{message.Text("reply")}, Usage: &message.Usage{Input: int64(i)}})
			}
			e.RunID = fmt.Sprint("run_", i/7)
			if i > 0 {
				e.Parent = all[max(0, i-1-rnd.IntN(2)*rnd.IntN(9))].ID
			}
			all = append(all, e)
		}
		path := func(all []*store.Entry) (out []*store.Entry) {
			byID := map[string]*store.Entry{}
			for _, e := range all {
				byID[e.ID] = e
			}
			for e := byID[all[len(all)-1].ID]; e != nil; e = byID[e.Parent] {
				out = append(out, e)
			}
			slices.Reverse(out)
			return out
		}
		items, made, problems := Context(path(all))

		var read Ahead
		var later []*store.Entry
		for _, e := range all {
			c := *e
			c.RunID = "" // told when all is read
			later = append(later, &c)
		}
		ordered := slices.SortedFunc(slices.Values(later), func(x, y *store.Entry) int { return compareIDs(y, x.ID) })
		var wg sync.WaitGroup
		for from := 0; from < n; {
			to := min(n, from+1+rnd.IntN(40))
			part := ordered[from:to]
			if from = to; rnd.IntN(8) == 0 {
				continue // not every store gives everything
			}
			wg.Go(func() { read.Read(part, func(e *store.Entry) ([]byte, error) { return e.Body, nil }) })
		}
		wg.Wait()
		taken := 0
		for i, e := range later {
			if e.RunID = all[i].RunID; e.Body == nil {
				taken++
			}
		}
		got, gotMade, gotProblems := read.Context(path(later))
		if !reflect.DeepEqual(got, items) || !reflect.DeepEqual(gotMade, made) || !reflect.DeepEqual(gotProblems, problems) {
			t.Fatalf("seed %d:\n%v\n%v\nwant\n%v\n%v", seed, got, gotProblems, items, problems)
		}
		if taken > 0 && len(got) == n && read.Bytes() == 0 {
			t.Fatalf("seed %d: %d entries have no size", seed, taken)
		}
	}
}

// What a compaction does not keep is not decoded for nothing.
func TestWhatACompactionDoesNotKeepIsNotReadAhead(t *testing.T) {
	for _, kept := range []string{"e0090", ""} {
		var newest []*store.Entry
		for i := 99; i >= 0; i-- {
			e := row(fmt.Sprintf("e%04d", i), KindMessage, message.User("message"))
			switch i {
			case 95:
				e = row(e.ID, KindCompaction, Compaction{Summary: "so far", FirstKept: kept})
			case 50: // an older one says nothing new
				e = row(e.ID, KindCompaction, Compaction{Summary: "so far", FirstKept: "e0040"})
			}
			newest = append(newest, e)
		}
		var read Ahead
		for part := range slices.Chunk(newest, 16) {
			read.Read(part, func(e *store.Entry) ([]byte, error) { return e.Body, nil })
		}
		taken := 0
		for _, e := range newest {
			if e.Body == nil {
				taken++
			}
		}
		if want := map[string]int{"e0090": 9, "": 4}[kept]; taken != want {
			t.Errorf("kept from %q: %d messages are read ahead, want %d", kept, taken, want)
		}
	}
}
