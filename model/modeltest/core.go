package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"agentd/message"
	"agentd/model"
)

// Services are where the parties of [Core] are asked.
type Services struct {
	// Serve starts a service that plays a script and refuses what the real ones refuse,
	// and gives its URL.
	Serve func(t testing.TB, script string) (url string)
	// Prepare makes a conversation fit to be sent, as the engine does.
	Prepare func(msgs []message.Message, to *Party) []message.Message
}

// Core has every party pass the suites that Pi has each provider pass, under Pi's names; the
// package comment says what each of them asks for here.
func Core(t *testing.T, s Services, parties []Party) {
	for i := range parties {
		t.Run(parties[i].Name, func(t *testing.T) {
			for _, suite := range []struct {
				name  string
				check func(c *core)
			}{
				{"stream", (*core).stream},
				{"tokens", (*core).tokens},
				{"abort", (*core).abort},
				{"empty", (*core).empty},
				{"context-overflow", (*core).overflow},
				{"image-limits", (*core).imageLimits},
				{"unicode-surrogate", (*core).surrogate},
				{"tool-call-without-result", (*core).orphanCall},
				{"errored-assistant-orphaned-tool-results", (*core).orphanResult},
				{"image-tool-result", (*core).imageResult},
				{"whitespace-tool-result", (*core).blankResult},
				{"total-tokens", (*core).totalTokens},
				{"interleaved-thinking", (*core).interleaved},
				{"cross-provider-handoff", (*core).takeOver},
				{"provider-retry", (*core).retry},
			} {
				t.Run(suite.name, func(t *testing.T) { suite.check(&core{T: t, Services: s, party: &parties[i]}) })
			}
		})
	}
}

// core is one suite of one party.
type core struct {
	*testing.T
	Services
	party *Party
}

func (c *core) join(script string) *member {
	return (&handoff{t: c.T}).join(c.Serve(c, script), c.party)
}

