package message

import (
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"
)

// Every text field of a message and of a block is cleaned: a new one must not be
// forgotten.
func TestCleanHasEveryText(t *testing.T) {
	m := &Message{Content: []Block{{}}}
	set := func(v reflect.Value) (n int) {
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if f := v.Field(i); f.Kind() == reflect.String && name != "Role" && name != "StopReason" && name != "Type" {
				f.SetString("a\xed\xa0\x80b\xff")
				n++
			}
		}
		return n
	}
	n := set(reflect.ValueOf(m).Elem()) + set(reflect.ValueOf(&m.Content[0]).Elem())
	seen := 0
	c := Clean(m)
	c.texts(func(s *string) {
		if seen++; *s != "a\uFFFDb\uFFFD" {
			t.Errorf("%q", *s)
		}
	})
	if seen != n {
		t.Errorf("%d of %d texts", seen, n)
	}
	if m.Content[0].Text != "a\xed\xa0\x80b\xff" {
		t.Error("the original was changed")
	}
	if Clean(c) != c {
		t.Error("a clean message was copied")
	}
}

// What was cleaned is the same after it was stored.
func FuzzClean(f *testing.F) {
	f.Add("text", "caf\xe9 \xed\xa0\x80")
	f.Add("\xf0\x9f", "\U0001F600")
	f.Fuzz(func(t *testing.T, text, id string) {
		c := Clean(&Message{Role: RoleAssistant, Content: []Block{Text(text), {Type: BlockToolCall, ID: id, Name: text}}, ToolCallID: id})
		b, err := c.AppendJSON(nil)
		if err != nil || !utf8.Valid(b) {
			t.Fatalf("%v in %q", err, b)
		}
		var back Message
		if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(&back, c) {
			t.Fatalf("%v: %+v became %+v", err, c, back)
		}
	})
}
