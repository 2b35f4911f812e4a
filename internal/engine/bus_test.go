package engine

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// heard is a bus that keeps what was said.
type heard struct {
	MemoryBus
	said [][]byte
}

func (b *heard) Publish(m []byte) {
	b.said = append(b.said, m)
	b.MemoryBus.Publish(m)
}

// TestNotesFitIntoMessages: what is told in quick succession goes together, long text
// is cut between runes with the numbers it had, what fits nowhere goes as a number.
func TestNotesFitIntoMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := &heard{}
		var got []note
		from := newHub(bus, "a", func(note) { t.Error("a node hears itself") }, nil)
		to := newHub(bus, "b", func(n note) { got = append(got, n) }, func() { t.Error("something was lost") })
		defer from.close()
		defer to.close()
		long := strings.Repeat("wörd ", 4000)
		seq := int64(0)
		text := func(s string) event.Event {
			seq += int64(len(s))
			return event.Event{RunID: "r", Seq: seq, Type: event.TextDelta, Data: &event.Delta{Text: s, Block: 1}}
		}
		tell := func(ev event.Event, prev int64) {
			from.send(note{Kind: noteEvents, Tenant: "t", Run: "r", Prev: prev, Durable: 7, Events: []event.Event{ev}})
		}
		tell(text("short "), 0)
		tell(text(long), 6)
		seq++
		tell(event.Event{RunID: "r", Seq: seq, Type: event.ToolCompleted, Data: &event.Tool{Result: strings.Repeat("x", 9000)}}, seq-1)
		tell(text("end"), seq)
		pass(time.Second)
		synctest.Wait()
		for _, m := range bus.said {
			if len(m) > busMost {
				t.Errorf("a message of %d bytes", len(m))
			}
		}
		pos, all, gaps := int64(0), "", 0
		for _, n := range got {
			if n.Durable != 7 || n.ref() != (Ref{"t", "r"}) {
				t.Errorf("%+v", n)
			}
			if len(n.Events) == 0 {
				gaps++
				pos = n.Prev // from the store
				continue
			}
			if n.Prev != pos {
				t.Errorf("what follows %d comes after %d", n.Prev, pos)
			}
			for _, ev := range n.Events {
				d := ev.Data.(*event.Delta)
				if !utf8.ValidString(d.Text) || ev.Seq != pos+int64(len(d.Text)) || d.Block != 1 {
					t.Errorf("event %d after %d: %q", ev.Seq, pos, d.Text)
				}
				pos, all = ev.Seq, all+d.Text
			}
		}
		if all != "short "+long+"end" || gaps != 1 || pos != seq {
			t.Errorf("%d bytes up to %d, %d gaps", len(all), pos, gaps)
		}
		if first := len(bus.said); first > 5 {
			t.Errorf("%d messages", first)
		}
	})
}

// TestALostMessageIsNoticed by the next one, whatever that is about.
func TestALostMessageIsNoticed(t *testing.T) {
	bus := &MemoryBus{}
	missed := 0
	h := newHub(bus, "b", func(note) {}, func() { missed++ })
	defer h.close()
	say := func(sender string, count int64) {
		raw, _ := json.Marshal(busMessage{Sender: sender, Count: count})
		bus.Publish(raw)
	}
	say("a", 1)
	say("a", 2)
	say("c", 1)
	if missed != 0 {
		t.Errorf("%d missed in order", missed)
	}
	say("a", 4)
	if say("d", 9); missed != 2 {
		t.Errorf("%d missed", missed)
	}
	bus.Publish([]byte("not ours"))
}

