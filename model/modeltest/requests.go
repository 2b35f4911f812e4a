package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"agentd/message"
	"agentd/model"
)

// Conversation is a history of n steps of one tool call each, with text,
// thinking, parallel calls and images in it.
func Conversation(n int) []message.Message {
	msgs := []message.Message{message.User("Please look at the files.")}
	for i := range n {
		id := fmt.Sprintf("call_%d", i)
		msgs = append(msgs,
			message.Message{Role: message.RoleAssistant, StopReason: message.StopToolUse, Content: []message.Block{
				message.Text(fmt.Sprintf("Step %d: I will read \"file\" %d.\n", i, i)),
				message.Call(id+"a", "read", json.RawMessage(fmt.Sprintf(`{"path":"dir/file_%d.txt"}`, i))),
				message.Call(id+"b", "stat", json.RawMessage(`{}`)),
			}},
			message.ToolResult(id+"a", "read", false, message.Text(strings.Repeat("line of the file, with ünïcode\n", 20))),
			message.ToolResult(id+"b", "stat", i%3 == 0, message.Text("no such file"), message.Image("aGk=", "image/png")),
		)
		if i%4 == 3 {
			msgs = append(msgs,
				message.Message{Role: message.RoleAssistant, StopReason: message.StopEnd, Content: []message.Block{message.Text("Done so far.")}},
				message.User("Go on."))
		}
	}
	return msgs
}

// Request is a full request with a conversation.
func Request(modelID string, msgs []message.Message) *model.Request {
	temperature := 0.2
	return &model.Request{
		Model:  modelID,
		System: []model.SystemPart{{Text: "You are careful.", Cache: true}, {Text: "The org is ACME.", Cache: true}, {Text: "It is Monday."}},
		Tools: []model.ToolSpec{
			{Name: "read", Description: "Reads a file.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
			{Name: "stat"},
		},
		Messages: msgs, MaxTokens: 1000, Temperature: &temperature, Stop: []string{"END"}, CacheLast: true, SessionID: "session-1",
	}
}

// post sends a request and returns its body.
func (h *Harness) post(t testing.TB, p model.Provider, f *fake, req *model.Request) []byte {
	t.Helper()
	if _, err := p.Generate(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	body := f.last(t)
	if !json.Valid(body) || !utf8.Valid(body) {
		t.Fatalf("the body is not JSON: %q", body)
	}
	return body
}

func sameBytes(t *testing.T, h Harness) {
	f := serve(t, stream(h.fixture(t, "text")))
	p := h.adapter(t, f)
	req := Request(h.Model, Conversation(5))
	first := h.post(t, p, f, req)
	for range 3 {
		if again := h.post(t, p, f, req); !bytes.Equal(first, again) {
			t.Fatalf("the same request has other bytes:\n%s\n%s", first, again)
		}
	}
	req.Scratch = &model.Scratch{}
	for range 2 {
		if again := h.post(t, p, f, req); !bytes.Equal(first, again) {
			t.Fatalf("with a scratch the request has other bytes:\n%s\n%s", first, again)
		}
	}
	req.Scratch.Value = "of another adapter"
	if again := h.post(t, p, f, req); !bytes.Equal(first, again) {
		t.Error("a scratch of another adapter changes the bytes")
	}
}

// growing: what was sent once is sent the same way in every later request.
func growing(t *testing.T, h Harness) {
	f := serve(t, stream(h.fixture(t, "text")))
	p := h.adapter(t, f)
	all := Conversation(8)
	scratch := &model.Scratch{}
	var before []json.RawMessage
	for n := 1; n <= len(all); n++ {
		if n < len(all) && all[n].Role == message.RoleToolResult {
			continue // a batch of results comes as one
		}
		req := Request(h.Model, all[:n])
		plain := h.post(t, p, f, req)
		req.Scratch = scratch
		body := h.post(t, p, f, req)
		if !bytes.Equal(plain, body) {
			t.Fatalf("at %d messages the scratch changes the bytes", n)
		}
		msgs := h.Messages(t, body)
		if len(msgs) < len(before) {
			t.Fatalf("at %d messages there are fewer on the wire than before", n)
		}
		for i := range before {
			if !bytes.Equal(before[i], msgs[i]) {
				t.Fatalf("at %d messages, message %d changed from\n%s\nto\n%s", n, i, before[i], msgs[i])
			}
		}
		before = msgs
	}
}

// edited: a caller that changes what was sent before gets what it asked for.
func edited(t *testing.T, h Harness) {
	f := serve(t, stream(h.fixture(t, "text")))
	p := h.adapter(t, f)
	edits := map[string]func(r *model.Request) *model.Request{
		"text of the first message": func(r *model.Request) *model.Request { r.Messages[0].Content[0].Text = "changed"; return r },
		"argument bytes in place": func(r *model.Request) *model.Request {
			copy(r.Messages[1].Content[1].Arguments, `{"path":"DIR`)
			return r
		},
		"a message cut out":        func(r *model.Request) *model.Request { r.Messages = slices.Delete(r.Messages, 4, 7); return r },
		"shorter":                  func(r *model.Request) *model.Request { r.Messages = r.Messages[:4]; return r },
		"a result more in a batch": func(r *model.Request) *model.Request { r.Messages = r.Messages[:3]; return r },
		"an error flag":            func(r *model.Request) *model.Request { r.Messages[2].IsError = true; return r },
		"a call id":                func(r *model.Request) *model.Request { r.Messages[2].ToolCallID = "other"; return r },
		"an image":                 func(r *model.Request) *model.Request { r.Messages[3].Content[1].Data = "eW8="; return r },
		"a tool's schema in place": func(r *model.Request) *model.Request { copy(r.Tools[0].Schema[2:], "TYPE"); return r },
		"fewer tools":              func(r *model.Request) *model.Request { r.Tools = r.Tools[:1]; return r },
		"no tools":                 func(r *model.Request) *model.Request { r.Tools = nil; return r },
		"the system prompt":        func(r *model.Request) *model.Request { r.System[0].Text = "x"; return r },
		"another model":            func(r *model.Request) *model.Request { r.Model = "other"; return r },
		"no cache mark":            func(r *model.Request) *model.Request { r.CacheLast = false; return r },
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			scratch := &model.Scratch{}
			req := Request(h.Model, Conversation(4))
			req.Scratch = scratch
			first := h.post(t, p, f, req)
			edit(req)
			with := h.post(t, p, f, req)
			fresh := edit(Request(h.Model, Conversation(4)))
			without := h.post(t, p, f, fresh)
			if !bytes.Equal(with, without) {
				t.Errorf("the edit was lost:\n%s\nwant\n%s", with, without)
			}
			if bytes.Equal(first, with) != slices.Contains(h.Ignores, name) {
				t.Error("the edit changes nothing, or the list of ignored ones is wrong")
			}
			// And back again.
			back := Request(h.Model, Conversation(4))
			back.Scratch = scratch
			if !bytes.Equal(h.post(t, p, f, back), first) {
				t.Error("undoing the edit does not give the first bytes")
			}
		})
	}
}

