package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"agentd/internal/store"
	"agentd/message"
)

// BenchmarkCommit commits steps of runs; one operation is one Tx. Groups says
// how many Tx shared a transaction.
func BenchmarkCommit(b *testing.B) {
	for _, memory := range []bool{false, true} {
		for _, writers := range []int{1, 64} {
			for _, page := range []int{4096, 8192, 16384} {
				if memory && page != pageSize {
					continue
				}
				name := fmt.Sprintf("file/page=%d/writers=%d", page, writers)
				path := Memory
				if memory {
					name = fmt.Sprintf("memory/writers=%d", writers)
				} else {
					path = filepath.Join(b.TempDir(), "x.db")
				}
				b.Run(name, func(b *testing.B) {
					if !memory {
						path = filepath.Join(b.TempDir(), "x.db")
					}
					benchmarkCommit(b, openTest(b, path, &Options{pageSize: page}), writers)
				})
			}
		}
	}
}

func benchmarkCommit(b *testing.B, s *Store, writers int) {
	txs := make([][]*store.Tx, writers)
	for w := range writers {
		st := newSteps(fmt.Sprintf("s%d", w), fmt.Sprintf("run-%022d", w), uint64(w))
		commit(b, s, st.start())
		for n := 1; len(txs[w]) < b.N/writers+1; n++ {
			txs[w] = append(txs[w], st.step(n)...)
		}
	}
	before := s.Stats()
	cpu := cpuTime()
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for _, tx := range txs[w][:b.N/writers+1] {
				if err := s.Commit(b.Context(), tx); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	after := s.Stats()
	b.ReportMetric(float64(after.Commits-before.Commits)/float64(after.Groups-before.Groups), "tx/group")
	b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N)/1e3, "cpu-µs/op")
}

// BenchmarkPath2000 loads a conversation of 2,000 entries.
func BenchmarkPath2000(b *testing.B) {
	s := openTest(b, filepath.Join(b.TempDir(), "x.db"), nil)
	st := newSteps("s", "run-0000000000000000000001", 1)
	commit(b, s, st.start())
	for n := range 1000 {
		commit(b, s, st.step(n+1)...)
	}
	b.ReportAllocs()
	for b.Loop() {
		p, err := s.Path(b.Context(), store.DefaultTenant, "s", st.leaf)
		if err != nil || len(p) != 2000 {
			b.Fatal(len(p), err)
		}
	}
}

// BenchmarkEvents reads 6,000 events of a run.
func BenchmarkEvents(b *testing.B) {
	s := openTest(b, filepath.Join(b.TempDir(), "x.db"), nil)
	st := newSteps("s", "run-0000000000000000000001", 1)
	commit(b, s, st.start())
	for n := range 1000 {
		commit(b, s, st.step(n+1)...)
	}
	b.ReportAllocs()
	for b.Loop() {
		es, err := s.Events(b.Context(), store.DefaultTenant, st.run, 0, 0)
		if err != nil || len(es) != 6001 {
			b.Fatal(len(es), err)
		}
	}
}

// BenchmarkDisk writes sessions of 200 steps and reports what a step takes on
// disk, and how that compares with its conversation.
func BenchmarkDisk(b *testing.B) {
	for _, page := range []int{4096, 8192, 16384} {
		for _, words := range []int{10, 160, 640} {
			b.Run(fmt.Sprintf("page=%d/words=%d", page, words), func(b *testing.B) {
				for b.Loop() {
					disk, conversation := diskOfSession(b, page, words, 200)
					b.ReportMetric(float64(disk)/200, "B/step")
					b.ReportMetric(float64(disk)/float64(conversation), "disk/conversation")
				}
			})
		}
	}
}

func diskOfSession(t testing.TB, page, words, n int) (disk, conversation int64) {
	path := filepath.Join(t.TempDir(), "x.db")
	s, err := Open(path, &Options{pageSize: page, Durability: Process})
	if err != nil {
		t.Fatal(err)
	}
	st := newSteps("s", "run-0000000000000000000001", 1)
	st.words = max(words, 20)
	commit(t, s, st.start())
	for i := range n {
		commit(t, s, st.step(i+1)...)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return fi.Size(), int64(st.conversation)
}

// BenchmarkOpen opens a store of 10,000 sessions as a starting server does, and
// reads what that needs. killed: the last process left a full log behind.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "x.db")
	s, err := Open(path, &Options{Durability: Process})
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; i < 10_000; i += 50 {
		tx := &store.Tx{Tenant: store.DefaultTenant}
		for k := i; k < i+50; k++ {
			st := newSteps(fmt.Sprintf("session-%018d", k), fmt.Sprintf("run-%022d", k), 1)
			add := st.start()
			add.NewSessions[0].Updated += int64(k) * 10_000
			add.NewRuns[0].Status = "completed"
			for n := range 3 {
				st.append(add, message.Message{Role: message.RoleUser, Content: []message.Block{message.Text(st.text(100))}, Timestamp: int64(n)})
			}
			tx.NewSessions = append(tx.NewSessions, add.NewSessions...)
			tx.NewRuns = append(tx.NewRuns, add.NewRuns...)
			tx.Entries = append(tx.Entries, add.Entries...)
			tx.Events = append(tx.Events, add.Events...)
		}
		commit(b, s, tx)
	}
	killed := filepath.Join(b.TempDir(), "killed.db")
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		if err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(killed+suffix, data, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for name, path := range map[string]string{"closed": path, "killed": killed} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				s, err := Open(path, nil)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.Unfinished(b.Context()); err != nil {
					b.Fatal(err)
				}
				if ss, _, err := s.Sessions(b.Context(), store.DefaultTenant, store.SessionFilter{}); err != nil || len(ss) != 50 {
					b.Fatal(len(ss), err)
				}
				b.StopTimer()
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
