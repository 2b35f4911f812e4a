package model

import (
	"encoding/json"
	"reflect"
	"testing"

	"agentd/message"
)

// The names are those of Pi's transform-messages suite, as far as they are about one
// message.
func TestHandoff(t *testing.T) {
	to := Maker{API: "a", Provider: "p", Model: "m"}
	think := func(text, signature string) message.Block {
		return message.Block{Type: message.BlockThinking, Text: text, Signature: signature}
	}
	signedText := message.Block{Type: message.BlockText, Text: "t", Signature: "s"}
	call := message.Call("c1", "f", json.RawMessage(`{"a":1}`))
	signedCall := call
	signedCall.Signature = "s"
	redacted := message.Block{Type: message.BlockThinking, Redacted: true, Signature: "s", Text: "?"}
	image := message.Image("aGk=", "image/png")
	blocks := func(b ...message.Block) []message.Block { return b }
	for _, tt := range []struct {
		name     string
		maker    Maker
		in, want []message.Block
	}{
		{"same model keeps thinking and signatures", to, blocks(think("hm", "s"), signedText, redacted, signedCall), nil},
		{"a reply that says nothing of its maker is the maker's", Maker{}, blocks(think("hm", "s"), signedCall), nil},
		{"thinking becomes text across models", Maker{"a", "p", "other"}, blocks(think(" hm\n", "s"), message.Text("t")), blocks(message.Text("hm"), message.Text("t"))},
		{"and across providers", Maker{"a", "other", "m"}, blocks(think("hm", "s")), blocks(message.Text("hm"))},
		{"and across formats", Maker{"other", "p", "m"}, blocks(think("hm", "s")), blocks(message.Text("hm"))},
		{"redacted thinking is dropped", Maker{Model: "other"}, blocks(redacted, message.Text("t")), blocks(message.Text("t"))},
		{"blank thinking is dropped", Maker{Model: "other"}, blocks(think(" \n", "s"), message.Text("t")), blocks(message.Text("t"))},
		{"text signature is dropped", Maker{Model: "other"}, blocks(signedText), blocks(message.Text("t"))},
		{"thought signature of a call is removed", Maker{Model: "other"}, blocks(signedCall), blocks(call)},
		{"nothing to change", Maker{Model: "other"}, blocks(message.Text("t"), call, image), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := message.Message{Role: message.RoleAssistant, API: tt.maker.API, Provider: tt.maker.Provider, Model: tt.maker.Model, Content: tt.in, StopReason: message.StopEnd}
			before, _ := json.Marshal(m)
			got := to.Handoff(&m)
			after, _ := json.Marshal(m)
			if string(before) != string(after) {
				t.Errorf("the message was changed to %s", after)
			}
			if tt.want == nil {
				if got != &m {
					t.Errorf("a copy: %+v", got)
				}
				return
			}
			if !reflect.DeepEqual(got.Content, tt.want) || got.Model != m.Model || got.StopReason != m.StopReason {
				t.Errorf("got %+v\nwant %+v", got.Content, tt.want)
			}
		})
	}
	// Only replies are anybody's.
	for _, role := range []message.Role{message.RoleUser, message.RoleToolResult, "note"} {
		m := message.Message{Role: role, Model: "other", Content: blocks(signedText)}
		if to.Handoff(&m) != &m {
			t.Errorf("%s was changed", role)
		}
	}
}