var loneSurrogate = regexp.MustCompile(`(?i)\\u(d[89ab][0-9a-f]{2}(?:[^\\]|\\[^u]|$)|dc00)`)

// unsendable: no string of a request carries bytes that providers refuse.
func unsendable(t *testing.T, h Harness) {
	f := serve(t, stream(h.fixture(t, "text")))
	const bad = "a\xed\xa0\x80b\xffc\x00d" // a lone surrogate, an impossible byte, a NUL
	req := &model.Request{
		Model:  h.Model,
		System: []model.SystemPart{{Text: bad}},
		Tools:  []model.ToolSpec{{Name: "read", Description: bad, Schema: json.RawMessage(`{"type":"object","description":"x\ud83dy"}`)}},
		Messages: []message.Message{
			message.User(bad),
			{Role: message.RoleAssistant, Content: []message.Block{message.Text(bad), message.Call("c1", "read", json.RawMessage("{\"path\":\"x\\ud83dy\xff\"}"))}},
			message.ToolResult("c1", "read", false, message.Text(bad)),
		},
		Stop: []string{bad},
	}
	body := string(h.post(t, h.adapter(t, f), f, req))
	if loneSurrogate.MatchString(body) {
		t.Errorf("a lone surrogate was sent: %s", body)
	}
	texts := 6
	if h.NoStop {
		texts--
	}
	if n := strings.Count(body, `abc\u0000d`); n != texts {
		t.Errorf("%d of %d texts are there: %s", n, texts, body)
	}
	if strings.Count(body, "xy") != 2 {
		t.Errorf("the JSON lost more than the surrogate: %s", body)
	}
}

