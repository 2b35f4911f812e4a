package message

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// FuzzAppendJSON holds AppendJSON to encoding/json: both forms of a message read
// back the same.
func FuzzAppendJSON(f *testing.F) {
	f.Add(uint64(1), "text <b>&\u2028\"\\\n\x00\x7f", `{"a": [1, 2]}`)
	f.Add(uint64(2), "caf\xe9 \xed\xa0\x80", "{}")
	f.Add(uint64(3), "", "")
	f.Add(uint64(4), "x", "{broken")
	f.Fuzz(func(t *testing.T, seed uint64, text, raw string) {
		m := someMessage(rand.New(rand.NewPCG(seed, 1)), text, raw)
		want, wantErr := json.Marshal(m)
		got, err := m.AppendJSON([]byte("prefix"))
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%v, encoding/json has %v", err, wantErr)
		}
		if err != nil {
			return
		}
		var a, b Message
		if err := json.Unmarshal([]byte(strings.TrimPrefix(string(got), "prefix")), &a); err != nil {
			t.Fatalf("%v in %s", err, got)
		}
		if err := json.Unmarshal(want, &b); err != nil {
			t.Fatal(err)
		}
		for _, m := range []*Message{&a, &b} {
			m.Details = compact(m.Details)
			for i := range m.Content {
				m.Content[i].Arguments = compact(m.Content[i].Arguments)
			}
		}
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("%s\nencoding/json writes %s", got, want)
		}
	})
}

// compact is what two spellings of the same JSON have in common.
func compact(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw // a number too large for a float64
	}
	out, _ := json.Marshal(v)
	return out
}

func someMessage(r *rand.Rand, text, raw string) *Message {
	s := func() string {
		if r.IntN(2) == 0 {
			return ""
		}
		return text[:r.IntN(len(text)+1)]
	}
	j := func() json.RawMessage {
		if r.IntN(2) == 0 {
			return nil
		}
		return json.RawMessage(raw)
	}
	n := func() int64 { return []int64{0, 1, -1, 1_000_000_007, math.MaxInt64, math.MinInt64}[r.IntN(6)] }
	m := &Message{Role: Role(s()), Timestamp: n(), API: s(), Provider: s(), Model: s(), ResponseID: s(), StopReason: StopReason(s()),
		ErrorMessage: s(), ToolCallID: s(), ToolName: s(), Details: j(), IsError: r.IntN(2) == 0}
	if r.IntN(4) > 0 {
		m.Content = []Block{}
	}
	for range r.IntN(3) {
		m.Content = append(m.Content, Block{Type: BlockType(s()), Text: s(), Signature: s(), Redacted: r.IntN(2) == 0, Data: s(), MimeType: s(),
			ID: s(), Name: s(), Arguments: j()})
	}
	if r.IntN(2) == 0 {
		m.Usage = &Usage{Input: n(), Output: n(), CacheRead: n(), CacheWrite: n(), Reasoning: n(), TotalTokens: n(), Estimated: r.IntN(2) == 0, Tier: s(),
			Cost: Cost{Input: Money(n()), Output: Money(n()), CacheRead: Money(n()), CacheWrite: Money(n()), Total: Money(n()), Estimated: r.IntN(2) == 0}}
	}
	return m
}

// Arguments are kept as the model wrote them: what is sent to it again must not
// depend on whether it was read back in between.
func TestAppendJSONKeepsArgumentsAsTheyAre(t *testing.T) {
	const raw = "{ \"a\" : 1.0,\n \"b\": \"<\" }"
	m := Message{Role: RoleAssistant, Content: []Block{{Type: BlockToolCall, ID: "1", Name: "x", Arguments: json.RawMessage(raw)}}}
	b, err := m.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	var back Message
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if got := string(back.Content[0].Arguments); got != raw {
		t.Errorf("the arguments %s became %s", raw, got)
	}
}

// Every field of a message is written: a new one must not be forgotten here.
func TestAppendJSONHasEveryField(t *testing.T) {
	m := Message{Content: []Block{{}}, Usage: &Usage{}}
	for _, v := range []reflect.Value{reflect.ValueOf(&m).Elem(), reflect.ValueOf(&m.Content[0]).Elem(), reflect.ValueOf(m.Usage).Elem(),
		reflect.ValueOf(&m.Usage.Cost).Elem()} {
		for i := range v.NumField() {
			switch f := v.Field(i); {
			case f.Type() == reflect.TypeFor[json.RawMessage]():
				f.SetBytes([]byte(`{}`))
			case f.Kind() == reflect.String:
				f.SetString("x")
			case f.Kind() == reflect.Int64:
				f.SetInt(7)
			case f.Kind() == reflect.Bool:
				f.SetBool(true)
			}
		}
	}
	want, err := json.Marshal(&m)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.AppendJSON(nil); err != nil || string(got) != string(want) {
		t.Errorf("%s (%v)\nwant %s", got, err, want)
	}
}
