package modeltest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"agentd/message"
	"agentd/model"
)

// takeover holds an adapter to the rules for what other models said, and for what tools
// show. The names are those of Pi's suites (transform-messages, image-tool-result,
// tool-call-without-result, empty).
func takeover(t *testing.T, h Harness) {
	f := serve(t, stream(h.fixture(t, "text")))
	p := h.adapter(t, f)
	sent := func(t *testing.T, msgs ...message.Message) string {
		t.Helper()
		return string(h.post(t, p, f, &model.Request{Model: h.Model, Messages: append([]message.Message{message.User("hi")}, msgs...)}))
	}
	foreign := func(blocks ...message.Block) message.Message {
		return message.Message{Role: message.RoleAssistant, API: "another-api", Provider: "another", Model: "another-1", StopReason: message.StopEnd, Content: blocks}
	}
	think := message.Block{Type: message.BlockThinking, Text: "Six times seven.", Signature: "U0lHTkFUVVJFIG9mIGFub3RoZXI="}
	redacted := message.Block{Type: message.BlockThinking, Redacted: true, Signature: "UkVEQUNURUQgYnkgYW5vdGhlcg=="}
	call := message.Call("call_1", "read", json.RawMessage(`{"path":"a"}`))
	call.Signature = "Q0FMTCBieSBhbm90aGVyIG9uZQ=="

	t.Run("thinking becomes text across models", func(t *testing.T) {
		body := sent(t, foreign(think, message.Text("42")), message.User("and?"))
		if !strings.Contains(body, "Six times seven.") || !strings.Contains(body, "42") || strings.Contains(body, "<think") {
			t.Errorf("%s", body)
		}
	})
	t.Run("signatures are removed across models", func(t *testing.T) {
		text := message.Text("42")
		text.Signature = "VEVYVCBieSBhbm90aGVyIG9uZQ=="
		body := sent(t, foreign(think, redacted, text, call), message.ToolResult("call_1", "read", false, message.Text("x")))
		for _, s := range []string{think.Signature, redacted.Signature, text.Signature, call.Signature} {
			if strings.Contains(body, s) {
				t.Errorf("%s is in %s", s, body)
			}
		}
	})
	t.Run("redacted thinking is dropped across models", func(t *testing.T) {
		plain := sent(t, message.User("and?"))
		if body := sent(t, foreign(redacted), message.User("and?")); body != plain {
			t.Errorf("a reply of nothing that can be read is sent as\n%s\nwant\n%s", body, plain)
		}
	})
	t.Run("the same from request to request", func(t *testing.T) {
		before := h.Messages(t, []byte(sent(t, foreign(think, call), message.ToolResult("call_1", "read", false, message.Text("x")))))
		after := h.Messages(t, []byte(sent(t, foreign(think, call), message.ToolResult("call_1", "read", false, message.Text("x")), foreign(message.Text("done")), message.User("go on"))))
		for i := range before {
			if !bytes.Equal(before[i], after[i]) {
				t.Errorf("message %d became %s, from %s", i, after[i], before[i])
			}
		}
	})
	t.Run("image tool results", func(t *testing.T) {
		first, second := message.Image("Zmlyc3QgcGljdHVyZQ==", "image/png"), message.Image("c2Vjb25kIHBpY3R1cmU=", "image/jpeg")
		calls := message.Message{Role: message.RoleAssistant, Content: []message.Block{message.Call("call_1", "read", nil), message.Call("call_2", "read", nil)}}
		for name, content := range map[string][]message.Block{"with text": {message.Text("see"), first}, "alone": {first}, "behind each other": {first, message.Text("see")}} {
			for _, failed := range []bool{false, true} {
				body := sent(t, calls, message.ToolResult("call_1", "read", failed, content...), message.ToolResult("call_2", "read", failed, message.Text("other"), second), message.User("and?"))
				for _, want := range []string{first.Data, second.Data, "other"} {
					if strings.Count(body, want) != 1 {
						t.Errorf("%s, failed %t: %d times %s in %s", name, failed, strings.Count(body, want), want, body)
					}
				}
				if name != "alone" && strings.Count(body, `"see"`) != 1 {
					t.Errorf("%s, failed %t: the text is lost: %s", name, failed, body)
				}
			}
		}
	})
}
