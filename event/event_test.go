package event

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"agentd/message"
)

// samples has one event of every payload.
func samples() []Event {
	usage := &message.Usage{Input: 10, Output: 3, CacheRead: 2, TotalTokens: 15, Cost: message.Cost{Total: message.Dollar / 4}}
	data := map[Type]any{
		RunStarted:         &Started{SessionID: "s", Profile: "p", Mode: "interactive", ProfileVersion: "1", Model: "m"},
		RunResumed:         &Resumed{Reason: "restart", Uncertain: []string{"c1"}},
		RunCompleted:       &Ended{StopReason: "stop", Output: "hi", Usage: usage, Steps: 1},
		RunFailed:          &Ended{StopReason: "model_error", Error: &Error{Kind: "overloaded", Message: "busy", Hint: "wait"}},
		RunCancelled:       &Ended{StopReason: "cancelled"},
		StepStarted:        &Step{Model: "m"},
		StepCompleted:      &Step{Model: "m", Usage: usage, CacheRatio: 0.25, ToolCalls: 2, EntryID: "e"},
		TextDelta:          &Delta{Text: "a \"quoted\"\nline\u2028é\x01", Block: 1},
		ThinkingDelta:      &Delta{Text: "hm"},
		FinalText:          &Text{Text: "the answer\t<b>", EntryID: "e1"},
		ToolStarted:        &Tool{ToolCallID: "c", Name: "t", Args: json.RawMessage(`{"a":1}`)},
		ToolFailed:         &Tool{ToolCallID: "c", Name: "t", Result: "no"},
		CheckpointRequired: &Checkpoint{InterruptID: "i", Kind: "approval", Prompt: "may I?", Schema: json.RawMessage(`{}`)},
		SubagentStarted:    &Subagent{RunID: "r2"},
		ModelRetry:         &Retry{Attempt: 2, Class: "overloaded", Message: "busy", DelayMS: 1000},
		TodoUpdated:        json.RawMessage(`{"items":[]}`),
		Type("new_thing"):  json.RawMessage(`{"x":[1,2]}`),
	}
	var out []Event
	for t, d := range data {
		out = append(out, Event{RunID: "01RUN", Seq: 7, Time: 1_763_000_000_123, Type: t, Step: 2, Data: d})
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	for _, e := range samples() {
		raw, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("%s: %v", e.Type, err)
		}
		if strings.ContainsAny(string(raw), "\n\r") {
			t.Errorf("%s is not on one line: %q", e.Type, raw)
		}
		var back Event
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatalf("%s: %v\n%s", e.Type, err, raw)
		}
		if !reflect.DeepEqual(e, back) {
			t.Errorf("%s: got %+v %+v, want %+v", e.Type, back, back.Data, e.Data)
		}
	}
}

func TestWireForm(t *testing.T) {
	for _, c := range []struct {
		e    Event
		want string
	}{
		{Event{RunID: "r", Seq: 3, Time: 1_763_000_000_120, Type: TextDelta, Step: 1, Data: &Delta{Text: "x"}},
			`{"v":1,"run_id":"r","seq":3,"ts":"2025-11-13T02:13:20.120Z","type":"text_delta","step":1,"data":{"text":"x"}}`},
		{Event{RunID: `é"`, Seq: 9, Type: SessionCompacted},
			`{"v":1,"run_id":"é\"","seq":9,"ts":"1970-01-01T00:00:00.000Z","type":"session_compacted","step":0,"data":{}}`},
		{Event{RunID: "r", Seq: 1, Type: TodoUpdated, Data: json.RawMessage("{\r\n \"a\": \"b c\"\n}")},
			`{"v":1,"run_id":"r","seq":1,"ts":"1970-01-01T00:00:00.000Z","type":"todo_updated","step":0,"data":{"a":"b c"}}`},
		{Event{RunID: "r", Seq: 1, Type: TodoUpdated, Data: json.RawMessage(nil)},
			`{"v":1,"run_id":"r","seq":1,"ts":"1970-01-01T00:00:00.000Z","type":"todo_updated","step":0,"data":{}}`},
	} {
		got, err := c.e.AppendJSON(nil)
		if err != nil || string(got) != c.want {
			t.Errorf("got  %s (%v)\nwant %s", got, err, c.want)
		}
	}
}

