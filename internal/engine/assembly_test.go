package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
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
		of := fmt.Sprint("run_", i/4)
		if i%4 == 0 {
			was := run.New(of, ses.ID)
			tx.NewRuns = append(tx.NewRuns, &store.Run{ID: of, SessionID: ses.ID, Profile: "test", Created: 1, RunUpdate: store.RunUpdate{Status: string(run.Completed), State: was.Encode()}})
		}
		tx.Entries = append(tx.Entries, &store.Entry{SessionID: ses.ID, RunID: of, ID: id, Parent: parent, Kind: "message", Created: 1, Body: body})
		parent = id
	}
	ses.Leaf = parent
	tx.NewSessions = []*store.Session{ses}
	st := run.New("run_x", ses.ID)
	tx.NewRuns = append(tx.NewRuns, &store.Run{ID: "run_x", SessionID: ses.ID, Profile: "test", Created: 1, RunUpdate: store.RunUpdate{Status: string(run.Queued), State: st.Encode()}})
	if err := e.store.Commit(context.Background(), tx); err != nil {
		tb.Fatal(err)
	}
	return ses.ID, ses.Leaf
}

// assemble does what a run in the session does ahead of its first call.
func assemble(tb testing.TB, e *Engine, id, leaf string) (messages int, wait func()) {
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
	return len(req.Messages), func() { ask.awaitLook(tb.Context()) }
}

// BenchmarkAssembly is a session of 2,000 entries, read and made into a request: whole, the
// first time after the file was opened (its pages are in the memory of the operating
// system; opening and checking the file is not counted); first, from pages in SQLite's
// memory, with nothing decoded; rows, of entries as the store gives them; and in the next
// turn.
func BenchmarkAssembly(b *testing.B) {
	open := func(b *testing.B, path string) (e *Engine, end func()) {
		s, err := sqlite.Open(path, nil)
		if err != nil {
			b.Fatal(err)
		}
		if e, err = New(Config{Store: s, Agents: agents{}}); err != nil {
			b.Fatal(err)
		}
		return e, func() {
			e.Close()
			if err := s.Close(); err != nil {
				b.Error(err)
			}
		}
	}
	const n = 2000
	// The least of all rounds and the one in the middle are told as well: the mean on a
	// machine that others use, too, is theirs.
	var rounds []time.Duration
	round := func(b *testing.B, e *Engine, id, leaf string) {
		began := time.Now()
		got, wait := assemble(b, e, id, leaf)
		rounds = append(rounds, time.Since(began))
		b.StopTimer()
		wait() // for what goes on beside the call
		b.StartTimer()
		if got != n {
			b.Fatalf("%d messages", got)
		}
	}
	report := func(b *testing.B) {
		slices.Sort(rounds)
		b.ReportMetric(float64(rounds[0]), "least-ns/op")
		b.ReportMetric(float64(rounds[len(rounds)/2]), "median-ns/op")
		rounds = nil
	}
	path := filepath.Join(b.TempDir(), "agentd.db")
	e, end := open(b, path)
	id, leaf := longSession(b, e, n)
	end()
	b.Run("whole", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			b.StopTimer()
			e, end := open(b, path)
			if _, err := e.store.Session(b.Context(), store.DefaultTenant, id); err != nil {
				b.Fatal(err) // with it the store has opened what it reads with
			}
			b.StartTimer()
			round(b, e, id, leaf)
			b.StopTimer()
			end()
			b.StartTimer()
		}
		report(b)
	})
	e, end = open(b, sqlite.Memory)
	b.Cleanup(end)
	id, leaf = longSession(b, e, n)
	given, err := e.store.Path(b.Context(), store.DefaultTenant, id, leaf)
	if err != nil {
		b.Fatal(err)
	}
	rows, err := New(Config{Store: readRows{e.store, given}, Agents: agents{}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { rows.Close() })
	for _, bb := range []struct {
		name   string
		e      *Engine
		forget bool
	}{{"first", e, true}, {"rows", rows, true}, {"next turn", e, false}} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if bb.forget {
					bb.e.warm = warmSessions{limit: bb.e.warm.limit}
				}
				round(b, bb.e, id, leaf)
			}
			report(b)
		})
	}
}

// readRows has read a path already.
type readRows struct {
	store.Store
	path []*store.Entry
}

func (s readRows) Path(context.Context, string, string, string) ([]*store.Entry, error) {
	return s.path, nil
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

	// What goes on from the same conversation in two ways is kept apart.
	texts(two)
	three := write(two+"w", two, "message", "and there is room behind it")
	at := e.kept(t.Context(), ses, three)
	if cap(at.items) == len(at.items) {
		t.Fatal("nothing can be written behind what is kept")
	}
	var ways []*warmSession
	for _, of := range []string{"x", "y", "z"} {
		e.warm.put(at)
		ways = append(ways, e.kept(t.Context(), ses, write(three+of, three, "message", "on "+of)))
	}
	for i, of := range []string{"x", "y", "z"} {
		w := ways[i]
		if w == nil || len(w.items) != len(at.items)+1 || w.items[len(w.items)-1].Entry != three+of {
			t.Errorf("the way to %s has another end", of)
		}
	}

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
