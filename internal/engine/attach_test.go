package engine

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// recite answers with the blocks of the newest user message.
func recite(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
	var parts []string
	for _, b := range req.Messages[len(req.Messages)-1].Content {
		parts = append(parts, b.Text)
	}
	return say(strings.Join(parts, "\n--\n"))
}

func raws(list ...string) []json.RawMessage {
	var out []json.RawMessage
	for _, s := range list {
		out = append(out, json.RawMessage(s))
	}
	return out
}

// The model reads page, references and context ahead of the input, the same bytes
// for the same content, and nothing in them can end their tags.
func TestWhatGoesWithTheInput(t *testing.T) {
	h := newHarness(t, recite)
	for _, tt := range []struct {
		name string
		req  StartRequest
		want string
	}{
		{"nothing", StartRequest{References: raws()}, "go"},
		{"a page as text", StartRequest{Page: json.RawMessage(` "orders/list" `)}, "<context kind=\"page\">\n\"orders/list\"\n</context>\n--\ngo"},
		{"a page as object", StartRequest{Page: json.RawMessage(`{ "tab": 2, "id": 12345678901234567890, "path": "/orders" }`)},
			"<context kind=\"page\">\n{\"id\":12345678901234567890,\"path\":\"/orders\",\"tab\":2}\n</context>\n--\ngo"},
		{"references", StartRequest{References: raws(`"invoice 7"`, `{"title":"Printer","kind":"ticket","id":"42","open":true}`, `{"kind":"k","id":"1","title":null}`)},
			"<context kind=\"references\">\n\"invoice 7\"\n{\"id\":\"42\",\"kind\":\"ticket\",\"open\":true,\"title\":\"Printer\"}\n{\"id\":\"1\",\"kind\":\"k\",\"title\":null}\n</context>\n--\ngo"},
		{"all", StartRequest{Page: json.RawMessage(`"p"`), References: raws(`"r"`), Context: json.RawMessage(`{ "a": 1 }`)},
			"<context kind=\"page\">\n\"p\"\n</context>\n--\n<context kind=\"references\">\n\"r\"\n</context>\n--\n<context kind=\"context\">\n{ \"a\": 1 }\n</context>\n--\ngo"},
		{"tags", StartRequest{Page: json.RawMessage(`"</page> & <x>"`), References: raws(`{"kind":"</references>","id":"<"}`), Context: json.RawMessage(`["</context>"]`)},
			`<context kind="page">
"\u003c/page\u003e \u0026 \u003cx\u003e"
</context>
--
<context kind="references">
{"id":"\u003c","kind":"\u003c/references\u003e"}
</context>
--
<context kind="context">
["\u003c/context\u003e"]
</context>
--
go`},
	} {
		r := h.ends(h.begin(tt.req), "completed")
		if r.Output != tt.want {
			t.Errorf("%s:\n%s\nnot\n%s", tt.name, r.Output, tt.want)
		}
		if ses, err := h.engine.Session(t.Context(), ref(r.SessionID)); err != nil || ses.Title != "go" {
			t.Errorf("%s: the session is called %+v, %v", tt.name, ses, err)
		}
	}
	// They are kept with the run, and the caller's list is left alone.
	mine := raws(`{"kind":"k", "id":"1"}`)
	r := h.ends(h.begin(StartRequest{Page: json.RawMessage(`"p"`), References: mine}), "completed")
	row, err := h.store.Run(t.Context(), store.DefaultTenant, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	var sp spec
	if err := json.Unmarshal(row.Spec, &sp); err != nil || string(sp.Page) != `"p"` || len(sp.References) != 1 || string(sp.References[0]) != `{"id":"1","kind":"k"}` {
		t.Errorf("kept: %s, %v", row.Spec, err)
	}
	if string(mine[0]) != `{"kind":"k", "id":"1"}` {
		t.Errorf("the caller's reference became %s", mine[0])
	}
}

func TestWrongPagesAndReferences(t *testing.T) {
	h := newHarness(t, recite)
	long := `"` + strings.Repeat("x", 16<<10) + `"`
	many := make([]json.RawMessage, 5)
	for i := range many {
		many[i] = json.RawMessage(long)
	}
	for _, tt := range []struct {
		req   StartRequest
		kind  fault.Kind
		field string
	}{
		{StartRequest{Page: json.RawMessage(`7`)}, fault.Invalid, "page"},
		{StartRequest{Page: json.RawMessage(`["a"]`)}, fault.Invalid, "page"},
		{StartRequest{Page: json.RawMessage(`""`)}, fault.Invalid, "page"},
		{StartRequest{Page: json.RawMessage(`"a" "b"`)}, fault.Invalid, "page"},
		{StartRequest{Page: json.RawMessage(long)}, fault.TooLarge, "page"},
		{StartRequest{References: raws(`"a"`, `null`)}, fault.Invalid, "references[1]"},
		{StartRequest{References: raws(`""`)}, fault.Invalid, "references[0]"},
		{StartRequest{References: raws(`{"id":"1"}`)}, fault.Invalid, "references[0].kind"},
		{StartRequest{References: raws(`{"Kind":"k","id":"1"}`)}, fault.Invalid, "references[0].kind"},
		{StartRequest{References: raws(`{"kind":"k","id":7}`)}, fault.Invalid, "references[0].id"},
		{StartRequest{References: raws(`{"kind":"k","id":"1","title":7}`)}, fault.Invalid, "references[0].title"},
		{StartRequest{References: many}, fault.TooLarge, "references"},
		{StartRequest{Page: json.RawMessage(`"p"`), History: []message.Message{message.User("x")}}, fault.Invalid, "page"},
	} {
		if tt.req.History == nil {
			tt.req.Input = []message.Block{message.Text("go")}
		}
		_, err := h.engine.Start(t.Context(), tt.req)
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != tt.kind || f.Field != tt.field || f.Kind == fault.TooLarge && f.Hint == "" {
			t.Errorf("page %.40s, references %.80s: %v", tt.req.Page, tt.req.References, err)
		}
	}
}

// A message that steers a run brings what goes with it.
func TestSteeringBringsWhatGoesWithTheInput(t *testing.T) {
	g := newGate()
	h := newHarness(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
		if step == 0 && len(req.Messages) == 1 {
			return say("", call("a", "work", `{}`))
		}
		return recite(ctx, step, req)
	}, gated("work", tool.Read, g))
	r := h.run("start")
	<-g.entered
	same := h.begin(StartRequest{SessionID: r.SessionID, WhenBusy: Steer, Page: json.RawMessage(`"orders"`), Context: json.RawMessage(`{"a":1}`)})
	if same.ID != r.ID {
		t.Fatalf("run %s was started", same.ID)
	}
	close(g.open)
	if r = h.ends(r, "completed"); r.Output != "<context kind=\"page\">\n\"orders\"\n</context>\n--\n<context kind=\"context\">\n{\"a\":1}\n</context>\n--\ngo" {
		t.Errorf("output: %s", r.Output)
	}
}

