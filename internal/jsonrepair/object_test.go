package jsonrepair

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestObject(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"valid", `{"a": 1, "b": [true, null]}`, `{"a": 1, "b": [true, null]}`},
		{"space around", " \n{}\t", `{}`},
		{"empty", "", `{}`},
		{"not an object", `[1]`, `{}`},
		{"a number", `7`, `{}`},
		{"words", `hello`, `{}`},
		{"only an opening brace", `{`, `{}`},
		{"raw newline", "{\"a\":\"x\ny\tz\x01\"}", `{"a":"x\ny\tz\u0001"}`},
		{"windows path", `{"a":"C:\Users\x"}`, `{"a":"C:\\Users\\x"}`},
		{"bad unicode escape", `{"a":"\u12zz"}`, `{"a":"\\u12zz"}`},
		{"lone surrogate", `{"a":"x\ud83dy"}`, `{"a":"xy"}`},
		{"low surrogate first", `{"a":"\ude00\ud83d"}`, `{"a":""}`},
		{"a pair is kept", `{"a":"\ud83d\ude00"}`, `{"a":"\ud83d\ude00"}`},
		{"an escaped backslash before u", `{"a":"\\ud83d"}`, `{"a":"\\ud83d"}`},
		{"invalid UTF-8", "{\"a\":\"x\xffy\"}", `{"a":"xy"}`},
		{"trailing commas", `{"a":[1,2,],}`, `{"a":[1,2]}`},
		{"double commas", `{"a":1,,"b":2}`, `{"a":1,"b":2}`},
		{"cut in a string", `{"a":"hel`, `{"a":"hel"}`},
		{"cut after a backslash", `{"a":"hel\`, `{"a":"hel"}`},
		{"cut in a unicode escape", `{"a":"hel\u00`, `{"a":"hel"}`},
		{"cut in a key", `{"a":1,"bc`, `{"a":1}`},
		{"cut after a key", `{"a":1,"bc"`, `{"a":1}`},
		{"cut after a colon", `{"a":1,"bc":`, `{"a":1}`},
		{"cut in nested values", `{"a":{"b":[1,{"c":"d`, `{"a":{"b":[1,{"c":"d"}]}}`},
		{"cut in a literal", `{"a":tr`, `{"a":true}`},
		{"cut in a number", `{"a":12.`, `{"a":12}`},
		{"cut after a minus", `{"a":1,"b":-`, `{"a":1}`},
		{"cut after an exponent", `{"a":1e`, `{"a":1}`},
		{"rubbish after the object", `{"a":1}}} and more`, `{"a":1}`},
		{"two objects", `{"a":1}{"b":2}`, `{"a":1}`},
		{"rubbish in the object", `{"a":1,"b":@,"c":3}`, `{"a":1}`},
		{"encoded twice", `"{\"a\":1}"`, `{"a":1}`},
		{"a string", `"hi"`, `{}`},
		{"too deep", `{"a":` + strings.Repeat("[", 10_000), `{"a":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, intact := Object([]byte(tt.in))
			if string(got) != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if trimmed := strings.TrimSpace(tt.in); intact != (trimmed == string(got)) {
				t.Errorf("intact is %v for %s → %s", intact, trimmed, got)
			}
		})
	}
}

// Every prefix of a valid object is an object whose members are members of the
// whole, except for the one that was cut.
func TestEveryPrefix(t *testing.T) {
	const whole = `{"path":"a/b \"c\" \ud83d\ude00","n":-12.5e3,"list":[1,{"x":null}],"ok":true}`
	var want map[string]any
	if err := json.Unmarshal([]byte(whole), &want); err != nil {
		t.Fatal(err)
	}
	order := []string{"path", "n", "list", "ok"}
	for n := range len(whole) {
		got, _ := Object([]byte(whole[:n]))
		var m map[string]any
		if err := json.Unmarshal(got, &m); err != nil {
			t.Fatalf("%s: %v", whole[:n], err)
		}
		for i := 0; i+1 < len(m); i++ { // the last member may be a part
			a, _ := json.Marshal(m[order[i]])
			b, _ := json.Marshal(want[order[i]])
			if !bytes.Equal(a, b) {
				t.Errorf("%s: %s is %s", whole[:n], order[i], a)
			}
		}
	}
}

func FuzzObject(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{"a":"\ud83d`, "{\"a\":\"\n\xff\"}", `{"a":[1,{"b":tr`, `"{\"a\":1}"`, `{"a":1,}`, `{,}`, `{"\u00`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		before := bytes.Clone(in)
		got, intact := Object(in)
		if !bytes.Equal(in, before) {
			t.Fatal("the input was changed")
		}
		if !json.Valid(got) || got[0] != '{' || !utf8.Valid(got) {
			t.Fatalf("%q → %q", in, got)
		}
		if intact && !bytes.Equal(got, bytes.TrimSpace(in)) {
			t.Fatalf("%q was called intact and became %q", in, got)
		}
		again, intact := Object(got)
		if !intact || !bytes.Equal(again, got) {
			t.Fatalf("%q → %q → %q", in, got, again)
		}
	})
}
