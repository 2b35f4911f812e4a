package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agentd/internal/store"
	"agentd/message"
)

// plant makes entries of lines such as "3<2 run user hello", with numbers for ids; what
// a run's model said has a model.
func plant(t *testing.T, lines string) []*store.Entry {
	t.Helper()
	var out []*store.Entry
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		f := strings.SplitN(strings.TrimSpace(line), " ", 4)
		id, parent, _ := strings.Cut(f[0], "<")
		e := &store.Entry{ID: id, Parent: strings.TrimPrefix(parent, "0"), RunID: strings.TrimPrefix(f[1], "-"), Kind: KindMessage}
		text := ""
		if len(f) > 3 {
			text = f[3]
		}
		m := message.Message{Role: message.Role(f[2]), Content: []message.Block{message.Text(text)}}
		switch f[2] {
		case "user":
		case "said", "call", "failed":
			m.Role, m.Model, m.StopReason = message.RoleAssistant, "m", message.StopEnd
			if f[2] == "call" {
				m.Content = append(m.Content, message.Call("c"+id, "look", nil))
			}
			if f[2] == "failed" {
				m.StopReason = message.StopError
			}
		case "theirs": // an answer as a client had it
			m.Role = message.RoleAssistant
		case "result":
			m.Role, m.ToolCallID = message.RoleToolResult, text
		default:
			e.Kind, e.Body = f[2], json.RawMessage(`{}`)
		}
		if e.Kind == KindMessage {
			body, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			e.Body = body
		}
		out = append(out, e)
	}
	return out
}

func TestFollow(t *testing.T) {
	const talk = `
		1<0 r1 user one
		2<1 r1 call Looking.
		3<2 r1 result c2
		4<3 r1 said Found.
		5<4 - label
		6<5 r2 user two
		7<6 r2 said Second.`
	told := map[string]Told{"r1": {Text: "Looking.\n\nFound."}, "r2": {Text: "Second."}}
	user, answer := func(s string) message.Message { return message.User(s) }, func(s string) message.Message {
		return message.Message{Role: message.RoleAssistant, Content: []message.Block{message.Text(s)}}
	}
	whole := []message.Message{user("one"), answer("Looking.\n\nFound."), user("two"), answer(" Second.\n")}
	for _, c := range []struct {
		name, tree, leaf string
		history          []message.Message
		at               string
		n                int
	}{
		{"nothing yet", "1<0 - label", "1", whole, "", 0},
		{"all of it", talk, "7", whole, "7", 4},
		{"a part", talk, "7", whole[:2], "4", 2},
		{"an edited answer", talk, "7", []message.Message{user("one"), answer("Looking."), user("two")}, "1", 1},
		{"an edited question", talk, "7", []message.Message{user("1"), answer("Looking.\n\nFound.")}, "", 0},
		{"an edit later", talk, "7", []message.Message{whole[0], whole[1], user("other")}, "4", 2},
		{"an unknown run", strings.ReplaceAll(talk, "r1", "r9"), "7", whole, "1", 1},
		{"a second way that is stood on", talk + "\n8<5 r3 user two\n9<8 r3 said Second.", "9", whole[:3], "8", 3},
		{"a second way that is not", talk + "\n8<5 r3 user two\n9<8 r3 said Other.", "7", whole, "7", 4},
		{"the newest of equals", talk + "\n8<5 r3 user two\n9<1 - branch", "9", whole[:3], "8", 3},
		{"through what failed", "1<0 r1 user one\n2<1 r1 failed Oh.\n3<2 r2 user two", "3", []message.Message{user("one"), user("two")}, "3", 2},
		{"what failed and was seen", "1<0 r1 user one\n2<1 r1 failed Oh.\n3<2 r2 user two", "3", []message.Message{user("one"), answer("Oh."), user("two")}, "3", 3},
		{"a client's own answer", "1<0 r1 user one\n2<1 r1 theirs X\n3<2 r1 user two\n4<3 r1 said X", "4", []message.Message{user("one"), answer("X"), user("two"), answer("X")}, "4", 4},
		{"a run's answer is not the client's", "1<0 r1 user one\n2<1 r1 theirs Second.\n3<2 r1 user two\n4<3 r1 said Found.", "4", []message.Message{user("one"), answer("Looking.\n\nFound.")}, "1", 1},
		{"back and forth", "1<0 r1 user a\n2<1 - rollback\n3<0 - branch\n4<3 r2 user a\n5<4 r2 said x", "5", []message.Message{user("a"), answer("x")}, "5", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, n := NewTree(plant(t, c.tree), c.leaf).Follow(c.history, func(run string) (Told, bool) {
				a, ok := told[run]
				return a, ok
			})
			if at != c.at || n != c.n {
				t.Errorf("at %q after %d, want %q after %d", at, n, c.at, c.n)
			}
		})
	}
}

