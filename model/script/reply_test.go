package script

import (
	"strings"
	"testing"

	"agentd/fault"
	"agentd/message"
)

// talk builds a conversation from lines: "u text", "a text", "a! tool…" (an
// assistant message with calls), "r tool text", "e tool text" (an error result).
func talk(lines ...string) *Conversation {
	c := &Conversation{Model: "m"}
	for _, l := range lines {
		kind, rest, _ := strings.Cut(l, " ")
		switch kind {
		case "u":
			c.Messages = append(c.Messages, Message{Role: message.RoleUser, Text: rest})
		case "a":
			c.Messages = append(c.Messages, Message{Role: message.RoleAssistant, Text: rest})
		case "a!":
			m := Message{Role: message.RoleAssistant}
			for _, name := range strings.Fields(rest) {
				m.Calls = append(m.Calls, Call{ID: "id-" + name, Name: name})
			}
			c.Messages = append(c.Messages, m)
		case "r", "e":
			name, text, _ := strings.Cut(rest, " ")
			c.Messages = append(c.Messages, Message{Role: message.RoleToolResult, CallID: "id-" + name, Name: name, Text: text, IsError: kind == "e"})
		default:
			panic(l)
		}
	}
	return c
}

func mustParse(t testing.TB, src string) *Script {
	t.Helper()
	s, err := Parse("test.yaml", []byte(src))
	if err != nil {
		t.Fatalf("%v (%s)", err, fault.HintOf(err))
	}
	return s
}

// show is a reply as one line: texts, calls with arguments, and the stop reason.
func show(r *Reply) string {
	var b strings.Builder
	for _, bl := range r.Blocks {
		switch bl.Type {
		case message.BlockThinking:
			b.WriteString("(" + bl.Text + ") ")
		case message.BlockText:
			b.WriteString(bl.Text + " ")
		default:
			b.WriteString(bl.Name + string(bl.Arguments) + " ")
		}
	}
	return b.String() + string(r.Stop)
}

const loopYAML = `
turns:
- tool_calls: [{name: a}]
  repeat: 2
- tool_calls: [{name: b}]
- text: "end {{.Step}} of {{.User}}"
`

const whenYAML = `
fallthrough: "over {{.User}}"
turns:
- when: {user: (?i)weather}
  tool_calls: [{name: forecast, arguments: {city: "{{find ` + "`in (\\\\w+)`" + ` .User}}"}}]
- when: {tool: forecast, failed: true}
  text: it failed
- when: {tool: forecast, result: sun(ny)?}
  text: "nice: {{.Last.Text}}"
- when: {system: terse}
  text: "."
- text: hello
`

const neverYAML = `
restart: never
turns:
- text: first
- tool_calls: [{name: t}]
- text: "third {{count .Results}}"
fallthrough: done
`

