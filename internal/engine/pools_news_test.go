package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"agentd/event"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// overheard is a bus that keeps what is said on it.
type overheard struct {
	Bus
	mu  sync.Mutex
	all [][]byte
}

func (b *overheard) Publish(m []byte) {
	b.mu.Lock()
	b.all = append(b.all, bytes.Clone(m))
	b.mu.Unlock()
	b.Bus.Publish(m)
}

// What a profile hides is hidden before it goes over the bus, which others may listen
// to, and whatever a tool tells fits into the bus's messages.
func TestWhatToolsOfPoolsTellGoesOverTheBus(t *testing.T) {
	out := map[string]string{
		"plain": strings.Repeat("é", 3000), "markup": strings.Repeat("<&>", 2000), "control": strings.Repeat("\x00\x1b", 3000),
		"quotes": strings.Repeat(`"\`, 3000), "lines": strings.Repeat("\u2028", 2000), "no text": strings.Repeat("\xff", 5000),
	}
	for name, text := range out {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNodes(t, oneCall("act", `{}`), gpu(tool.Read, func(_ context.Context, c tool.Call) (tool.Result, error) {
					c.Progress(tool.Progress{Stdout: text})
					c.Progress(tool.Progress{Stdout: "with hunter2", Message: "and hunter2 again", Done: 1})
					return tool.TextResult("made"), nil
				}))
				n.agents["test"].Redact = func(_ string, data json.RawMessage) json.RawMessage {
					return bytes.ReplaceAll(data, []byte("hunter2"), []byte("***"))
				}
				bus := &overheard{Bus: n.bus}
				home := n.node("home", true, pooled("run", "model", "tool"))
				n.node("gpu", false, pooled("tool.gpu"), func(c *Config) { c.Cluster.Bus = bus })
				r := n.started(home, StartRequest{})
				got := n.watched(home, r.ID)
				n.ended(home, r.ID, "completed")
				var told strings.Builder
				for _, ev := range got() {
					if ev.Type == event.ToolStdout {
						told.WriteString(ev.Data.(*event.Tool).Text)
					}
				}
				if want := strings.ToValidUTF8(text, "\uFFFD") + "with ***"; name != "no text" && told.String() != want {
					t.Errorf("readers got %d bytes, want %d", told.Len(), len(want))
				}
				bus.mu.Lock()
				defer bus.mu.Unlock()
				for _, m := range bus.all {
					if len(m) > busMost {
						t.Errorf("a message of %d bytes: %.100s", len(m), m)
					}
					if bytes.Contains(m, []byte("hunter2")) {
						t.Errorf("the bus was told %s", m)
					}
				}
			})
		})
	}
}

// The reply so far that goes with each of many pieces shares its text with the others,
// and stays as it was. It begins where the reply does: ahead of a text may be a call.
func TestTheReplySoFar(t *testing.T) {
	var all []*message.Message
	s := &poolStream{name: "test/model", emit: func(ev model.StreamEvent) { all = append(all, ev.Partial) }}
	const most = 10_000
	piece := func(i int, p poolPiece) note {
		p.Attempt, p.Count = 1, i
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return note{Data: raw}
	}
	s.take(piece(1, poolPiece{Type: model.StreamToolStart, Call: &message.Block{Type: message.BlockToolCall, ID: "c", Name: "act"}}))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range most {
		s.take(piece(i+2, poolPiece{Type: model.StreamTextDelta, Index: 1, Delta: "ten bytes."}))
	}
	runtime.ReadMemStats(&after)
	all = all[len(all)-most:]
	for _, i := range []int{0, 1, most - 1} {
		if got := all[i].Text(); got != strings.Repeat("ten bytes.", i+1) {
			t.Errorf("after %d pieces it is %.40q, %d bytes", i+1, got, len(got))
		}
	}
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 50 {
		t.Errorf("%d MB were copied for 100 kB", mb)
	}
}