// FuzzBusMessage: anybody may write to a channel of the database.
func FuzzBusMessage(f *testing.F) {
	f.Add([]byte(`{"s":"a","c":1,"n":[{"k":"events","t":"t","r":"r","p":1,"d":2,"e":[{"v":1,"run_id":"r","seq":3,"ts":"2026-01-01T00:00:00.000Z","type":"text_delta","step":1,"data":{"text":"x"}}]}]}`))
	f.Add([]byte(`{"s":"a","c":1,"n":[{"k":"events","t":"t","r":"r","p":1,"d":2,"x":[{"s":4,"t":5,"p":1,"b":1,"h":true,"x":"abc"}]}]}`))
	f.Add([]byte(`{"s":"a","c":1,"n":[1,null,{}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		h := newHub(&MemoryBus{}, "b", func(n note) {
			if n.encode(); n.ref().ID == "" {
				return
			}
		}, func() {})
		defer h.close()
		h.receive(raw)
	})
}

// TestLettersSayWhatWasMeant: what goes by mail arrives as it was.
func TestLettersSayWhatWasMeant(t *testing.T) {
	in := &store.Input{RunID: "r", ID: "in_1", Kind: "steer", Body: json.RawMessage(`{"role":"user"}`), Created: 5}
	change := store.InterruptChange{ID: "i1", InterruptAnswer: store.InterruptAnswer{Status: "answered", Decision: "approve", Answer: json.RawMessage(`{"a":1}`), AnsweredBy: "kim", Answered: 4}}
	rule := &store.Rule{SessionID: "s", ID: "rule_1", Tool: "x", Pattern: json.RawMessage(`{}`), Created: 3}
	d := &driver{e: &Engine{cfg: Config{Now: func() time.Time { return time.UnixMilli(99) }}}}
	d.state = run.State{Calls: []run.Call{{Interrupt: "i1", Expires: 50}}}
	at := run.At{Now: 9}
	for _, c := range []struct {
		in   run.Input
		rows func(*store.Tx)
		want run.Input
	}{
		{queued{run.Steered{At: at, ID: "in_1"}, in}, func(tx *store.Tx) { tx.Inputs = append(tx.Inputs, in) }, queued{run.Steered{At: run.At{Now: 99}, ID: "in_1"}, in}},
		{queued{run.FollowedUp{At: at, ID: "in_1"}, in}, func(tx *store.Tx) { tx.Inputs = append(tx.Inputs, in) }, queued{run.FollowedUp{At: run.At{Now: 99}, ID: "in_1"}, in}},
		{run.CancelRequested{At: at, Reason: "x", Rollback: true}, nil, run.CancelRequested{At: run.At{Now: 99}, Reason: "x", Rollback: true}},
		{run.TimerFired{At: run.At{Now: 200}, ID: "i1"}, nil, run.TimerFired{At: run.At{Now: 200}, ID: "i1"}},
		// In time is in time, however long the way was.
		{withArgs{run.Answered{At: at, Interrupt: "i1", Decision: "approve", Amended: true}, "c1", json.RawMessage(`{"a":1}`)}, func(tx *store.Tx) {
			tx.Answers, tx.NewRules = append(tx.Answers, change), append(tx.NewRules, rule)
		}, withArgs{run.Answered{At: at, Interrupt: "i1", Decision: "approve", Amended: true}, "c1", json.RawMessage(`{"a":1}`)}},
		{run.Answered{At: at, Interrupt: "i2", Decision: "answer", Text: "red"}, nil, run.Answered{At: run.At{Now: 99}, Interrupt: "i2", Decision: "answer", Text: "red"}},
	} {
		l, err := seal(c.in, c.rows)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		var back letter
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatal(err)
		}
		got, extra := back.open(d)
		var tx, want store.Tx
		extra(&tx)
		if c.rows != nil {
			c.rows(&want)
		}
		if g, w := asJSON(got), asJSON(c.want); g != w || asJSON(tx) != asJSON(want) {
			t.Errorf("%s: %s, want %s; rows %s, want %s", c.in.Kind(), g, w, asJSON(tx), asJSON(want))
		}
	}
	if _, err := seal(run.Resumed{}, nil); fault.KindOf(err) != fault.Internal {
		t.Errorf("an input that nobody sends: %v", err)
	}
	if _, err := seal(run.TimerFired{}, func(tx *store.Tx) { tx.DropSessions = []string{"s"} }); fault.KindOf(err) != fault.Internal {
		t.Errorf("rows that are not taken along: %v", err)
	}
}

func asJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if a, ok := v.(run.Answered); ok {
		return string(raw) + a.Text
	}
	if q, ok := v.(queued); ok {
		return asJSON(q.Input) + asJSON(q.row)
	}
	if w, ok := v.(withArgs); ok {
		return asJSON(w.Input) + w.call + string(w.args)
	}
	return string(raw)
}

// TestANamedNode drives what is named to it and leaves alone what others left.
func TestANamedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, hello)
		api := n.node("api", false)
		left := n.started(api, StartRequest{})
		behind := n.started(api, StartRequest{SessionID: left.SessionID, Input: blocks("go")})
		cli := n.node("cli", false, func(c *Config) { c.Cluster.Named = true })
		n.ended(cli, n.started(cli, StartRequest{}).ID, "completed")
		pass(10 * time.Second)
		if r, err := cli.Get(t.Context(), ref(left.ID)); err != nil || r.Status != "queued" {
			t.Errorf("%+v, %v", r, err)
		}
		if err := cli.Resume(t.Context(), ref(behind.ID)); err != nil {
			t.Fatal(err)
		}
		n.ended(cli, behind.ID, "completed") // after what is ahead of it
		n.ended(cli, left.ID, "completed")
	})
}

// TestDrainMakesTheCallsThatAReplyDecided: a call that must not be made twice and that
// comes of a reply that was under way is made, because the decision is durable before it
// starts: whoever found it without a call would have to ask.
func TestDrainMakesTheCallsThatAReplyDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &counter{}
		entered := make(chan struct{}, 9)
		n := newNodes(t, func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
			entered <- struct{}{}
			pass(5 * time.Second)
			if step == 0 {
				return say("", call("o", "once", `{}`), call("r", "read", `{}`))
			}
			return say("Done.")
		}, toolFunc{tool.Spec{Name: "once", Effect: tool.Once}, func(_ context.Context, c tool.Call) (tool.Result, error) {
			calls.add("a" + c.ID)
			pass(time.Second)
			return tool.TextResult("done"), nil
		}}, echoNamed("read"))
		a := n.node("a", true)
		r := n.started(a, StartRequest{})
		<-entered
		b := n.node("b", true)
		if err := a.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n.answerDone(b, r.ID) {
			t.Error("somebody was asked")
		}
		n.ended(b, r.ID, "completed")
		if calls.n["ao"] != 1 {
			t.Errorf("calls: %v", calls.n)
		}
	})
}

// echoNamed is an echo that may be repeated, under another name.
func echoNamed(name string) tool.Tool {
	f := echoTool(tool.Read).(toolFunc)
	f.spec.Name = name
	return f
}
