package message

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestMoney(t *testing.T) {
	for _, c := range []struct {
		m Money
		s string
	}{
		{0, "0"}, {Dollar, "1"}, {1, "0.000000001"}, {150_000_000, "0.15"}, {-1_500_000_000, "-1.5"}, {1<<63 - 1, "9223372036.854775807"},
		{-1 << 63, "-9223372036.854775808"},
	} {
		if got := c.m.String(); got != c.s {
			t.Errorf("%d is %s, want %s", int64(c.m), got, c.s)
		}
		var back Money
		if err := json.Unmarshal([]byte(c.s), &back); err != nil || back != c.m {
			t.Errorf("%s reads as %d, %v", c.s, int64(back), err)
		}
	}
	for _, bad := range []string{"", "x", "0.0000000001", "1e30", `"1"`} {
		if m, err := ParseMoney(bad); err == nil {
			t.Errorf("%q reads as %s", bad, m)
		}
	}
}

func TestUnmarshalContent(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []Block
	}{
		{`"hi"`, []Block{Text("hi")}},
		{`{"type":"text","text":"hi"}`, []Block{Text("hi")}},
		{`[{"type":"text","text":"a"},{"type":"image","data":"aGk=","mimeType":"image/png"}]`, []Block{Text("a"), Image("aGk=", "image/png")}},
		{`[]`, []Block{}},
	} {
		got, err := UnmarshalContent(json.RawMessage(c.in))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, %v", c.in, got, err)
		}
	}
	for in, want := range map[string]string{
		`[{"type":"text","text":"a"},{"type":"text","text":7}]`: "block 1: text can not be a JSON number",
		`["x"]`: "block 0: a block can not be a JSON string",
	} {
		if _, err := UnmarshalContent(json.RawMessage(in)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
	for _, bad := range []string{``, `3`, `{"type":"video"}`, `[{"type":"image"}]`, `[{"type":"toolCall"}]`, `["x"]`, `{`} {
		if got, err := UnmarshalContent(json.RawMessage(bad)); err == nil {
			t.Errorf("%s is read as %v", bad, got)
		}
	}
}

// The JSON form is the stored form: unknown roles and every field survive.
func TestRoundTrip(t *testing.T) {
	m := Message{Role: "notification", Timestamp: 5, Content: []Block{
		Text("a"), {Type: BlockThinking, Text: "hm", Signature: "sig==", Redacted: true}, Call("c1", "echo", json.RawMessage(`{"n":1}`))},
		API: "x", Provider: "p", Model: "m", ResponseID: "r", StopReason: StopToolUse, ErrorMessage: "e",
		Usage:      &Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 1, TotalTokens: 10, Cost: Cost{Total: 7}},
		ToolCallID: "c0", ToolName: "echo", Details: json.RawMessage(`{"d":1}`), IsError: true}
	b, err := json.Marshal(&m)
	if err != nil {
		t.Fatal(err)
	}
	var back Message
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(m, back) {
		t.Errorf("%s\n%+v\n%+v\n%v", b, m, back, err)
	}
	if !m.Custom() || m.Text() != "a" || len(m.ToolCalls()) != 1 {
		t.Error("Custom, Text or ToolCalls")
	}
	if c := Call("c", "n", nil); string(c.Arguments) != "{}" {
		t.Errorf("empty arguments are %s", c.Arguments)
	}
}

func FuzzUnmarshalContent(f *testing.F) {
	for _, s := range []string{`"hi"`, `[{"type":"text"}]`, `{"type":"toolCall","name":"n","arguments":{}}`, `[`, `null`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		blocks, err := UnmarshalContent(raw)
		if err != nil {
			return
		}
		for i := range blocks {
			if err := blocks[i].Validate(); err != nil {
				t.Errorf("an invalid block was accepted: %v", err)
			}
		}
		if _, err := json.Marshal(blocks); err != nil {
			t.Errorf("accepted content can not be stored: %v", err)
		}
	})
}

// What was put beside the words of a message is none of them.
func TestSplit(t *testing.T) {
	page := Block{Type: BlockText, Text: "<context>", Context: "page"}
	m := Message{Role: RoleUser, Content: []Block{page, Text("a"), Image("aGk=", "image/png"), Text("b")}}
	context, words := m.Split()
	if !reflect.DeepEqual(context, []Block{page}) || !reflect.DeepEqual(words, m.Content[1:]) || m.Text() != "ab" {
		t.Errorf("%+v, %+v, %q", context, words, m.Text())
	}
	if m.Content = m.Content[:2]; m.Text() != "a" {
		t.Errorf("%q", m.Text())
	}
	m.Content = m.Content[1:]
	if context, words = m.Split(); context != nil || len(words) != 1 {
		t.Errorf("%+v, %+v", context, words)
	}
	if b := (Block{Type: BlockToolCall, Name: "n", Context: "page"}); b.Validate() == nil {
		t.Error("a tool call is context")
	}
}