func (c *core) request(m *member, msgs ...message.Message) *model.Request {
	return &model.Request{
		Model: c.party.Model, MaxTokens: 4000, Thinking: model.ThinkingLow, CacheLast: true, Scratch: &m.scratch,
		System:   []model.SystemPart{{Text: "Be careful.", Cache: true}},
		Tools:    []model.ToolSpec{{Name: "look", Description: "Looks.", Schema: json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}}}`)}},
		Messages: c.Prepare(msgs, c.party),
	}
}

// answer is the reply to a conversation, whose events must be sound.
func (c *core) answer(m *member, msgs ...message.Message) *message.Message {
	c.Helper()
	var events recorder
	reply, err := m.provider.Generate(c.Context(), c.request(m, msgs...), events.add)
	if err != nil {
		c.Fatalf("%v\nafter being sent\n%s", err, m.sent.body())
	}
	events.check(c.T, reply)
	return reply
}

// wants checks what was sent, of a party that is sent anything.
func (c *core) wants(m *member, times int, text string) {
	c.Helper()
	if sent := m.sent.body(); !c.party.InProcess && strings.Count(sent, text) != times {
		c.Errorf("%q is %d times, not %d, in\n%s", text, strings.Count(sent, text), times, sent)
	}
}

func (c *core) stream() {
	m := c.join(`
latency: {size: 3}
turns:
- text: "Hello, wörld! 👋"
- thinking: Let me see.
  text: I will look.
  tool_calls: [{name: look, arguments: {at: "a \"quoted\" ünïcode\n"}}]
- thinking: I have seen it.
  text: "{{count .Results}} result: {{range .Results}}{{.Text}}{{end}}"
restart: never
`)
	msgs := []message.Message{message.User("Say hello.")}
	next := func(stop message.StopReason) *message.Message {
		reply := c.answer(m, msgs...)
		if reply.StopReason != stop || reply.Usage == nil || reply.Usage.Prompt() <= 0 || reply.Usage.Output <= 0 || reply.ResponseID == "" {
			c.Fatalf("%s", dump(reply))
		}
		msgs = append(msgs, *reply)
		return reply
	}
	if reply := next(message.StopEnd); reply.Text() != "Hello, wörld! 👋" {
		c.Errorf("the text: %s", dump(reply))
	}
	msgs = append(msgs, message.User("Look."))
	reply := next(message.StopToolUse)
	calls := reply.ToolCalls()
	if len(calls) != 1 || calls[0].Name != "look" || calls[0].ID == "" || !sameJSON(calls[0].Arguments, `{"at":"a \"quoted\" ünïcode\n"}`) || reply.Text() != "I will look." {
		c.Fatalf("the call: %s", dump(reply))
	}
	if b := reply.Content[0]; b.Type != message.BlockThinking || b.Text != "Let me see." {
		c.Errorf("the thoughts: %s", dump(reply))
	}
	msgs = append(msgs, message.ToolResult(calls[0].ID, "look", false, message.Text("a thing")))
	if reply := next(message.StopEnd); reply.Text() != "1 result: a thing" {
		c.Errorf("the end: %s", dump(reply))
	}
}

func sameJSON(got json.RawMessage, want string) bool {
	var a, b any
	if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
		return false
	}
	return dump(a) == dump(b)
}

// cut begins a reply, ends the context at its first text, and gives the error.
func (c *core) cut(m *member, msgs ...message.Message) *model.Error {
	c.Helper()
	ctx, stop := context.WithCancel(c.Context())
	defer stop()
	text := ""
	reply, err := m.provider.Generate(ctx, c.request(m, msgs...), func(e model.StreamEvent) {
		if e.Type == model.StreamTextDelta {
			text += e.Delta
			stop()
		}
	})
	if text == "" {
		c.Fatal("nothing came before the end")
	}
	return failed(c, reply, err, model.ClassCancelled)
}

// agrees answers whatever comes.
const agrees = "turns: [{text: 'yes'}]\nfallthrough: 'yes'"

const stalls = `
latency: {size: 3}
turns:
- text: This is never said to its end.
  fault: {kind: stall, after: 2}
`

// tokens: what was used up to an abort is known, or said to be an estimate.
func (c *core) tokens() {
	e := c.cut(c.join(stalls), message.User("Tell me a long story."))
	if c.party.InProcess { // it counts at the end, and nobody pays
		if e.Usage != nil {
			c.Errorf("the script counted %+v", e.Usage)
		}
		return
	}
	if u := e.Usage; u == nil || u.Prompt() <= 0 || u.Output <= 0 || u.TotalTokens != u.Prompt()+u.Output {
		c.Errorf("usage %+v", u)
	}
}

// abort: in a stream, before it, and the conversation goes on.
func (c *core) abort() {
	m := c.join(stalls)
	c.cut(m, message.User("Tell me a long story."))
	ctx, stop := context.WithCancel(c.Context())
	stop()
	reply, err := m.provider.Generate(ctx, c.request(m, message.User("hi")), nil)
	failed(c, reply, err, model.ClassCancelled)
	aborted := message.Message{Role: message.RoleAssistant, Content: []message.Block{message.Text("This i")}, StopReason: message.StopAborted}
	m = c.join("turns: [{text: Here I am.}]")
	if reply := c.answer(m, message.User("Tell me a long story."), aborted, message.User("Are you there?")); reply.Text() != "Here I am." {
		c.Errorf("%s", dump(reply))
	}
}

func (c *core) empty() {
	m := c.join(agrees)
	for _, nothing := range []message.Message{
		{Role: message.RoleUser},
		message.User(""),
		message.User(" \n\t"),
		{Role: message.RoleAssistant, StopReason: message.StopEnd},
		{Role: message.RoleAssistant, StopReason: message.StopEnd, Content: []message.Block{message.Text(" ")}},
	} {
		if reply := c.answer(m, message.User("hi"), nothing, message.User("are you there?")); reply.Text() != "yes" {
			c.Errorf("%s", dump(reply))
		}
		reply, err := m.provider.Generate(c.Context(), &model.Request{Model: c.party.Model, Messages: []message.Message{nothing}}, nil)
		if c.party.InProcess { // a script says what is next, whatever it is asked
			if err != nil {
				c.Error(err)
			}
			continue
		}
		failed(c, reply, err, model.ClassInvalid)
	}
}

func (c *core) overflow() {
	m := c.join("turns: [{text: x, fault: {kind: overflow}}]")
	reply, err := m.provider.Generate(c.Context(), c.request(m, message.User("hi")), nil)
	if e := failed(c, reply, err, model.ClassOverflow); e.Class.Retryable() || e.Message == "" {
		c.Errorf("%+v", e)
	}
}

// imageLimits: of more images than providers take, no more are sent than they take.
func (c *core) imageLimits() {
	m := c.join(agrees)
	var msgs []message.Message
	for range 120 {
		msgs = append(msgs, message.User("see"), message.Message{Role: message.RoleUser, Content: []message.Block{message.Image(picture, "image/png")}})
	}
	c.answer(m, append(msgs, message.User("how many?"))...)
	if sent := strings.Count(m.sent.body(), picture); c.party.NoImages && sent > 0 || !c.party.NoImages && !c.party.InProcess && (sent == 0 || sent > 100) {
		c.Errorf("%d images were sent", sent)
	}
}

// surrogate: half of a character, which tools bring, is never sent; the rest is.
func (c *core) surrogate() {
	m := c.join("turns: [{text: x}]\nfallthrough: '{{range .Results}}{{.Text}}{{end}}'")
	call := message.Message{Role: message.RoleAssistant, StopReason: message.StopToolUse, Content: []message.Block{message.Call("call_1", "look", json.RawMessage("{\"at\":\"x\\ud83dy\"}"))}}
	for in, want := range map[string]string{
		"emoji 🙈 and 日本語 and \u2028":  "emoji 🙈 and 日本語 and \u2028",
		"half \xed\xa0\xbd of it":     "half  of it",
		"the other \xed\xb9\x88 half": "the other  half",
		"bytes \xff\xfe of a binary":  "bytes  of a binary",
		"cut in the middle \xf0\x9f":  "cut in the middle ",
		"𝒳 and a flag 🇨🇭 and 👩‍👩‍👧‍👦": "𝒳 and a flag 🇨🇭 and 👩‍👩‍👧‍👦",
	} {
		reply := c.answer(m, message.User(in), call, message.ToolResult("call_1", "look", false, message.Text(in)))
		if got := reply.Text(); !c.party.InProcess && got != want {
			c.Errorf("%q was read as %q", in, got)
		}
	}
}

func (c *core) orphanCall() {
	m := c.join(agrees)
	calls := message.Message{Role: message.RoleAssistant, StopReason: message.StopToolUse,
		Content: []message.Block{message.Call("call_1", "look", nil), message.Call("call_2", "look", nil)}}
	reply := c.answer(m, message.User("Look."), calls, message.ToolResult("call_1", "look", false, message.Text("first result")), message.User("Never mind."))
	if reply.Text() != "yes" {
		c.Errorf("%s", dump(reply))
	}
	c.wants(m, 1, "first result")
	c.wants(m, 1, "Never mind.")
}

// orphanResult: a reply that failed is not sent, and what its calls gave is not either.
func (c *core) orphanResult() {
	m := c.join(agrees)
	broken := message.Message{Role: message.RoleAssistant, StopReason: message.StopError, Content: []message.Block{message.Call("call_1", "look", nil)}}
	reply := c.answer(m, message.User("Look."), broken, message.ToolResult("call_1", "look", false, message.Text("an orphan")), message.User("Once more."))
	if reply.Text() != "yes" {
		c.Errorf("%s", dump(reply))
	}
	c.wants(m, 0, "an orphan")
	c.wants(m, 0, "call_1")
}

func (c *core) imageResult() {
	m := c.join(agrees)
	call := message.Message{Role: message.RoleAssistant, StopReason: message.StopToolUse, Content: []message.Block{message.Call("call_1", "look", nil)}}
	times := 1
	if c.party.NoImages {
		times = 0
	}
	for _, content := range [][]message.Block{{message.Image(picture, "image/png")}, {message.Text("a picture"), message.Image(picture, "image/png")}} {
		if reply := c.answer(m, message.User("Look."), call, message.ToolResult("call_1", "look", false, content...)); reply.Text() != "yes" {
			c.Errorf("%s", dump(reply))
		}
		c.wants(m, times, picture)
	}
	c.wants(m, 1, "a picture")
}

func (c *core) blankResult() {
	m := c.join(agrees)
	call := message.Message{Role: message.RoleAssistant, StopReason: message.StopToolUse, Content: []message.Block{message.Call("call_1", "look", nil)}}
	for _, text := range []string{"", " ", "\n\t\n"} {
		if reply := c.answer(m, message.User("Look."), call, message.ToolResult("call_1", "look", false, message.Text(text))); reply.Text() != "yes" {
			c.Errorf("%s", dump(reply))
		}
		c.wants(m, 1, "(no tool output)")
	}
}

// totalTokens: the total is the sum of its parts, with a cache and without.
func (c *core) totalTokens() {
	m := c.join("turns: [{thinking: Hm., text: yes}]")
	long := strings.Repeat("One of the many words of a long prompt. ", 2000)
	var last *message.Usage
	for range 3 {
		req := c.request(m, message.User("hi"))
		req.System[0].Text = long
		reply, err := m.provider.Generate(c.Context(), req, nil)
		if err != nil {
			c.Fatal(err)
		}
		last = reply.Usage
		if last.TotalTokens != last.Input+last.Output+last.CacheRead+last.CacheWrite || last.Prompt() < 10_000 || last.Output <= 0 || last.Reasoning > last.Output {
			c.Errorf("%+v", last)
		}
	}
	if cached := last.CacheRead > 0; cached == c.party.Uncounted {
		c.Errorf("what was read from the cache: %+v", last)
	}
}

// interleaved: thoughts between calls go back as they came, which the service checks.
func (c *core) interleaved() {
	m := c.join(HandoffScript)
	msgs := []message.Message{message.User("What is there?")}
	for _, calls := range []int{2, 1, 0} {
		reply := c.answer(m, msgs...)
		if len(reply.ToolCalls()) != calls {
			c.Fatalf("%s", dump(reply))
		}
		if calls > 0 && reply.Content[0].Type != message.BlockThinking {
			c.Errorf("no thoughts ahead of %d calls: %s", calls, dump(reply))
		}
		for i := range msgs { // all of this one's own
			for _, b := range msgs[i].Content {
				if !c.party.InProcess && len(b.Signature) > 20 && !strings.Contains(m.sent.body(), b.Signature) {
					c.Errorf("the signature of a %s is not in\n%s", b.Type, m.sent.body())
				}
			}
		}
		msgs = append(msgs, *reply)
		for _, call := range reply.ToolCalls() {
			msgs = append(msgs, message.ToolResult(call.ID, call.Name, false, message.Text("x")))
		}
	}
}

// takeOver: a conversation of a model that no party is goes on. [Handoffs] has all pairs.
func (c *core) takeOver() {
	m := c.join(agrees)
	call := message.Call("call_9|fc_"+strings.Repeat("x", 200), "look", json.RawMessage(`{"at":"a"}`))
	call.Signature = "Q0FMTCBieSBhbm90aGVyIG9uZQ=="
	foreign := message.Message{Role: message.RoleAssistant, API: "another-api", Provider: "another", Model: "another-1", StopReason: message.StopToolUse,
		Content: []message.Block{{Type: message.BlockThinking, Text: "Foreign thoughts.", Signature: "U0lHTkFUVVJFIG9mIGFub3RoZXI="}, message.Text("I will look."), call}}
	if reply := c.answer(m, message.User("Look."), foreign, message.ToolResult(call.ID, "look", false, message.Text("a result")), message.User("and?")); reply.Text() != "yes" {
		c.Errorf("%s", dump(reply))
	}
	for _, text := range []string{"Foreign thoughts.", "I will look.", "a result"} {
		c.wants(m, 1, text)
	}
	c.wants(m, 0, call.Signature)
	c.wants(m, 0, "U0lHTkFUVVJFIG9mIGFub3RoZXI=")
}

// retry: an adapter asks once and says for how long to wait; the engine asks again.
func (c *core) retry() {
	m := c.join("turns: [{text: yes, fault: {kind: rate_limited, retry_after: 3s, times: 1}}]")
	reply, err := m.provider.Generate(c.Context(), c.request(m, message.User("hi")), nil)
	var e *model.Error
	if reply != nil || !errors.As(err, &e) || e.Class != model.ClassRateLimited || !e.Class.Retryable() || e.RetryAfter != 3*time.Second {
		c.Fatalf("%+v, %v", reply, err)
	}
	if reply := c.answer(m, message.User("hi")); reply.Text() != "yes" {
		c.Errorf("%s", dump(reply))
	}
}
