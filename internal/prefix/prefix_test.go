package prefix

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"agentd/event"
	"agentd/message"
	"agentd/model"
)

func request(n int) *model.Request {
	req := &model.Request{Model: "m", System: []model.SystemPart{{Text: "be brief", Name: "house rules"}, {Text: "one person", Name: "org"}},
		Tools: []model.ToolSpec{{Name: "a", Schema: json.RawMessage(`{}`)}, {Name: "b"}, {Name: "c"}}}
	for i := range n {
		req.Messages = append(req.Messages, message.User(fmt.Sprint("message ", i)))
	}
	return req
}

func entry(i int) string { return fmt.Sprint("e", i) }

func TestCompare(t *testing.T) {
	const name = "anthropic/m"
	for _, tt := range []struct {
		what   string
		change func(*model.Request)
		want   *event.CacheBreak // without hashes
		model  string
	}{
		{what: "nothing", change: func(*model.Request) {}},
		{what: "grown", change: func(r *model.Request) { r.Messages = append(r.Messages, message.User("more")) }},
		{what: "model", change: func(*model.Request) {}, model: "openai/n", want: &event.CacheBreak{Part: "model", Name: "openai/n", Change: "changed"}},
		{what: "tool changed", change: func(r *model.Request) { r.Tools[1].Description = "new" }, want: &event.CacheBreak{Part: "tool", Name: "b", Index: 1, Change: "changed"}},
		{what: "tool added", change: func(r *model.Request) { r.Tools = slices.Insert(r.Tools, 1, model.ToolSpec{Name: "ab"}) }, want: &event.CacheBreak{Part: "tool", Name: "ab", Index: 1, Change: "added"}},
		{what: "tool added at the end", change: func(r *model.Request) { r.Tools = append(r.Tools, model.ToolSpec{Name: "d"}) }, want: &event.CacheBreak{Part: "tool", Name: "d", Index: 3, Change: "added"}},
		{what: "tool removed", change: func(r *model.Request) { r.Tools = slices.Delete(r.Tools, 0, 1) }, want: &event.CacheBreak{Part: "tool", Name: "a", Index: 0, Change: "removed"}},
		{what: "last tool removed", change: func(r *model.Request) { r.Tools = r.Tools[:2] }, want: &event.CacheBreak{Part: "tool", Name: "c", Index: 2, Change: "removed"}},
		{what: "tools in another order", change: func(r *model.Request) { slices.Reverse(r.Tools) }, want: &event.CacheBreak{Part: "tool", Name: "c", Index: 0, Change: "moved"}},
		{what: "section", change: func(r *model.Request) { r.System[1].Text = "two people" }, want: &event.CacheBreak{Part: "section", Name: "org", Index: 1, Change: "changed"}},
		{what: "thinking", change: func(r *model.Request) { r.Thinking = model.ThinkingHigh }, want: &event.CacheBreak{Part: "settings", Name: "thinking", Change: "changed", New: "high"}},
		{what: "tool choice", change: func(r *model.Request) { r.ToolChoice = model.ToolChoiceNone }, want: &event.CacheBreak{Part: "settings", Name: "tool_choice", Change: "changed", New: "none"}},
		{what: "message", change: func(r *model.Request) { r.Messages[3] = message.User("other") }, want: &event.CacheBreak{Part: "message", EntryID: "e3", Index: 3, Change: "changed"}},
		{what: "messages gone", change: func(r *model.Request) { r.Messages = r.Messages[:2] }, want: &event.CacheBreak{Part: "message", EntryID: "e2", Index: 2, Change: "removed"}},
	} {
		var p Printer
		before := p.Print(request(5), name, entry)
		req := request(5)
		tt.change(req)
		to := name
		if tt.model != "" {
			to = tt.model
		}
		now := new(Printer).Print(req, to, entry)
		got := Compare(before, now)
		first := NewRecord(before, nil)
		if extends := first.Extended(now); extends != (tt.want == nil) {
			t.Errorf("%s: extends: %v", tt.what, extends)
		}
		if got != nil && tt.want != nil {
			if got.Old == got.New || tt.want.New != "" && got.New != tt.want.New {
				t.Errorf("%s: from %q to %q", tt.what, got.Old, got.New)
			}
			got.Old, got.New, tt.want.New = "", "", ""
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", tt.what, got, tt.want)
		}
	}
}

// Another entry in the place of a message is no changed message.
func TestReplaced(t *testing.T) {
	a := new(Printer).Print(request(3), "m", entry)
	req := request(3)
	req.Messages[1] = message.User("a summary")
	b := new(Printer).Print(req, "m", func(i int) string { return fmt.Sprint("f", i) })
	if got := Compare(a, b); got == nil || got.Change != Replaced || got.EntryID != "f1" || got.Index != 1 {
		t.Errorf("%+v", got)
	}
}

