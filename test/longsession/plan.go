// Package longsession plays a long coding session through the engine, with a model that
// knows nothing but what its requests hold, and says what that model has at the end of all
// that was planted: decisions of the person and of the assistant, and paths of files. It is
// a measure of compaction: what is left out of a request for a summary, what a summary may
// have, and what is carried along beside it.
package longsession

import (
	"encoding/json"
	"fmt"
	"strings"

	"agentd/message"
)

// Fact is something planted in the session. It is kept if the text is in the last request.
type Fact struct {
	Text string
	// Where says who said it, and where in what was said.
	Where string
}

// turn is a message of the person and what the model does about it.
type turn struct {
	input   string
	replies []*message.Message
}

// plan is a session: its results are by the ids of calls.
type plan struct {
	turns   []turn
	results map[string]string
	facts   []Fact
	bytes   int
}

// newPlan makes a session of about so many tokens, the same each time.
func newPlan(tokens int) *plan {
	p := &plan{results: map[string]string{}}
	for p.bytes < tokens*4 {
		p.turn(len(p.turns))
	}
	return p
}

// decision plants one, and gives the line that says it.
func (p *plan) decision(where string) string {
	n := len(p.facts)
	text := fmt.Sprintf("DECISION-%03d: part %d of the importer keeps its order", n, n*7%83)
	p.facts = append(p.facts, Fact{text, where})
	return text
}

// path plants one.
func (p *plan) path(where, format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	p.facts = append(p.facts, Fact{text, where})
	return text
}

// long is a text of about so many bytes with a line in its middle.
func long(bytes, seed int, line string) string {
	var b strings.Builder
	words := []string{"rows", "are", "read", "in", "blocks", "and", "written", "again", "when", "a", "block", "is", "full", "so", "memory", "stays", "flat"}
	for i := 0; b.Len() < bytes; i++ {
		if line != "" && b.Len() >= bytes/2 {
			fmt.Fprintf(&b, "\n%s\n", line)
			line = ""
		}
		b.WriteString(words[(i*i+seed*3+i)%len(words)])
		if b.WriteByte(' '); i%14 == 13 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// turn adds one: a question, ten steps with calls, and an answer.
func (p *plan) turn(n int) {
	t := turn{}
	switch n % 3 {
	case 0:
		t.input = "Go on with the importer. " + p.decision("the person, short")
	case 1:
		t.input = "Look at this first:\n" + long(9_000, n, p.decision("the person, in the middle of a long message"))
	default:
		t.input = "Next one, please."
	}
	p.bytes += len(t.input)
	for step := range 10 {
		reply := &message.Message{Role: message.RoleAssistant, StopReason: message.StopToolUse, Provider: "sim", Model: "m"}
		say := ""
		switch step {
		case 3:
			say = p.decision("the assistant, in the middle of a turn")
		case 6:
			say = long(5_000, n, p.decision("the assistant, in the middle of a long text in a turn"))
		}
		if say != "" {
			reply.Content = append(reply.Content, message.Text(say))
		}
		id, name, result := fmt.Sprintf("c%d-%d", n, step), "read", long(6_000, n+step, "")
		args := map[string]string{}
		switch step % 4 {
		case 0, 1:
			args["path"] = p.path("a file that was read", "src/part%02d/file%02d.go", n, step)
		case 2:
			name, args["path"], args["new"] = "edit", p.path("a file that was changed", "src/part%02d/edit%02d.go", n, step), long(1_500, n, "")
			result = "done"
		default:
			name, args["command"] = "shell", fmt.Sprintf("go test ./part%02d", n)
			result = long(12_000, n+step, p.decision("in the middle of a result that is cut")+"\n"+p.path("in the middle of a result that is cut", "src/part%02d/found%02d_test.go", n, step)+":12: one row is missing")
		}
		raw, err := json.Marshal(args)
		if err != nil {
			panic("longsession: strings are always JSON: " + err.Error())
		}
		reply.Content = append(reply.Content, message.Call(id, name, raw))
		p.results[id] = result
		p.bytes += len(say) + len(raw) + len(result)
		t.replies = append(t.replies, reply)
	}
	answer := long(1_200, n, p.decision("the assistant, in an answer"))
	p.bytes += len(answer)
	t.replies = append(t.replies, &message.Message{Role: message.RoleAssistant, StopReason: message.StopEnd, Provider: "sim", Model: "m", Content: []message.Block{message.Text(answer)}})
	p.turns = append(p.turns, t)
}
