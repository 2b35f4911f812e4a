package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agentd/message"
)

func TestDropReasoning(t *testing.T) {
	// A letter is a message: u of a person, n a note that looks like one, c a reply
	// with calls, r a result, a an answer. Each is a minute after the one before, and
	// a number is so many minutes more. Replies think what their place is.
	build := func(s string) (msgs []message.Message) {
		at := int64(60_000)
		for _, c := range s {
			at += 60_000
			m := message.Message{Timestamp: at}
			think := message.Block{Type: message.BlockThinking, Text: fmt.Sprint(len(msgs)), Signature: "sig"}
			switch c {
			case 'u':
				m.Role, m.Content = message.RoleUser, []message.Block{message.Text("u")}
			case 'n':
				m.Role, m.Content, m.Details = message.RoleUser, []message.Block{message.Text("n")}, json.RawMessage(`1`)
			case 'c':
				m.Role, m.Content = message.RoleAssistant, []message.Block{think, message.Call("x", "f", nil)}
			case 'a':
				m.Role, m.Content = message.RoleAssistant, []message.Block{think, message.Text("a")}
			case 't': // an answer of which nobody knows when
				m.Role, m.Content, m.Timestamp = message.RoleAssistant, []message.Block{think, message.Text("a")}, 0
			case 'x': // of a role that only the application knows
				m.Role, m.Content = "chart", []message.Block{message.Text("x")}
			case 'r':
				m = message.ToolResult("x", "f", false, message.Text("r"))
			default:
				at += int64(c-'0')*60_000 - 60_000
				continue
			}
			msgs = append(msgs, m)
		}
		return msgs
	}
	left := func(msgs []message.Message) string {
		var s []string
		for _, m := range msgs {
			for _, b := range m.Content {
				if b.Type == message.BlockThinking {
					s = append(s, b.Text)
				}
			}
		}
		return strings.Join(s, " ")
	}
	note := func(m *message.Message) bool { return len(m.Details) > 0 }
	for _, tt := range []struct {
		name, msgs string
		minutes    int64
		want       string
	}{
		{"never", "ucra9u", 0, "1 3"},
		{"the prompt is warm", "ucra3u", 5, "1 3"},
		{"it is cold", "ucra5u", 5, ""},
		{"the present turn keeps its own", "ucra5ucr", 5, "5"},
		{"what was left out stays out", "ua5uau", 5, "3"},
		{"each message", "uauaucr", 1, "5"},
		{"a note begins no turn", "ua5ncr", 5, "1 3"},
		{"a note that was not answered", "uan5ucr", 5, "4"},
		{"two messages, the second late", "uau5ucr", 5, "4"},
		{"what an application adds is no turn", "uax5ucr", 5, "4"},
		{"what it adds in the middle of a turn is no answer", "ucrx5u", 5, "1"},
		{"a turn without an answer", "ucr5u", 5, "1"},
		{"and one before it", "ua5ucr5u", 5, "3"},
		{"nobody knows when", "ut9u", 5, "1"},
		{"the first message", "u", 5, ""},
		{"nothing", "", 5, ""},
	} {
		msgs := build(tt.msgs)
		before := left(msgs)
		got := DropReasoning(msgs, tt.minutes*60_000, note)
		if left(got) != tt.want || len(got) != len(msgs) || left(msgs) != before {
			t.Errorf("%s: %q is left, not %q (%d of %d messages; the given ones have %q)", tt.name, left(got), tt.want, len(got), len(msgs), left(msgs))
		}
		// What follows changes nothing about what came before it.
		for n := range msgs {
			part, whole := DropReasoning(msgs[:n], tt.minutes*60_000, note), DropReasoning(msgs, tt.minutes*60_000, note)
			if later := left(whole[:n]); !strings.HasPrefix(" "+left(part), " "+later) && !strings.HasSuffix(left(part), later) {
				t.Errorf("%s: after %d messages %q, later %q", tt.name, n, left(part), later)
			}
		}
	}
}