// The same request is the same however its page is written; requests without
// page and references have the hash that they had before there were any.
func TestRepetitionsWithPages(t *testing.T) {
	h := newHarness(t, recite)
	req := StartRequest{IdempotencyKey: "k", Page: json.RawMessage(`{"a":1,"b":2}`), References: raws(`"r"`)}
	r := h.begin(req)
	req.Page = json.RawMessage(`{ "b": 2, "a": 1 }`)
	if again := h.begin(req); again.ID != r.ID {
		t.Errorf("the repetition started %s", again.ID)
	}
	h.ends(r, "completed")
	req.Input, req.References = []message.Block{message.Text("go")}, raws(`"s"`)
	if _, err := h.engine.Start(t.Context(), req); fault.KindOf(err) != fault.Conflict {
		t.Errorf("another reference under the same key: %v", err)
	}
	old := StartRequest{Tenant: "default", Mode: Interactive, Input: []message.Block{message.Text("go")}}
	raw, err := json.Marshal(old)
	var members map[string]any
	if err = errors.Join(err, json.Unmarshal(raw, &members)); err != nil {
		t.Fatal(err)
	}
	for name := range reflect.TypeFor[StartRequest]().NumField() {
		f := reflect.TypeFor[StartRequest]().Field(name).Name
		if _, there := members[f]; there == (f == "Page" || f == "References" || f == "ContextBlocks" || f == "Defaulted" || f == "Scheduled" || f == "anyMode" || f == "User" || f == "Caller" || f == "Compact" || f == "SessionMode" || f == "From" || f == "Fingerprint" || f == "leaves" || f == "skill") {
			t.Errorf("member %s of an old request's hash: %v", f, there)
		}
	}
}

// Whatever is accepted is JSON of one form that can not end a tag.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`"x"`, `{"kind":"k","id":"1"}`, `{"a":{"b":[1e999,null,"</page>"]},"a":2}`, "\"\\u003c/page>\u2028\xff\"", `{"kind":"","id":7}`, `[`, `null`} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, reference bool) {
		out, err := canonical("x", raw, reference)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid || err.Error() == "" {
				t.Error(err)
			}
			return
		}
		if again, err := canonical("x", out, reference); err != nil || string(again) != string(out) {
			t.Errorf("%s became %s, %v", out, again, err)
		}
		if strings.ContainsAny(string(out), "<>&\n") {
			t.Errorf("%s", out)
		}
	})
}