func TestPick(t *testing.T) {
	tests := []struct {
		name, script string
		system       string
		talk         []string
		want         string
	}{
		{"first", loopYAML, "", []string{"u go"}, `a{} toolUse`},
		{"repeated", loopYAML, "", []string{"u go", "a! a", "r a x"}, `a{} toolUse`},
		{"next", loopYAML, "", []string{"u go", "a! a", "r a x", "a! a", "r a x"}, `b{} toolUse`},
		{"last", loopYAML, "", []string{"u go", "a! a", "r a", "a! a", "r a", "a! b", "r b"}, `end 3 of go stop`},
		{"again at the next message", loopYAML, "", []string{"u go", "a! a", "r a", "a done", "u more"}, `a{} toolUse`},
		{"steered: the turn goes on", loopYAML, "", []string{"u go", "a! a", "r a", "a! a", "r a", "u faster"}, `b{} toolUse`},
		{"steered text is the user's", loopYAML, "", []string{"u go", "a! a", "r a", "a! a", "r a", "u faster", "a! b", "r b"}, `end 3 of faster stop`},
		{"two user messages", loopYAML, "", []string{"u go", "u context"}, `a{} toolUse`},
		{"a summary and a tail", loopYAML, "", []string{"u summary", "a! a", "r a"}, `a{} toolUse`},
		{"a tail without its user message", loopYAML, "", []string{"a! a", "r a", "a! a", "r a"}, `b{} toolUse`},
		{"empty conversation", loopYAML, "", nil, `a{} toolUse`},

		{"condition", whenYAML, "", []string{"u the weather in Oslo"}, `forecast{"city":"Oslo"} toolUse`},
		{"condition not met", whenYAML, "", []string{"u hi"}, `hello stop`},
		{"condition used up, result met", whenYAML, "", []string{"u weather in Oslo", "a! forecast", "r forecast sunny, 20"}, `nice: sunny, 20 stop`},
		{"error result", whenYAML, "", []string{"u weather in Oslo", "a! forecast", "e forecast sunny"}, `it failed stop`},
		{"result not met", whenYAML, "", []string{"u weather in Oslo", "a! forecast", "r forecast rain"}, `hello stop`},
		{"result of another tool", whenYAML, "", []string{"u weather in Oslo", "a! clock", "r clock sunny"}, `hello stop`},
		{"used up and none left", whenYAML, "", []string{"u weather", "a! forecast", "r forecast rain", "a! x", "r x"}, `over weather stop`},
		{"system", whenYAML, "be terse", []string{"u hi"}, `. stop`},

		{"never 0", neverYAML, "", []string{"u a"}, `first stop`},
		{"never 1", neverYAML, "", []string{"u a", "a first", "u b"}, `t{} toolUse`},
		{"never 2", neverYAML, "", []string{"u a", "a first", "u b", "a! t", "r t"}, `third 1 stop`},
		{"never 3", neverYAML, "", []string{"u a", "a first", "u b", "a! t", "r t", "a third", "u c"}, `done stop`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := talk(tt.talk...)
			c.System = []string{tt.system}
			p := NewPlayer(mustParse(t, tt.script))
			for range 2 { // the same request, the same reply
				r, err := p.Reply(c)
				if err != nil {
					t.Fatal(err)
				}
				if got := show(r); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			}
		})
	}
}

func TestNoTurnLeft(t *testing.T) {
	_, err := NewPlayer(mustParse(t, "name: short\nturns: [{tool_calls: [{name: a}]}]")).Reply(talk("u x", "a! a", "r a"))
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "script short: no turn is left for step 2") || !strings.Contains(fault.HintOf(err), "fallthrough") {
		t.Errorf("got %v (%s)", err, fault.HintOf(err))
	}
}

// A failing template is an error that names its place, and not a reply.
func TestTemplateFails(t *testing.T) {
	_, err := NewPlayer(mustParse(t, "turns:\n- text: hi\n  thinking: '{{index .Results 3}}'\n")).Reply(talk("u x"))
	if err == nil || !strings.Contains(err.Error(), "test.yaml:3: turns[0].thinking") {
		t.Errorf("got %v", err)
	}
}

func TestIDs(t *testing.T) {
	p := NewPlayer(mustParse(t, "turns:\n- tool_calls: [{name: a}, {name: a}, {name: a, id: 'mine_{{.Step}}'}]\n  repeat: 1000\n"))
	c := talk("u go")
	seen := map[string]bool{}
	for step := range 200 {
		r, err := p.Reply(c)
		if err != nil {
			t.Fatal(err)
		}
		m := Message{Role: message.RoleAssistant}
		for _, b := range r.Blocks {
			if seen[b.ID] {
				t.Fatalf("step %d: the id %s came twice", step, b.ID)
			}
			seen[b.ID] = true
			m.Calls = append(m.Calls, Call{b.ID, b.Name})
		}
		if r.Blocks[2].ID != "mine_"+itoa(c.views(false, false)[0].step) {
			t.Fatalf("own id %q", r.Blocks[2].ID)
		}
		m.Calls = m.Calls[:2]
		c.Messages = append(c.Messages, m)
		for _, call := range m.Calls {
			c.Messages = append(c.Messages, Message{Role: message.RoleToolResult, CallID: call.ID, Name: call.Name, Text: "same"})
		}
		if len(c.Messages) > 30 { // a compaction: the same texts, a shorter history
			c.Messages = append(talk("u go").Messages, c.Messages[len(c.Messages)-9:]...)
			p = NewPlayer(p.Script())
			delete(seen, "mine_"+itoa(c.views(false, false)[0].step))
			for k := range seen {
				if strings.HasPrefix(k, "mine_") {
					delete(seen, k)
				}
			}
		}
	}
}

