package sqlite

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"agentd/event"
	"agentd/internal/store"
	"agentd/message"
)

// steps makes the commits of a run the way an engine would: per step the
// intent of a model call, its result with the intents of a tool call, and the
// tool's result.
type steps struct {
	session, run string
	rnd          *rand.Rand
	seq, entry   int64
	now          int64
	leaf         string
	words        int // in each message; 170 is about 1 KB
	conversation int // bytes of the bodies of its entries
}

func newSteps(session, run string, seed uint64) *steps {
	return &steps{session: session, run: run, rnd: rand.New(rand.NewPCG(seed, 1)), now: 1_790_000_000_000, words: 160}
}

var vocabulary = strings.Fields(`the of and to in is was for that it with as on be at by this had not are but from or have an they which one you
	were her all she there would their we him been has when who will more no if out so said what up its about into than them can only
	server request handler context timeout return error package function value buffer channel stream message token model agent session
	directory configuration parser length index query transaction commit latency throughput cache memory file line column test result
	"quoted" path/to/file.go:123 0x7f3a fmt.Errorf("%w") {"key": [1,2,3]} https://example.com/docs - * # <tag> e.g. i.e. 2026-11-21`)

func (s *steps) text(words int) string {
	var b strings.Builder
	for i := range words {
		if i > 0 {
			b.WriteByte(" \n"[s.rnd.IntN(12)/11])
		}
		b.WriteString(vocabulary[s.rnd.IntN(len(vocabulary))])
	}
	return b.String()
}

func (s *steps) id() string {
	s.entry++
	return fmt.Sprintf("01KAEM%020d", s.entry*7919)
}