func TestNewerVersionIsRefused(t *testing.T) {
	var e Event
	err := json.Unmarshal([]byte(`{"v":2,"run_id":"r","seq":1,"ts":"2025-01-01T00:00:00Z","type":"x"}`), &e)
	if err == nil || !strings.Contains(err.Error(), "newer") {
		t.Fatalf("got %v", err)
	}
}

func TestAfter(t *testing.T) {
	delta := func(seq int64, text string) Event {
		return Event{Seq: seq, Type: TextDelta, Data: &Delta{Text: text, Block: 2}}
	}
	for _, c := range []struct {
		name string
		e    Event
		seen int64
		want string
		ok   bool
	}{
		{"nothing seen", delta(15, "hello"), 0, "hello", true},
		{"just before", delta(15, "hello"), 10, "hello", true},
		{"part seen", delta(15, "hello"), 12, "llo", true},
		{"all seen", delta(15, "hello"), 15, "", false},
		{"more seen", delta(15, "hello"), 99, "", false},
		{"inside a rune", delta(13, "aéb"), 11, "éb", true},
		{"a delta of no text", delta(5, ""), 4, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := After(c.e, c.seen)
			if ok != c.ok {
				t.Fatalf("got %v", ok)
			}
			if ok && (got.Data.(*Delta).Text != c.want || got.Data.(*Delta).Block != 2 || got.Seq != c.e.Seq) {
				t.Errorf("got %+v, want %q", got.Data, c.want)
			}
		})
	}
	if e, ok := After(Event{Seq: 4, Type: ToolStarted, Data: &Tool{Name: "x"}}, 3); !ok || e.Data.(*Tool).Name != "x" {
		t.Error("an event above the position must be given whole")
	}
	if _, ok := After(Event{Seq: 4, Type: ToolStarted}, 4); ok {
		t.Error("an event at the position was seen")
	}
}

// FuzzAppendString compares with encoding/json.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\\n\r\t\x00\x1f", "é\u2028\u2029🙂", "\xff\xfe", "a\xc3", "<&>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := AppendString(nil, s)
		var back, want string
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		if back != want || !utf8.Valid(got) || strings.ContainsAny(string(got), "\n\r") {
			t.Errorf("%q became %q", s, got)
		}
	})
}

// FuzzUnmarshal holds that what can be read can be written and read again.
func FuzzUnmarshal(f *testing.F) {
	for _, e := range samples() {
		raw, err := json.Marshal(e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var e Event
		if json.Unmarshal(raw, &e) != nil {
			return
		}
		out, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		var back Event
		if err := json.Unmarshal(out, &back); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
	})
}

func TestDeltaDoesNotAllocate(t *testing.T) {
	e := Event{RunID: "01JD0000000000000000000000", Seq: 123456, Time: 1_763_000_000_123, Type: TextDelta, Step: 3, Data: &Delta{Text: "some words of an answer"}}
	b := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { b, _ = e.AppendJSON(b[:0]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAppendDelta(b *testing.B) {
	e := Event{RunID: "01JD0000000000000000000000", Seq: 123456, Time: 1_763_000_000_123, Type: TextDelta, Step: 3, Data: &Delta{Text: "some words of an answer"}}
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = e.AppendJSON(buf[:0])
	}
}

// What comes in every step is written by hand; a field that is added to one of
// these must not be forgotten.
func TestAppendDataHasEveryField(t *testing.T) {
	for _, v := range []any{&Step{}, &Tool{}, &Delta{}, &Text{}} {
		e := reflect.ValueOf(v).Elem()
		for _, full := range []bool{false, true} {
			for i := range e.NumField() {
				switch f := e.Field(i); {
				case !full:
				case f.Type() == reflect.TypeFor[json.RawMessage]():
					f.SetBytes([]byte(`{"a":1}`))
				case f.Kind() == reflect.String:
					f.SetString("x")
				case f.CanInt():
					f.SetInt(7)
				case f.CanFloat():
					f.SetFloat(0.25)
				case f.Kind() == reflect.Pointer:
					f.Set(reflect.New(f.Type().Elem()))
				default:
					t.Fatalf("%T.%s: no value is known for it", v, e.Type().Field(i).Name)
				}
			}
			got, err := AppendData(nil, v)
			if want, _ := json.Marshal(v); err != nil || string(got) != string(want) {
				t.Errorf("%T: %s (%v)\nwant %s", v, got, err, want)
			}
		}
	}
}