// A print does not depend on what the printer has seen before.
func TestPrinterKeepsHashes(t *testing.T) {
	var p Printer
	req := request(50)
	for _, n := range []int{10, 50, 20, 30} {
		short := *req
		short.Messages = req.Messages[:n]
		if n == 20 {
			short.Messages = slices.Clone(short.Messages)
			short.Messages[5] = message.User("changed")
		}
		if got, want := p.Print(&short, "m", entry), new(Printer).Print(&short, "m", entry); !reflect.DeepEqual(got, want) {
			t.Errorf("%d messages: %v, want %v", n, got, want)
		}
	}
	loose := Printer{Mutable: true}
	a := loose.Print(req, "m", entry)
	req.Messages[0].Content[0].Text = "changed in place"
	if b := loose.Print(req, "m", entry); Compare(a, b) == nil {
		t.Error("a change in place was not seen")
	}
}

// Out of the records of a conversation each of its requests can be rebuilt, through
// changes of everything.
func TestRebuild(t *testing.T) {
	var p Printer
	var records []*Record
	var prints []*Print
	req := request(1)
	for i := range 40 {
		switch {
		case i == 10:
			req.Tools = append(req.Tools, model.ToolSpec{Name: "d"})
		case i == 20:
			req.System[0].Text = "be long"
		case i == 25:
			req.Messages = append(request(1).Messages[:1:1], req.Messages[len(req.Messages)-3:]...)
			req.Messages[0] = message.User("a summary")
		case i == 30:
			req.Tools, req.System = nil, nil
		default:
			req.Messages = append(req.Messages, message.User(fmt.Sprint("a", i)), message.User(fmt.Sprint("b", i)))
		}
		print := p.Print(req, "m", entry)
		var before *Record
		if i > 0 {
			before = records[i-1]
		}
		r := NewRecord(print, before)
		r.Entry = fmt.Sprint("r", i)
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if r = Decode(raw); r == nil {
			t.Fatalf("not read: %s", raw)
		}
		if i > 30 && len(raw) > 260 {
			t.Errorf("a step's record has %d bytes: %s", len(raw), raw)
		}
		records, prints = append(records, r), append(prints, print)
		at := i
		got, ok := Rebuild(r, func(*Record) *Record {
			if at--; at < 0 {
				return nil
			}
			return records[at]
		})
		if !ok || !reflect.DeepEqual(got, prints[i]) {
			t.Fatalf("request %d: %v, %+v\nwant %+v", i, ok, got, prints[i])
		}
	}
	if _, ok := Rebuild(records[39], func(*Record) *Record { return nil }); ok {
		t.Error("rebuilt without the records before")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"e":"x","n":2,"f":1,"h":[["a","AAAAAAAAAAE"]],"t":"","y":"","c":""}`))
	f.Add([]byte(`{"e":"x","n":-1}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := Decode(raw)
		if r == nil || r.N > 1<<16 {
			return
		}
		p, _ := Rebuild(r, func(*Record) *Record { return nil })
		if len(p.Messages) != r.N {
			t.Errorf("%d messages of %d", len(p.Messages), r.N)
		}
		r.Extended(p)
	})
}

// Where JSON is asked for in words, in the system prompt, that is a change of it.
func TestJSONInWordsIsASetting(t *testing.T) {
	none := func(int) string { return "" }
	for name, want := range map[string]bool{"anthropic/m": true, "openai/m": false} {
		var p Printer
		before := p.Print(&model.Request{}, name, none)
		b := Compare(before, p.Print(&model.Request{JSON: true}, name, none))
		if (b != nil) != want || want && (b.Part != PartSettings || b.Name != "json") {
			t.Errorf("%s: %+v", name, b)
		}
		if b := Compare(p.Print(&model.Request{Schema: []byte("{}")}, name, none), p.Print(&model.Request{JSON: true, Schema: []byte("{}")}, name, none)); b != nil {
			t.Errorf("%s: %+v", name, b)
		}
	}
}

// What one printer has seen another goes on with, and neither sees what the other adds.
func TestPrintersGoOn(t *testing.T) {
	whole := request(40)
	first := func(n int) *model.Request {
		r := *whole
		r.Messages = whole.Messages[:n:n]
		return &r
	}
	want := func(r *model.Request) *Print {
		var fresh Printer
		return fresh.Print(r, "m", entry)
	}
	var a Printer
	a.Print(first(20), "m", entry)
	seen := a.Seen(20)
	other := first(20)
	other.Messages = append(other.Messages, message.User("another way"), message.User("and on"))
	for i, r := range []*model.Request{first(25), other, first(15), other, first(40)} {
		var b Printer
		b.Resume(seen)
		for j, p := range []*Printer{&a, &b} {
			if got := p.Print(r, "m", entry); !reflect.DeepEqual(got, want(r)) {
				t.Errorf("request %d, printer %d: another print", i, j)
			}
		}
		if got := seen.Len(); got != 20 {
			t.Fatalf("what was seen has %d messages now", got)
		}
	}
	var b Printer
	b.Resume(seen)
	if got := b.Print(first(20), "m", entry); !reflect.DeepEqual(got, want(first(20))) {
		t.Error("what was seen is another one now")
	}
	changed := first(20)
	changed.Messages = slices.Clone(changed.Messages)
	changed.Messages[3] = message.User("other words")
	if got := b.Print(changed, "m", entry); !reflect.DeepEqual(got, want(changed)) {
		t.Error("a message that was replaced has the hash of the one before")
	}
	if a.Mutable = true; a.Seen(40).Len() != 0 {
		t.Error("what may change is given to another printer")
	}
}