// empty: messages without content are left out, and a request without
// messages is not sent.
func empty(t *testing.T, h Harness) {
	f := serve(t, stream(h.fixture(t, "text")))
	p := h.adapter(t, f)
	nothing := []message.Message{
		{Role: message.RoleUser},
		message.User(""),
		message.User(" \n\t"),
		{Role: message.RoleAssistant},
		{Role: message.RoleAssistant, Content: []message.Block{message.Text("")}},
		{Role: message.RoleAssistant, Content: []message.Block{{Type: message.BlockThinking}}},
		{Role: "note", Content: []message.Block{message.Text("for people")}},
	}
	req := h.ask()
	want := h.Messages(t, h.post(t, p, f, req))
	for i, m := range nothing {
		for _, msgs := range [][]message.Message{{m, req.Messages[0]}, {req.Messages[0], m}} {
			got := h.Messages(t, h.post(t, p, f, &model.Request{Model: h.Model, Messages: msgs, CacheLast: true}))
			if len(got) != len(want) || !bytes.Equal(got[0], want[0]) {
				t.Errorf("message %d (%s) was sent: %s", i, dump(m), got)
			}
		}
	}
	sent := len(f.requests())
	for _, msgs := range [][]message.Message{nil, nothing} {
		m, err := p.Generate(t.Context(), &model.Request{Model: h.Model, Messages: msgs}, nil)
		failed(t, m, err, model.ClassInvalid)
	}
	if len(f.requests()) != sent {
		t.Error("a request without messages was sent")
	}
	// A result without output says so; it must not vanish, its call is open.
	for _, content := range [][]message.Block{nil, {message.Text("")}, {message.Text("  ")}} {
		body := h.post(t, p, f, &model.Request{Model: h.Model, Messages: []message.Message{
			message.User("hi"),
			{Role: message.RoleAssistant, Content: []message.Block{message.Call("c1", "read", nil)}},
			message.ToolResult("c1", "read", false, content...),
		}})
		if !bytes.Contains(body, []byte("(no tool output)")) {
			t.Errorf("an empty result: %s", body)
		}
	}
}

// ids: those of other providers fit, and results still find their calls.
func ids(t *testing.T, h Harness) {
	f := serve(t, stream(h.fixture(t, "text")))
	long := strings.Repeat("x", 200)
	foreign := []string{"call_1", "toolu_01ABC", "call|fc_1:a/b+c=", long + "1", long + "2", "ünïcode", strings.Repeat("é|", 60)}
	var blocks []message.Block
	var results []message.Message
	for _, id := range foreign {
		blocks = append(blocks, message.Call(id, "read", nil))
		results = append(results, message.ToolResult(id, "read", false, message.Text("x")))
	}
	msgs := append([]message.Message{message.User("hi"), {Role: message.RoleAssistant, Content: blocks}}, results...)
	calls, got := h.IDs(t, h.post(t, h.adapter(t, f), f, &model.Request{Model: h.Model, Messages: msgs}))
	if len(calls) != len(foreign) || !slices.Equal(calls, got) {
		t.Fatalf("calls %q, results %q", calls, got)
	}
	seen := map[string]bool{}
	for i, id := range calls {
		if seen[id] || id == "" || len(id) > h.IDLimit || !utf8.ValidString(id) {
			t.Errorf("%q became %q", foreign[i], id)
		}
		seen[id] = true
	}
	if calls[0] != "call_1" || calls[1] != "toolu_01ABC" {
		t.Errorf("ids that fit were changed: %q", calls[:2])
	}
}

// replay: the reply with thinking goes back as it came.
func replay(t *testing.T, h Harness) {
	f := serve(t, stream(h.fixture(t, "thinking")))
	p := h.adapter(t, f)
	req := h.ask()
	m, err := p.Generate(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Through the store: JSON must not change it either.
	stored, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var back message.Message
	if err := json.Unmarshal(stored, &back); err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, back, message.User("and then?"))
	if body := h.post(t, p, f, req); !bytes.Contains(body, []byte(h.Replay)) {
		t.Errorf("the request lacks\n%s\nin\n%s", h.Replay, body)
	}
	req.Messages[1].Model = "another-model"
	if body := h.post(t, p, f, req); bytes.Contains(body, []byte(h.Replay)) {
		t.Errorf("the thinking of another model was sent as this one's: %s", body)
	}
}