func must(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func (s *steps) event(t event.Type, step int, data any) *store.Event {
	s.seq++
	s.now += 7
	return &store.Event{RunID: s.run, Seq: s.seq, Time: s.now, Type: string(t), Step: step, Data: must(data)}
}

func (s *steps) trace(kind string, body any) *store.Trace {
	return &store.Trace{RunID: s.run, Time: s.now, Kind: kind, Body: must(body)}
}

func (s *steps) change(phase string, step int) store.RunChange {
	state := must(map[string]any{"version": 1, "phase": phase, "step": step, "epoch": 1, "seq": s.seq, "leaf": s.leaf,
		"calls":  []any{map[string]any{"id": fmt.Sprintf("call_%08x", step), "name": "read_file", "entry": s.leaf, "status": phase}},
		"budget": map[string]any{"tokens": step * 1234, "tool_calls": step, "failures": 0, "money": step * 99187}, "queue": []any{}})
	return store.RunChange{ID: s.run, RunUpdate: store.RunUpdate{Status: "running", Epoch: 1, Seq: s.seq, State: state, Steps: step,
		Started: s.now, Usage: must(message.Usage{Input: int64(step) * 1000, Output: int64(step) * 100})}}
}

func (s *steps) append(tx *store.Tx, m message.Message) string {
	e := &store.Entry{SessionID: s.session, ID: s.id(), Parent: s.leaf, Kind: "message", RunID: s.run, Created: s.now, Body: must(m)}
	s.leaf = e.ID
	s.conversation += len(e.Body)
	tx.Entries = append(tx.Entries, e)
	tx.Leaves = append(tx.Leaves[:0], store.Leaf{SessionID: s.session, EntryID: e.ID, Updated: s.now})
	return e.ID
}

func (s *steps) tx() *store.Tx {
	return &store.Tx{Tenant: store.DefaultTenant, Fences: []store.Fence{{RunID: s.run, Epoch: 1}}}
}

// start creates session and run.
func (s *steps) start() *store.Tx {
	return &store.Tx{Tenant: store.DefaultTenant,
		NewSessions: []*store.Session{{ID: s.session, Created: s.now, Updated: s.now}},
		NewRuns: []*store.Run{{ID: s.run, SessionID: s.session, Profile: "demo", Version: "1.0.0", Mode: "interactive", Created: s.now,
			Spec: must(map[string]any{"profile": "demo", "model": "claude-sonnet-4-5"}), RunUpdate: store.RunUpdate{Status: "running", Epoch: 1}}},
		Events: []*store.Event{s.event(event.RunStarted, 0, event.Started{SessionID: s.session, Profile: "demo", Mode: "interactive"})}}
}

// ended ends the run.
func (s *steps) ended() *store.Tx {
	tx := s.tx()
	tx.Runs = []store.RunChange{{ID: s.run, RunUpdate: store.RunUpdate{Status: "completed", Epoch: 1, Seq: s.seq}}}
	return tx
}

// step gives the three commits of a step.
func (s *steps) step(n int) []*store.Tx {
	const modelName = "claude-sonnet-4-5"
	call := fmt.Sprintf("call_%016x", s.rnd.Uint64())

	a := s.tx()
	a.Events = []*store.Event{s.event(event.StepStarted, n, event.Step{Model: modelName})}
	a.Trace = []*store.Trace{s.trace("call_model", map[string]any{"step": n, "leaf": s.leaf, "model": modelName})}
	a.Runs = []store.RunChange{s.change("calling_model", n)}

	b := s.tx()
	usage := message.Usage{Input: s.rnd.Int64N(5000), Output: s.rnd.Int64N(500), CacheRead: s.rnd.Int64N(90000), TotalTokens: s.rnd.Int64N(90000)}
	text, args := s.text(s.words-20), json.RawMessage(fmt.Sprintf(`{"path":"internal/pkg/file%d.go","limit":200}`, s.rnd.IntN(1000)))
	entry := s.append(b, message.Message{Role: message.RoleAssistant, Timestamp: s.now, API: "anthropic", Provider: "anthropic", Model: modelName,
		ResponseID: fmt.Sprintf("msg_%016x", s.rnd.Uint64()), StopReason: message.StopToolUse, Usage: &usage,
		Content: []message.Block{{Type: message.BlockText, Text: text}, {Type: message.BlockToolCall, ID: call, Name: "read_file", Arguments: args}}})
	b.Events = []*store.Event{
		s.event(event.FinalText, n, event.Text{Text: text, EntryID: entry}),
		s.event(event.ToolInputStarted, n, event.Tool{ToolCallID: call, Name: "read_file"}),
		s.event(event.ToolStarted, n, event.Tool{ToolCallID: call, Name: "read_file", Args: args}),
	}
	b.Trace = []*store.Trace{
		s.trace("model_done", map[string]any{"step": n, "entry": entry, "usage": usage, "stop": "toolUse"}),
		s.trace("call_tool", map[string]any{"step": n, "call": call, "name": "read_file", "args": args}),
	}
	b.Usage = []*store.Usage{{RunID: s.run, SessionID: s.session, Provider: "anthropic", Model: modelName, Time: s.now, Input: usage.Input, Output: usage.Output, Cost: 1234567}}
	b.Runs = []store.RunChange{s.change("calling_tools", n)}

	c := s.tx()
	result := s.text(s.words)
	entry = s.append(c, message.Message{Role: message.RoleToolResult, Timestamp: s.now, ToolCallID: call, ToolName: "read_file",
		Content: []message.Block{{Type: message.BlockText, Text: result}}})
	c.Events = []*store.Event{
		s.event(event.ToolCompleted, n, event.Tool{ToolCallID: call, Name: "read_file", Result: result, EntryID: entry, DurationMS: 12}),
		s.event(event.StepCompleted, n, event.Step{Model: modelName, StopReason: "toolUse", Usage: &usage, CacheRatio: 0.93, ToolCalls: 1, EntryID: entry}),
	}
	c.Trace = []*store.Trace{
		s.trace("tool_done", map[string]any{"step": n, "call": call, "entry": entry, "ms": 12}),
		s.trace("verdict", map[string]any{"call": call, "verdict": "allow"}),
	}
	c.Runs = []store.RunChange{s.change("step_done", n)}
	return []*store.Tx{a, b, c}
}

func openTest(t testing.TB, path string, o *Options) *Store {
	t.Helper()
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func commit(t testing.TB, s store.Store, txs ...*store.Tx) {
	t.Helper()
	for _, tx := range txs {
		if err := s.Commit(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
	}
}
