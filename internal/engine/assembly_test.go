package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/internal/store/sqlite"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// longSession writes a session of n entries: questions, calls, results and answers.
func longSession(tb testing.TB, e *Engine, n int) (id, leaf string) {
	tb.Helper()
	tx := &store.Tx{Tenant: store.DefaultTenant}
	ses := &store.Session{ID: "ses_long", Created: 1, Updated: 1}
	s := run.State{EntryBase: e.cfg.NewID()}
	parent := ""
	for i := range n {
		var m message.Message
		switch id := fmt.Sprint("call_", i/4); i % 4 {
		case 0:
			m = message.User(fmt.Sprintf("Question %d: %s", i, strings.Repeat("what of it? ", 20)))
		case 1:
			m = message.Message{Role: message.RoleAssistant, StopReason: message.StopToolUse, Provider: "fake", Model: "m",
				Content: []message.Block{message.Text("I look."), message.Call(id, "echo", json.RawMessage(fmt.Sprintf(`{"path":"/src/file_%d.go","from":%d}`, i, i)))},
				Usage:   &message.Usage{Input: 1000, Output: 50, CacheRead: 900, TotalTokens: 1050}}
		case 2:
			m = message.ToolResult(id, "echo", false, message.Text(strings.Repeat("func line() { return \"x\" }\n", 40)))
		default:
			m = message.Message{Role: message.RoleAssistant, StopReason: message.StopEnd, Provider: "fake", Model: "m",
				Content: []message.Block{message.Text(strings.Repeat("This is what it means. ", 15))}, Usage: &message.Usage{Input: 1000, Output: 50, TotalTokens: 1050}}
		}
		body, err := m.AppendJSON(nil)
		if err != nil {
			tb.Fatal(err)
		}
		id := s.NextEntry()
		tx.Entries = append(tx.Entries, &store.Entry{SessionID: ses.ID, ID: id, Parent: parent, Kind: "message", Created: 1, Body: body})
		parent = id
	}
	ses.Leaf = parent
	tx.NewSessions = []*store.Session{ses}
	st := run.New("run_x", ses.ID)
	tx.NewRuns = []*store.Run{{ID: "run_x", SessionID: ses.ID, Profile: "test", Created: 1, RunUpdate: store.RunUpdate{Status: string(run.Queued), State: st.Encode()}}}
	if err := e.store.Commit(context.Background(), tx); err != nil {
		tb.Fatal(err)
	}
	return ses.ID, ses.Leaf
}

