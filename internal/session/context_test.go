package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agentd/internal/store"
	"agentd/message"
)

func assistant(stop message.StopReason, blocks ...message.Block) message.Message {
	return message.Message{Role: message.RoleAssistant, StopReason: stop, Content: blocks}
}

func call(id string) message.Block { return message.Call(id, "t", nil) }

func result(id string) message.Message {
	return message.ToolResult(id, "t", false, message.Text("r-"+id))
}

func show(msgs []message.Message) string {
	var s []string
	for _, m := range msgs {
		x := string(m.Role)[:1]
		for _, c := range m.ToolCalls() {
			x += " " + c.ID
		}
		if m.Role == message.RoleToolResult {
			x += " " + m.ToolCallID
			if m.IsError {
				x += "!"
			}
		}
		s = append(s, x)
	}
	return strings.Join(s, ", ")
}

func TestHeal(t *testing.T) {
	user := message.User("hi")
	for _, c := range []struct {
		name string
		in   []message.Message
		want string
	}{
		{"empty", nil, ""},
		{"whole", []message.Message{user, assistant("toolUse", call("1"), call("2")), result("1"), result("2"), assistant("stop")}, "u, a 1 2, t 1, t 2, a"},
		{"results in another order", []message.Message{user, assistant("toolUse", call("1"), call("2")), result("2"), result("1")}, "u, a 1 2, t 2, t 1"},
		{"a result is missing at the end", []message.Message{user, assistant("toolUse", call("1"), call("2")), result("2")}, "u, a 1 2, t 2, t 1!"},
		{"a result is missing in the middle", []message.Message{user, assistant("toolUse", call("1")), user}, "u, a 1, t 1!, u"},
		{"a result without a call", []message.Message{user, result("9"), assistant("stop")}, "u, a"},
		{"a result twice", []message.Message{user, assistant("toolUse", call("1")), result("1"), result("1")}, "u, a 1, t 1"},
		{"a failed reply", []message.Message{user, assistant("error", message.Text("x")), user}, "u, u"},
		{"an aborted reply with calls", []message.Message{user, assistant("aborted", call("1")), user}, "u, u"},
		{"an application's role", []message.Message{user, {Role: "notification"}, assistant("stop")}, "u, a"},
		{"an application's role between call and result", []message.Message{assistant("toolUse", call("1")), {Role: "note"}, result("1")}, "a 1, t 1"},
	} {
		if got := show(Heal(c.in)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if again := show(Heal(Heal(c.in))); again != c.want {
			t.Errorf("%s: healing twice gives %s", c.name, again)
		}
	}
}

// One row that can not be read must not cost the session.
func TestMessagesLeavesBadEntriesOut(t *testing.T) {
	good, err := json.Marshal(message.User("hi"))
	if err != nil {
		t.Fatal(err)
	}
	items, bad := Items([]*store.Entry{
		{ID: "1", Kind: KindMessage, Body: good, RunID: "r"}, {ID: "2", Kind: KindMessage, Body: json.RawMessage(`{"role":3}`)},
		{ID: "3", Kind: "label", Body: json.RawMessage(`{}`)}, {ID: "4", Kind: KindMessage, Body: good}, {ID: "5", Kind: "hologram"},
		{ID: "6", Kind: KindMessage, Body: json.RawMessage(`null`)}, {ID: "7", Kind: KindMessage}})
	if len(items) != 2 || items[0].Entry != "1" || items[0].Run != "r" || items[1].Entry != "4" {
		t.Errorf("%+v", items)
	}
	var ids []string
	for _, p := range bad {
		ids = append(ids, p.Entry)
	}
	if fmt.Sprint(ids) != "[2 5 6 7]" || !strings.Contains(bad[1].What, "hologram") {
		t.Errorf("bad %v", bad)
	}
}

func FuzzHeal(f *testing.F) {
	f.Add("u a1 t1 a")
	f.Add("a12 t2 u t1 e3 t3 n a4")
	f.Fuzz(func(t *testing.T, script string) {
		var msgs []message.Message
		for _, w := range strings.Fields(script) {
			var blocks []message.Block
			for _, c := range w[1:] {
				blocks = append(blocks, call(string(c)))
			}
			switch w[0] {
			case 'u':
				msgs = append(msgs, message.User(w))
			case 'a':
				msgs = append(msgs, assistant("stop", blocks...))
			case 'e':
				msgs = append(msgs, assistant("error", blocks...))
			case 't':
				msgs = append(msgs, result(w[1:]))
			default:
				msgs = append(msgs, message.Message{Role: "x"})
			}
		}
		// Every call of a kept reply is answered before anybody else speaks,
		// and nothing else is answered.
		open := map[string]int{}
		for _, m := range Heal(msgs) {
			if m.Role == message.RoleToolResult {
				if open[m.ToolCallID] == 0 {
					t.Fatalf("a result without a call in %q", script)
				}
				open[m.ToolCallID]--
				continue
			}
			for id, n := range open {
				if n > 0 {
					t.Fatalf("call %s has no result in %q", id, script)
				}
			}
			for _, c := range m.ToolCalls() {
				open[c.ID]++
			}
		}
		for id, n := range open {
			if n > 0 {
				t.Fatalf("call %s has no result at the end of %q", id, script)
			}
		}
	})
}
