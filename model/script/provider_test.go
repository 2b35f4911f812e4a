package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentd/message"
	"agentd/model"
)

var _ model.Provider = (*Provider)(nil)

func ask(text string) *model.Request {
	return &model.Request{Model: "m", Messages: []message.Message{message.User(text)},
		Tools: []model.ToolSpec{{Name: "a", Schema: json.RawMessage(`{"type":"object"}`)}}}
}

// trace is the events as lines, each with what the message was at that moment.
func trace(lines *[]string) func(model.StreamEvent) {
	return func(e model.StreamEvent) {
		l := fmt.Sprintf("%s %d", e.Type, e.Index)
		if e.Delta != "" {
			l += fmt.Sprintf(" +%q", e.Delta)
		}
		if e.Content != "" {
			l += fmt.Sprintf(" =%q", e.Content)
		}
		if e.ToolCall != nil {
			l += fmt.Sprintf(" %s%s", e.ToolCall.Name, e.ToolCall.Arguments)
		}
		l += " |"
		for _, b := range e.Partial.Content {
			l += fmt.Sprintf(" %s:%s%s", b.Type, b.Text, b.Arguments)
		}
		*lines = append(*lines, l)
	}
}

func TestEvents(t *testing.T) {
	s := mustParse(t, "latency: {size: 4}\nturns:\n- thinking: hm\n  text: héllo you\n  tool_calls: [{name: a, arguments: {k: v}}, {name: a}]\n")
	var got []string
	m, err := New(s, nil).Generate(t.Context(), ask("x"), trace(&got))
	if err != nil {
		t.Fatal(err)
	}
	want := `start 0 |
thinking_start 0 | thinking:
thinking_delta 0 +"hm" | thinking:hm
thinking_end 0 ="hm" | thinking:hm
text_start 1 | thinking:hm text:
text_delta 1 +"héll" | thinking:hm text:héll
text_delta 1 +"o yo" | thinking:hm text:héllo yo
text_delta 1 +"u" | thinking:hm text:héllo you
text_end 1 ="héllo you" | thinking:hm text:héllo you
toolcall_start 2 a{} | thinking:hm text:héllo you toolCall:{}
toolcall_delta 2 +"{\"k\"" a{} | thinking:hm text:héllo you toolCall:{}
toolcall_delta 2 +":\"v\"" a{} | thinking:hm text:héllo you toolCall:{}
toolcall_delta 2 +"}" a{} | thinking:hm text:héllo you toolCall:{}
toolcall_end 2 a{"k":"v"} | thinking:hm text:héllo you toolCall:{"k":"v"}
toolcall_start 3 a{} | thinking:hm text:héllo you toolCall:{"k":"v"} toolCall:{}
toolcall_delta 3 +"{}" a{} | thinking:hm text:héllo you toolCall:{"k":"v"} toolCall:{}
toolcall_end 3 a{} | thinking:hm text:héllo you toolCall:{"k":"v"} toolCall:{}`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	quiet, err := New(s, nil).Generate(t.Context(), ask("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(m)
	b, _ := json.Marshal(quiet)
	if string(a) != string(b) {
		t.Errorf("without emit the reply differs:\n%s\n%s", a, b)
	}
	if m.StopReason != message.StopToolUse || m.Role != message.RoleAssistant || m.Provider != "script" || m.API != "script" ||
		m.Model != "m" || m.ResponseID == "" || m.Usage.Output == 0 || m.Content[0].Signature != Sign("hm") || m.Timestamp != 0 {
		t.Errorf("message %s", a)
	}
}

func TestFaults(t *testing.T) {
	tests := []struct {
		fault  string
		class  model.Class
		status int
		wait   time.Duration // Retry-After
		text   string        // streamed before it
	}{
		{"rate_limited, retry_after: 2s", model.ClassRateLimited, 429, 2 * time.Second, ""},
		{"overloaded", model.ClassOverloaded, 529, 0, ""},
		{"overloaded, status: 503", model.ClassOverloaded, 503, 0, ""},
		{"overloaded, after: 2", model.ClassOverloaded, 0, 0, "abcd"},
		{"server", model.ClassServer, 500, 0, ""},
		{"overflow", model.ClassOverflow, 400, 0, ""},
		{"auth", model.ClassAuth, 401, 0, ""},
		{"quota", model.ClassQuota, 429, 0, ""},
		{"refused", model.ClassRefused, 0, 0, "ab"},
		{"cut", model.ClassConnection, 0, 0, "ab"},
		{"cut, after: 0", model.ClassConnection, 0, 0, ""},
		{"truncated, after: 99", model.ClassTruncated, 0, 0, "abcdef"},
		{"malformed", model.ClassMalformed, 0, 0, "ab"},
	}
	for _, tt := range tests {
		t.Run(tt.fault, func(t *testing.T) {
			p := New(mustParse(t, "latency: {size: 2}\nturns: [{text: abcdef, fault: {kind: "+tt.fault+", message: because}}]"), nil)
			for _, stream := range []bool{true, false} {
				text := ""
				emit := func(e model.StreamEvent) { text += e.Delta }
				if !stream {
					emit = nil
				}
				m, err := p.Generate(t.Context(), ask("x"), emit)
				var e *model.Error
				if m != nil || !errors.As(err, &e) {
					t.Fatalf("got %v, %v", m, err)
				}
				if e.Class != tt.class || e.Status != tt.status || e.RetryAfter != tt.wait || e.Provider != "script" || e.Model != "m" || e.Message != "because" {
					t.Errorf("got %+v", e)
				}
				if stream && text != tt.text {
					t.Errorf("streamed %q, want %q", text, tt.text)
				}
			}
		})
	}
}

func TestProviderErrors(t *testing.T) {
	tests := []struct {
		name, src string
		class     model.Class
		msg       string
	}{
		{"other model", "models: [x]\nturns: [{text: a}]", model.ClassNotFound, "add it to the script's models"},
		{"used up", "name: s\nturns: [{text: a, when: {user: never}}]", model.ClassInvalid, "no turn is left"},
		{"arguments", "turns: [{tool_calls: [{name: a, arguments: '{\"x'}]}]", model.ClassMalformed, "no JSON object"},
		{"arguments are a list", "turns: [{tool_calls: [{name: a, arguments: '[]'}]}]", model.ClassMalformed, "no JSON object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(mustParse(t, tt.src), &Options{Name: "test"}).Generate(t.Context(), ask("x"), nil)
			var e *model.Error
			if !errors.As(err, &e) || e.Class != tt.class || !strings.Contains(e.Message, tt.msg) || e.Provider != "test" {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(mustParse(t, "turns: [{text: abcdef, latency: {first: 1s, chunk: 100ms, size: 2}}]"), nil)
		start := time.Now()
		var at []time.Duration
		_, err := p.Generate(t.Context(), ask("x"), func(e model.StreamEvent) {
			if e.Type == model.StreamTextDelta {
				at = append(at, time.Since(start))
			}
		})
		if err != nil || fmt.Sprint(at) != "[1s 1.1s 1.2s]" {
			t.Errorf("got %v %v", at, err)
		}
	})
}

func TestSlowAndStall(t *testing.T) {
	for _, tt := range []struct {
		fault string
		took  time.Duration
	}{{"slow_first_byte", 2 * time.Second}, {"slow_first_byte, for: 7s", 7 * time.Second}, {"stall, for: 3s, after: 2", 3 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			m, err := New(mustParse(t, "turns: [{text: abcdef, fault: {kind: "+tt.fault+"}}]"), nil).Generate(t.Context(), ask("x"), nil)
			if err != nil || m.Text() != "abcdef" || time.Since(start) != tt.took {
				t.Errorf("%s: %v after %v", tt.fault, err, time.Since(start))
			}
		})
	}
}

// A cancelled call ends at once, wherever it waits.
func TestCancel(t *testing.T) {
	for _, src := range []string{
		"turns: [{text: abc, fault: {kind: stall}}]",
		"turns: [{text: abc, fault: {kind: slow_first_byte, for: 1h}}]",
		"turns: [{text: abcdef, latency: {first: 1h}}]",
		"turns: [{text: abcdef, latency: {chunk: 1h, size: 2}}]",
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Minute, cancel)
			start := time.Now()
			_, err := New(mustParse(t, src), nil).Generate(ctx, ask("x"), nil)
			var e *model.Error
			if !errors.As(err, &e) || e.Class != model.ClassCancelled || time.Since(start) != time.Minute {
				t.Errorf("%s: %v after %v", src, err, time.Since(start))
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	p := New(mustParse(t, "latency: {size: 1}\nturns: [{text: abcdef}]"), nil)
	n := 0
	_, err := p.Generate(ctx, ask("x"), func(e model.StreamEvent) {
		if e.Type == model.StreamTextDelta {
			if n++; n == 2 {
				cancel()
			}
		}
	})
	if e := model.AsError(ctx, "", "", err); err == nil || e.Class != model.ClassCancelled || n != 2 {
		t.Errorf("cancelled between chunks: %v after %d", err, n)
	}
	if _, err := p.Generate(ctx, ask("x"), nil); err == nil {
		t.Error("a call with an ended context succeeded")
	}
}

// What no provider is sent does not count as a step.
func TestFromRequestSkips(t *testing.T) {
	req := ask("x")
	req.Messages = append(req.Messages,
		message.Message{Role: message.RoleAssistant, StopReason: message.StopError},
		message.Message{Role: message.RoleAssistant, StopReason: message.StopAborted, Content: []message.Block{message.Text("half")}},
		message.Message{Role: "note", Content: []message.Block{message.Text("custom")}})
	m, err := New(mustParse(t, "turns: [{text: 'step {{.Step}} {{.User}}'}]"), nil).Generate(t.Context(), req, nil)
	if err != nil || m.Text() != "step 0 x" {
		t.Errorf("got %v %v", m, err)
	}
}

func TestEcho(t *testing.T) {
	m, err := New(Echo(), nil).Generate(t.Context(), ask("{{.User}} hi"), nil)
	if err != nil || m.Text() != "{{.User}} hi" {
		t.Errorf("got %v %v", m, err)
	}
}

func longRequest() *model.Request {
	req := ask("go")
	for i := range 20 {
		id := fmt.Sprintf("call_%d", i)
		req.Messages = append(req.Messages,
			message.Message{Role: message.RoleAssistant, Content: []message.Block{message.Call(id, "a", nil)}},
			message.ToolResult(id, "a", false, message.Text(strings.Repeat("x", 500))))
	}
	return req
}

func BenchmarkGenerate(b *testing.B) {
	p := New(mustParse(b, "turns:\n- tool_calls: [{name: a, arguments: {k: v}}]\n  repeat: 50\n"), nil)
	req := longRequest()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Generate(b.Context(), req, func(model.StreamEvent) {}); err != nil {
			b.Fatal(err)
		}
	}
}