// assemble does what a run in the session does ahead of its first call.
func assemble(tb testing.TB, e *Engine, id, leaf string) int {
	tb.Helper()
	d := &driver{e: e, ref: Ref{store.DefaultTenant, "run_x"}, ctx: tb.Context(), row: &store.Run{ID: "run_x", SessionID: id}}
	d.state = run.New("run_x", id)
	set, _ := tool.NewSet()
	d.tools.set = set
	d.agent = &Agent{Models: []Model{{ID: "m", Name: "fake/m", Info: model.Info{}}}}
	d.state.Leaf = leaf
	if err := d.loadConversation(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	ask, _ := d.ask(0, "")
	req, err := ask.request(tb.Context(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return len(req.Messages)
}

// BenchmarkAssembly is a session of 2,000 entries, read and made into a request, with the
// hashes of its parts: whole, the first time after the file was opened (its pages are in
// the memory of the operating system; opening and checking the file is not counted);
// first, from pages in SQLite's memory, with nothing decoded; and in the next turn.
func BenchmarkAssembly(b *testing.B) {
	open := func(b *testing.B, path string) *Engine {
		s, err := sqlite.Open(path, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		e, err := New(Config{Store: s, Agents: agents{}})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { e.Close() })
		return e
	}
	const n = 2000
	// The least of all rounds is told as well: the mean on a machine that others use,
	// too, is theirs.
	least := func(b *testing.B, e *Engine, id, leaf string, best time.Duration) time.Duration {
		began := time.Now()
		if got := assemble(b, e, id, leaf); got != n {
			b.Fatalf("%d messages", got)
		}
		best = min(best, time.Since(began))
		b.ReportMetric(float64(best), "least-ns/op")
		return best
	}
	path := filepath.Join(b.TempDir(), "agentd.db")
	e := open(b, path)
	id, leaf := longSession(b, e, n)
	e.Close()
	if err := e.store.(*sqlite.Store).Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("whole", func(b *testing.B) {
		b.ReportAllocs()
		best := time.Hour
		for range b.N {
			b.StopTimer()
			e := open(b, path)
			b.StartTimer()
			best = least(b, e, id, leaf, best)
			b.StopTimer()
			e.Close()
			if err := e.store.(*sqlite.Store).Close(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	e = open(b, sqlite.Memory)
	id, leaf = longSession(b, e, n)
	for name, forget := range map[string]bool{"first": true, "next turn": false} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			best := time.Hour
			for b.Loop() {
				if forget {
					e.warm = warmSessions{limit: e.warm.limit}
				}
				best = least(b, e, id, leaf, best)
			}
		})
	}
}

// What is kept of a conversation is what would be read: after more was written, on
// another branch, and when entries were left out; what would be too much goes.
func TestKeptConversations(t *testing.T) {
	s, err := sqlite.Open(sqlite.Memory, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e, err := New(Config{Store: s, Agents: agents{}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	id, leaf := longSession(t, e, 200)
	ses := Ref{store.DefaultTenant, id}
	texts := func(leaf string) string {
		d := &driver{e: e, ref: Ref{store.DefaultTenant, "run_x"}, ctx: t.Context(), row: &store.Run{ID: "run_x", SessionID: id}, agent: noAgent()}
		d.state = run.New("run_x", id)
		d.state.Leaf, d.state.Status = leaf, run.Running
		if err := d.loadConversation(t.Context()); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(d.conv.messages)
		if err != nil || len(d.conv.messages) != len(d.conv.origins) {
			t.Fatal(err)
		}
		return string(raw)
	}
	write := func(id, parent, kind, text string) string {
		m := message.User(text)
		body, _ := m.AppendJSON(nil)
		if err := s.Commit(t.Context(), &store.Tx{Tenant: ses.Tenant, Entries: []*store.Entry{{SessionID: ses.ID, ID: id, Parent: parent, Kind: kind, Created: 2, Body: body}}}); err != nil {
			t.Fatal(err)
		}
		return id
	}
	check := func(what, leaf string) {
		t.Helper()
		warm := texts(leaf)
		kept := e.warm.get(ses)
		if kept == nil || kept.leaf != leaf {
			t.Errorf("%s: it is not kept", what)
		}
		e.warm = warmSessions{limit: e.warm.limit}
		if cold := texts(leaf); cold != warm {
			t.Errorf("%s: what is kept is not what is read", what)
		}
	}
	check("first", leaf)
	one := write(leaf[:len(leaf)-1]+"z", leaf, "message", "more")
	two := write(one+"a", one, "message", "and more")
	check("grown", two)
	branch := write(two+"b", leaf, "message", "another branch")
	check("another branch", branch)
	check("back", two)
	check("a rollback", write(two+"c", one, "rollback", ""))
	check("nothing new", two)

	e.warm = warmSessions{limit: 1000}
	texts(two)
	if e.warm.get(ses) != nil || e.warm.bytes != 0 {
		t.Error("more is kept than may be")
	}
	e.warm.limit = 100_000
	for i := range 50 {
		e.warm.put(&warmSession{session: Ref{"t", fmt.Sprint(i)}, items: make([]session.Item, 100), bytes: 9000})
	}
	if e.warm.bytes > 100_000 || len(e.warm.all) != 11 || e.warm.used.Len() != 11 || e.warm.get(Ref{"t", "49"}) == nil || e.warm.get(Ref{"t", "0"}) != nil {
		t.Errorf("%d bytes of %d sessions", e.warm.bytes, len(e.warm.all))
	}
}