// Calls that a client performs itself are a part of its history.
func TestFollowClientTools(t *testing.T) {
	tree := NewTree(plant(t, "1<0 r1 user go\n2<1 r1 call \n3<2 r2 result c2\n4<3 r2 said Done."), "4")
	history := func(args, result string) []message.Message {
		return []message.Message{message.User("go"), {Role: message.RoleAssistant, Content: []message.Block{message.Call("c2", "look", json.RawMessage(args))}},
			message.ToolResult("c2", "look", false, message.Text(result))}
	}
	nobody := func(string) (Told, bool) { return Told{}, false }
	for _, c := range []struct {
		args, result string
		n            int
	}{{" { } ", "c2", 3}, {`{}`, "other", 2}, {`{"a":1}`, "c2", 1}} {
		if at, n := tree.Follow(history(c.args, c.result), nobody); n != c.n || at != fmt.Sprint(n) {
			t.Errorf("%+v: at %s after %d", c, at, n)
		}
	}
}

func TestTree(t *testing.T) {
	tree := NewTree(plant(t, "1<0 - user a\n2<1 - said b\n3<1 - branch\n4<3 - user c\n5<9 - user lost\n6<7 - user x\n7<6 - user y"), "4")
	ids := func(nodes []*Node) string {
		s := ""
		for _, n := range nodes {
			s += n.ID
		}
		return s
	}
	if got := ids(tree.Path("4")) + " " + ids(tree.Roots()) + " " + tree.Last() + " " + tree.Common("2", "4"); got != "134 15 7 1" {
		t.Error(got)
	}
	for id, want := range map[string]bool{"": true, "4": true, "5": false, "6": false, "nope": false} {
		if tree.Whole(id) != want {
			t.Errorf("%s: %t", id, !want)
		}
	}
	left := ""
	for _, e := range tree.Left("2", "4") {
		left += e.ID
	}
	if left != "2" || tree.Node("2").OnPath || !tree.Node("3").OnPath || !tree.Node("5").Orphan {
		t.Errorf("left %s", left)
	}
}

// What agentd put beside a person's words is no edit of the client's.
func TestFollowKnowsWordsFromContext(t *testing.T) {
	entries := plant(t, `
		1<0 r1 user one
		2<1 r1 said First.`)
	m := message.Message{Role: message.RoleUser, Content: []message.Block{{Type: message.BlockText, Text: "<context>", Context: "page"}, message.Text("one")}}
	body, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	entries[0].Body = body
	history := []message.Message{message.User("one"), {Role: message.RoleAssistant, Content: []message.Block{message.Text("First.")}}}
	if at, n := NewTree(entries, "2").Follow(history, func(string) (Told, bool) { return Told{}, false }); at != "2" || n != 2 {
		t.Errorf("at %q, %d known", at, n)
	}
	if _, n := NewTree(entries, "2").Follow([]message.Message{message.User("<context>one")}, nil); n != 0 {
		t.Error("context was taken for words")
	}
}

// A conversation that was compacted since is gone on with as it is now.
func TestFollowGoesOnBehindWhatIsNoMessage(t *testing.T) {
	const talk = `
		1<0 r1 user one
		2<1 r1 said First.
		3<2 r2 compaction
		4<3 - label`
	history := []message.Message{message.User("one"), {Role: message.RoleAssistant, Content: []message.Block{message.Text("First.")}}}
	nobody := func(string) (Told, bool) { return Told{}, false }
	for _, c := range []struct{ name, more, leaf, want string }{
		{"the session stands there", "", "4", "3"},
		{"the conversation went on", "\n5<4 r3 user two\n6<5 r3 said Second.", "6", "3"},
		{"the session stands elsewhere", "\n5<0 r3 user two\n6<5 r3 said Second.", "6", "3"},
		{"it went on ahead of the compaction", "\n5<2 r3 user two\n6<5 r3 said Second.", "6", "3"},
		{"it went back", "\n5<2 - branch_summary", "5", "5"},
	} {
		if at, n := NewTree(plant(t, talk+c.more), c.leaf).Follow(history, nobody); at != c.want || n != 2 {
			t.Errorf("%s: at %q, %d known, want %q", c.name, at, n, c.want)
		}
	}
}
