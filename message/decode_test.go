package message

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// decodes holds Decode to encoding/json: what it gives and the error are the same.
func decodes(t *testing.T, d *Decoder, data []byte) {
	t.Helper()
	var want Message
	wantErr := json.Unmarshal(data, &want)
	raw := append([]byte(nil), data...)
	got := Message{Role: "old", Content: []Block{Text("old")}, Details: json.RawMessage("1")}
	err := d.Decode(raw, &got)
	for i := range raw {
		raw[i] = '#' // nothing of the message may be in it
	}
	if fmt.Sprint(err) != fmt.Sprint(wantErr) || reflect.TypeOf(err) != reflect.TypeOf(wantErr) {
		t.Fatalf("error %v, encoding/json has %v of %s", err, wantErr, data)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v\nencoding/json has %+v\nof %s", got, want, data)
	}
}

var decodeCases = []string{
	`{"role":"user","content":[{"type":"text","text":"hi"}]}`,
	` { "role" : "assistant" , "content" : [ { "type" : "toolCall" , "id" : "c" , "name" : "n" , "arguments" : { "a" : [ 1 , -2.5e+3 , null , true ] } } ] , "timestamp" : 17 } ` + "\n\t\r",
	`{"role":"assistant","content":[],"usage":{"input":1,"output":2,"totalTokens":3,"estimated":true,"cost":{"input":0.000001,"output":12.5,"cacheRead":0,"cacheWrite":0.123456789,"total":9}}}`,
	`{"role":"toolResult","content":null,"toolCallId":"c","toolName":"t","isError":true,"details":{"a":"\ud83d\ude00","b":"\ud83d"}}`,
	`{"role":"x","content":[{"type":"text","text":"a\"\\\/\b\f\n\r\t\u00e9\u2028\ufffd\uD83D\uDE00"}]}`,
	`{"role":"x","content":[{"type":"text","text":"\ud83d"}]}`,
	`{"role":"x","content":[{"type":"text","text":"\x"}]}`, `{"role":"x","content":[{"type":"text","text":"\u12"}]}`, `{"role":"x\`, `{"role":"x`, `{"role":"\u00`,
	"{\"role\":\"caf\xe9\"}", "{\"role\":\"\xed\xa0\x80\"}", "{\"role\":\"a\x00\"}", "{\"details\":\"\xff\x01\"}", "{\"details\":\"\xff\"}", "{\"details\":\"\xff\\u00zz\"}",
	"{\"role\":\"1234567\x7f\",\"model\":\"12345678\xc3\xa9\"}",
	`{"Role":"user"}`, `{"rol\u0065":"user"}`, `{"role":"user","role":"assistant"}`, `{"role":"user","more":{"a":1}}`, `{"content":[{"type":"text"}],"content":[{"text":"x"}]}`,
	`{"role":null}`, `{"usage":null}`, `{"details":null}`, `{"content":[null]}`, `{"content":[{"arguments":null}]}`, `{"isError":null,"timestamp":null}`,
	`{"role":1}`, `{"content":"x"}`, `{"content":{}}`, `{"timestamp":"1"}`, `{"timestamp":1.5}`, `{"timestamp":-7}`, `{"timestamp":-0}`, `{"timestamp":01}`, `{"timestamp":1e3}`,
	`{"timestamp":999999999999999999}`, `{"timestamp":9223372036854775807}`, `{"timestamp":9223372036854775808}`, `{"timestamp":}`, `{"timestamp":1x}`,
	`{"usage":{"cost":{"total":"1"}}}`, `{"usage":{"cost":{"total":1e-3}}}`, `{"usage":{"cost":{"total":-0.5}}}`, `{"usage":{"cost":{"total":0.1234567891}}}`, `{"usage":{"cost":{"total":0.1230000000}}}`,
	`{"usage":{"cost":{"total":9000000000.999999999}}}`, `{"usage":{"cost":{"total":9300000000}}}`, `{"usage":{"cost":{"total":1.}}}`, `{"usage":{"cost":{"total":00.5}}}`, `{"usage":{"cost":{}}}`, `{"usage":{}}`,
	`{"isError":truefalse}`, `{"isError":tru}`, `{"isError":false,"details":0}`, `{"details":-}`, `{"details":-0.0}`, `{"details":01}`, `{"details":1.e}`, `{"details":1e}`, `{"details":1E-9}`,
	`{"details":[}`, `{"details":[1,]}`, `{"details":{"a"}}`, `{"details":{"a":1,}}`, `{"details":{1:1}}`, `{"details":[]  }`, `{"details":{ }}`, `{"details":"a\qb"}`, `{"details":"a` + "\n" + `b"}`,
	`{"details":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`, `{"details":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`, `{"details":` + strings.Repeat(`{"":`, 20_000),
	"", " ", "null", "[]", "{}", "{}{}", "{} x", "{", "{,}", `{"role"}`, `{"role":}`, `{"role":"a",}`, `{"role":"a" "b"}`, `"x"`, "\x02\x90packed",
}

// Decode is encoding/json, for what it knows, for what it does not, and for what is broken.
func TestDecode(t *testing.T) {
	d := &Decoder{}
	for _, s := range decodeCases {
		decodes(t, d, []byte(s))
	}
	// Cut and changed anywhere.
	whole := []byte(`{"role":"assistant","content":[{"type":"text","text":"é \n\u0041 x"},{"type":"toolCall","id":"c","name":"n","arguments":{"a":[1.5,"\u00e9"]}}],"timestamp":17,` +
		`"usage":{"input":1,"output":2,"totalTokens":3,"cost":{"input":0.01,"output":0,"cacheRead":0,"cacheWrite":0,"total":1.25}},"isError":true}`)
	for i := range whole {
		decodes(t, d, whole[:i])
		for _, c := range []byte("\x00\"\\{}[]:,n0 e\x80") {
			changed := append([]byte(nil), whole...)
			changed[i] = c
			decodes(t, d, changed)
		}
	}
}

// What is usual is not left to encoding/json.
func TestDecodeKnowsWhatIsStored(t *testing.T) {
	m := someMessage(rand.New(rand.NewPCG(1, 1)), "x", "{}")
	*m = Message{Role: RoleAssistant, Timestamp: 17, API: "a", Provider: "p", Model: "m", ResponseID: "r", StopReason: StopToolUse, ErrorMessage: "e\u2028\x01<é😀>",
		ToolCallID: "c", ToolName: "t", Details: json.RawMessage(`{"a":null}`), IsError: true,
		Usage:   &Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5, TotalTokens: 6, Estimated: true, Tier: "flex", Cost: Cost{Input: 1, Output: 20, CacheRead: 300, CacheWrite: 4_000_000_000, Total: 123_456_789_012, Estimated: true}},
		Content: []Block{Text("a"), {Type: BlockThinking, Text: "t", Signature: "s", Redacted: true}, Image("AAAA", "image/png"), Call("i", "n", nil), {Type: BlockToolCall, ID: "j", Name: "n", Arguments: json.RawMessage("{}"), Via: "v"}, {Type: BlockText, Context: "page", Text: "x"}}}
	raw, err := m.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{raw, plain} {
		var got Message
		r := reader{b: data, d: &Decoder{}}
		if !r.message(&got) || !r.end() || !reflect.DeepEqual(&got, m) {
			t.Errorf("%+v of %s", got, data)
		}
	}
}

// FuzzDecode holds Decode to encoding/json, whatever it is given.
func FuzzDecode(f *testing.F) {
	for i, s := range decodeCases {
		if len(s) < 1000 {
			f.Add(uint64(i), s, `{"a":[1]}`)
		}
	}
	f.Fuzz(func(t *testing.T, seed uint64, data, raw string) {
		d := &Decoder{decoded: int(seed%2) * single} // of one message, or of one of many
		decodes(t, d, []byte(data))
		m := someMessage(rand.New(rand.NewPCG(seed, 1)), data, raw)
		if b, err := m.AppendJSON(nil); err == nil {
			decodes(t, d, b)
			if len(b) > 0 {
				decodes(t, d, b[:int(seed%uint64(len(b)))])
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	m := &Message{Role: RoleAssistant, StopReason: StopToolUse, Provider: "openai", Model: "m", Content: []Block{Text(strings.Repeat("func line() { return \"x\" }\n", 20)), Call("call_1", "echo", json.RawMessage(`{"path":"/src/file.go","from":1}`))},
		Usage: &Usage{Input: 1000, Output: 50, CacheRead: 900, TotalTokens: 1050, Cost: Cost{Total: 123_000_000}}}
	raw, err := m.AppendJSON(nil)
	if err != nil {
		b.Fatal(err)
	}
	for name, decode := range map[string]func(*Message) error{
		"decoder":       func() func(*Message) error { var d Decoder; return func(m *Message) error { return d.Decode(raw, m) } }(),
		"encoding/json": func(m *Message) error { *m = Message{}; return json.Unmarshal(raw, m) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				var m Message
				if err := decode(&m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What is decoded together lies together, and is still nobody else's.
func TestDecodedMessagesAreApart(t *testing.T) {
	var d Decoder
	var got, want []Message
	for i := range 300 {
		m := Message{Role: RoleAssistant, Content: []Block{Text(strings.Repeat(fmt.Sprint("text ", i, "\n"), i%50+1)), Call(fmt.Sprint("call_", i), "echo", json.RawMessage(`{"a":1}`))}, Usage: &Usage{Input: int64(i)}}
		if i%40 == 39 {
			m.Content = append(m.Content, slices.Repeat(m.Content, 20)...)
		}
		b, err := m.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		if i%30 == 29 && d.Decode(b[:len(b)/2], &Message{}) == nil {
			t.Fatal("half a message is one")
		}
		var now Message
		if err := d.Decode(b, &now); err != nil {
			t.Fatal(err)
		}
		now.Content = append(now.Content, Text("more"))
		now.Usage.Output = int64(i)
		m.Content, m.Usage = append(m.Content, Text("more")), &Usage{Input: int64(i), Output: int64(i)}
		got, want = append(got, now), append(want, m)
	}
	if !reflect.DeepEqual(got, want) {
		t.Error("a message is another one after others were decoded")
	}
}
