package form

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"agentd/internal/store"
)

// words gives a text of n words, the same for the same seed.
func words(seed uint64, n int) string {
	rnd := rand.New(rand.NewPCG(seed, 1))
	vocabulary := strings.Fields(`the of and to in is was for that it with server request handler context timeout return error package function value
		buffer channel stream message token model agent session directory path/to/file.go:123 0x7f3a fmt.Errorf("%w") {"key": [1,2,3]} # <tag> e.g.`)
	var b strings.Builder
	for range n {
		b.WriteString(vocabulary[rnd.IntN(len(vocabulary))])
		b.WriteByte(" \n"[rnd.IntN(12)/11])
	}
	return b.String()
}

// sample gives commits as an engine makes them: the intent of a model call, its
// reply, and a tool's result.
func sample(session, run string) []*store.Tx {
	seq, now := int64(3), int64(1_790_000_000_000)
	event := func(kind, data string) *store.Event {
		seq, now = seq+2, now+7
		return &store.Event{RunID: run, Seq: seq, Time: now, Type: kind, Step: 1, Data: json.RawMessage(data)}
	}
	trace := func(kind, body string) *store.Trace {
		return &store.Trace{RunID: run, Time: now, Kind: kind, Body: json.RawMessage(body)}
	}
	text, result := words(1, 140), words(2, 160)
	entry := func(id, body string) *store.Entry {
		return &store.Entry{SessionID: session, ID: id, Kind: "message", RunID: run, Created: now, Body: json.RawMessage(body)}
	}
	txs := []*store.Tx{
		{Events: []*store.Event{event("step_started", `{"model":"claude-sonnet"}`)}, Trace: []*store.Trace{trace("call_model", `{"step":1}`)}},
		{Entries: []*store.Entry{entry("01K1", fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%q}]}`, text))},
			Events: []*store.Event{event("final_text", fmt.Sprintf(`{"text":%q}`, text)), event("tool_started", `{"tool_call_id":"call_1","name":"read_file"}`)},
			Trace:  []*store.Trace{trace("model_done", `{"stop":"toolUse"}`), trace("call_tool", `{"call":"call_1"}`)}},
		{Entries: []*store.Entry{entry("01K2", fmt.Sprintf(`{"role":"toolResult","content":[{"type":"text","text":%q}]}`, result))},
			Events: []*store.Event{event("tool_completed", fmt.Sprintf(`{"result":%q}`, result))}, Trace: []*store.Trace{trace("tool_done", "")}},
	}
	for i, tx := range txs {
		for _, x := range tx.Trace {
			if len(x.Body) == 0 {
				x.Body = nil
			}
		}
		tx.Runs = []store.RunChange{{ID: run, RunUpdate: store.RunUpdate{Status: "running", Epoch: 1, Seq: seq,
			State: fmt.Appendf(nil, `{"v":1,"phase":"tools","step":1,"calls":[{"id":"call_%d","name":"read_file"}]}`, i)}}}
	}
	return txs
}
