package sqlite

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"agentd/internal/store"
)

const killWriters = 16

// writeUntilKilled commits to one run per writer and prints a line for each
// commit that returned.
func writeUntilKilled(path string) error {
	s, err := Open(path, nil)
	if err != nil {
		return err
	}
	ctx := context.Background()
	errs := make(chan error)
	for w := range killWriters {
		go func() { errs <- killWriter(ctx, s, w) }()
	}
	return <-errs
}

func killWriter(ctx context.Context, s *Store, w int) error {
	session, id := fmt.Sprint("s", w), fmt.Sprint("r", w)
	n := int64(1)
	r, err := s.Run(ctx, store.DefaultTenant, id)
	if err == nil {
		n = r.Seq + 1
	} else if err := s.Commit(ctx, &store.Tx{Tenant: store.DefaultTenant, NewSessions: []*store.Session{{ID: session}},
		NewRuns: []*store.Run{{ID: id, SessionID: session, RunUpdate: store.RunUpdate{Status: "running"}}}}); err != nil {
		return err
	}
	parent := ""
	if n > 1 {
		parent = killEntry(n - 1)
	}
	for ; ; n++ {
		e := &store.Entry{SessionID: session, ID: killEntry(n), Parent: parent, Kind: "message", RunID: id, Body: killBody(n)}
		parent = e.ID
		if err := s.Commit(ctx, &store.Tx{Tenant: store.DefaultTenant,
			Entries: []*store.Entry{e}, Leaves: []store.Leaf{{SessionID: session, EntryID: e.ID, Updated: n}},
			Runs:   []store.RunChange{{ID: id, RunUpdate: store.RunUpdate{Status: "running", Seq: n, State: killBody(n)}}},
			Events: []*store.Event{{RunID: id, Seq: n, Type: "text_delta", Data: killBody(n)}},
			Trace:  []*store.Trace{{RunID: id, Kind: "x", Body: killBody(n)}}}); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(os.Stdout, "%d %d\n", w, n); err != nil {
			return err
		}
	}
}

func killEntry(n int64) string { return fmt.Sprintf("e%08d", n) }

func killBody(n int64) []byte {
	return fmt.Appendf(nil, `{"text":"commit number %d of this run","pad":"%s"}`, n, bytes.Repeat([]byte{'a' + byte(n%26)}, int(n%700)))
}

// TestKill kills a writing process again and again. What it said was committed
// must be there, each run must have all of a Tx or nothing, without gaps. So must what was
// found after an earlier kill.
func TestKill(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.db")
	var acked [killWriters]int64
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), childEnv+"="+path)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := rnd.IntN(600) // lines to wait for
		lines := bufio.NewScanner(out)
		seen := 0
		for lines.Scan() { // goes on to the last line that the child got out
			var w int
			var n int64
			if _, err := fmt.Sscanf(lines.Text(), "%d %d", &w, &n); err != nil {
				t.Fatalf("line %q: %v", lines.Text(), err)
			}
			acked[w] = max(acked[w], n)
			if seen++; seen == kill+1 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // it was killed
		if stderr.Len() > 0 || seen <= kill {
			t.Fatalf("round %d: the child ended after %d lines: %s", round, seen, &stderr)
		}
		checkKilled(t, path, acked[:])
	}
}

func checkKilled(t *testing.T, path string, acked []int64) {
	t.Helper()
	s, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx := t.Context()
	for w, n := range acked {
		id, session := fmt.Sprint("r", w), fmt.Sprint("s", w)
		if n == 0 {
			continue
		}
		r, err := s.Run(ctx, store.DefaultTenant, id)
		if err != nil {
			t.Fatal(err)
		}
		if r.Seq < n || r.Seq > n+1 { // at most one was on its way
			t.Fatalf("%s: %d was acknowledged, %d is stored", id, n, r.Seq)
		}
		events, err := s.Events(ctx, store.DefaultTenant, id, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		trace, err := s.Trace(ctx, store.DefaultTenant, id, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		path, err := s.Path(ctx, store.DefaultTenant, session, killEntry(r.Seq))
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(events)) != r.Seq || int64(len(trace)) != r.Seq || int64(len(path)) != r.Seq {
			t.Fatalf("%s: seq %d, %d events, %d trace, %d entries", id, r.Seq, len(events), len(trace), len(path))
		}
		for i := range events {
			want := killBody(int64(i + 1))
			if !bytes.Equal(events[i].Data, want) || !bytes.Equal(trace[i].Body, want) || !bytes.Equal(path[i].Body, want) || events[i].Seq != int64(i+1) {
				t.Fatalf("%s: commit %d is damaged", id, i+1)
			}
		}
		acked[w] = r.Seq // the next process goes on from what it finds, and may be killed before it says a word
	}
	checkIntegrity(t, s)
}

// checkIntegrity asks SQLite itself.
func checkIntegrity(t *testing.T, s *Store) {
	t.Helper()
	if err := s.read(t.Context(), func(c *conn) error {
		return c.query(t.Context(), "PRAGMA integrity_check", func(r row) error {
			if r.text(0) != "ok" {
				t.Errorf("integrity_check: %s", r.text(0))
			}
			return nil
		})
	}); err != nil {
		t.Error(err)
	}
}