func itoa(n int) string {
	if n >= 10 {
		return itoa(n/10) + itoa(n%10)
	}
	return string(rune('0' + n))
}

func TestArguments(t *testing.T) {
	tests := []struct{ args, want string }{
		{"{}", `{}`},
		{"{z: 1, a: [true, null, 1.5, x], 7: {k: \"q\\\"\\n\"}}", `{"z":1,"a":[true,null,1.5,"x"],"7":{"k":"q\"\n"}}`},
		{"{q: '{{.User}}', l: ['{{.Step}}', 2], o: {k: 'a{{.Model}}'}}", `{"q":"say \"hi\"\\","l":["0",2],"o":{"k":"am"}}`},
		{"'{\"broken\": {{quote .User}}'", `{"broken": "say \"hi\"\\"`},
		{"{n: 12345678901234567890}", `{"n":12345678901234567890}`},
		{"{b: !!str 5}", `{"b":"5"}`},
	}
	for _, tt := range tests {
		p := NewPlayer(mustParse(t, "turns:\n- tool_calls:\n  - name: x\n    arguments: "+tt.args+"\n"))
		r, err := p.Reply(talk(`u say "hi"\`))
		if err != nil {
			t.Errorf("%s: %v", tt.args, err)
			continue
		}
		if got := string(r.Blocks[0].Arguments); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.args, got, tt.want)
		}
	}
}

func TestObeysTheRequest(t *testing.T) {
	const src = "turns:\n- thinking: think\n  text: one two STOP three\n  tool_calls: [{name: a, arguments: {k: vvvv}}]\n"
	tests := []struct {
		name string
		set  func(*Conversation)
		want string
	}{
		{"plain", func(c *Conversation) {}, `(think) one two STOP three a{"k":"vvvv"} toolUse`},
		{"no thinking", func(c *Conversation) { c.NoThinking = true }, `one two STOP three a{"k":"vvvv"} toolUse`},
		{"no tools", func(c *Conversation) { c.NoTools = true }, `(think) one two STOP three stop`},
		{"stop text", func(c *Conversation) { c.Stop = []string{"three", " STOP"} }, `(think) one two stop`},
		{"stop text first", func(c *Conversation) { c.Stop = []string{"one"} }, `(think) stop`},
		{"limit in the call", func(c *Conversation) { c.MaxTokens = 7 }, `(think) one two STOP three length`},
		{"limit in the text", func(c *Conversation) { c.MaxTokens = 3 }, `(think) one two length`},
		{"limit in the thinking", func(c *Conversation) { c.MaxTokens = 1 }, `(thin) length`},
		{"limit not reached", func(c *Conversation) { c.MaxTokens = 10 }, `(think) one two STOP three a{"k":"vvvv"} toolUse`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := talk("u go")
			tt.set(c)
			r, err := NewPlayer(mustParse(t, src)).Reply(c)
			if err != nil {
				t.Fatal(err)
			}
			if got := show(r); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	t.Run("no tools and no text", func(t *testing.T) {
		c := talk("u go")
		c.NoTools = true
		r, err := NewPlayer(mustParse(t, "turns: [{tool_calls: [{name: a}]}]")).Reply(c)
		if err != nil || len(r.Blocks) != 1 || r.Stop != message.StopEnd || !strings.Contains(r.Blocks[0].Text, "calls a here") {
			t.Errorf("got %v %v", r, err)
		}
	})
	t.Run("one call at a time", func(t *testing.T) {
		for one, want := range map[bool]string{false: "a{} b{} toolUse", true: "a{} toolUse"} {
			c := talk("u go")
			c.OneCall = one
			r, err := NewPlayer(mustParse(t, "turns: [{tool_calls: [{name: a}, {name: b}]}]")).Reply(c)
			if err != nil || show(r) != want {
				t.Errorf("got %s, %v, want %s", show(r), err, want)
			}
		}
	})
	t.Run("a rune is never cut", func(t *testing.T) {
		c := talk("u go")
		c.MaxTokens = 1
		r, err := NewPlayer(mustParse(t, "turns: [{text: aaä€}]")).Reply(c)
		if err != nil || r.Blocks[0].Text != "aaä" {
			t.Errorf("got %v %v", r, err)
		}
	})
}

func TestUsage(t *testing.T) {
	c := talk("u go")
	c.PromptTokens = 100
	r, err := NewPlayer(mustParse(t, "turns: [{thinking: 12345678, text: 1234}]")).Reply(c)
	if err != nil || r.UsageGiven || r.Usage != (message.Usage{Input: 100, Output: 3, Reasoning: 2, TotalTokens: 103}) {
		t.Errorf("counted: %+v %v", r, err)
	}
	r, err = NewPlayer(mustParse(t, "turns: [{text: 1234, usage: {input: 5, cache_read: 7, cache_write: 2, output: 9}}]")).Reply(c)
	if err != nil || !r.UsageGiven || r.Usage != (message.Usage{Input: 5, Output: 9, CacheRead: 7, CacheWrite: 2, TotalTokens: 23}) {
		t.Errorf("given: %+v %v", r, err)
	}
}

func TestFaultTimes(t *testing.T) {
	p := NewPlayer(mustParse(t, "turns: [{text: ok, fault: {kind: server, times: 2}}]"))
	faults := func(c *Conversation) string {
		out := ""
		for range 4 {
			r, err := p.Reply(c)
			if err != nil {
				t.Fatal(err)
			}
			if r.Fault != nil {
				out += "x"
			} else {
				out += "."
			}
		}
		return out
	}
	if got := faults(talk("u a")); got != "xx.." {
		t.Errorf("first conversation %s", got)
	}
	if got := faults(talk("u b")); got != "xx.." {
		t.Errorf("another conversation counts for itself: %s", got)
	}
	same := talk("u a")
	same.Session = "other"
	if got := faults(same); got != "xx.." {
		t.Errorf("another session counts for itself: %s", got)
	}
	p.Reset()
	if got := faults(talk("u a")); got != "xx.." {
		t.Errorf("after reset %s", got)
	}
	for i := range maxFailed + 10 {
		if _, err := p.Reply(talk("u n" + itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.failed) != maxFailed || len(p.order) != maxFailed {
		t.Errorf("the memory is not bounded: %d, %d", len(p.failed), len(p.order))
	}
}

func TestParseFault(t *testing.T) {
	f, err := ParseFault("rate_limited, retry_after=2s, after=3, status=430, message=wait a bit")
	if err != nil || f.Kind != FaultRateLimited || f.RetryAfter.Seconds() != 2 || f.After != 3 || f.Status != 430 || f.Message != "wait a bit" {
		t.Errorf("got %+v %v", f, err)
	}
	if f, err := ParseFault("cut"); err != nil || f.After != -1 || !f.Midway() || f.Instead() {
		t.Errorf("got %+v %v", f, err)
	}
	for _, bad := range []string{"", "boom", "cut, status=500", "cut, x=1", "cut, after=x", "cut,after=-1", "stall, for=-1s", "server, retry_after=9999h"} {
		if _, err := ParseFault(bad); fault.HintOf(err) == "" {
			t.Errorf("%q: %v without a hint", bad, err)
		}
	}
}

func FuzzParseFault(f *testing.F) {
	f.Add("rate_limited, retry_after=2s, after=3")
	f.Add("stall, for=1s")
	f.Fuzz(func(t *testing.T, s string) {
		if ft, err := ParseFault(s); err == nil {
			if key, msg, _ := ft.check(); key != "" {
				t.Errorf("accepted a fault that is wrong: %s", msg)
			}
		}
	})
}

func TestChunk(t *testing.T) {
	for _, tt := range []struct {
		s    string
		n, w int
	}{{"", 3, 0}, {"abc", 3, 3}, {"abcd", 3, 3}, {"äöü", 2, 4}, {"a€b", 2, 4}, {"\xff\xfe\xfd", 2, 2}} {
		if got := chunk(tt.s, tt.n); got != tt.w {
			t.Errorf("chunk(%q, %d) = %d, want %d", tt.s, tt.n, got, tt.w)
		}
	}
}
