package client_test

import (
	"encoding/json"
	"strings"
	"testing"

	"agentd/client"
	"agentd/fault"
	"agentd/message"
)

// Page and references reach the conversation, and wrong ones are refused with
// their place.
func TestPageAndReferences(t *testing.T) {
	c, _, _ := serve(t)
	ctx := timeout(t)
	req := client.StartRequest{Profile: "demo", Input: []message.Block{message.Text("Have a look")}, Page: json.RawMessage(`{"path":"/orders"}`),
		References: []json.RawMessage{json.RawMessage(`{"kind":"ticket","id":"7"}`)}}
	r, err := c.Start(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	watch(t, c, r.ID, 0)
	entries, err := c.Entries(ctx, r.SessionID)
	if err != nil || len(entries) == 0 {
		t.Fatal(err)
	}
	var got []string
	for _, b := range entries[0].Context {
		got = append(got, b.Text)
	}
	if want := "<context kind=\"page\">\n{\"path\":\"/orders\"}\n</context>|<context kind=\"references\">\n{\"id\":\"7\",\"kind\":\"ticket\"}\n</context>"; strings.Join(got, "|") != want {
		t.Errorf("with the message goes %q", got)
	}
	if m := entries[0].Message; len(m.Content) != 1 || m.Text() != "Have a look" {
		t.Errorf("the message is %+v", m)
	}
	req.References = []json.RawMessage{json.RawMessage(`"x"`), json.RawMessage(`{"id":"7"}`)}
	_, err = c.Start(ctx, req)
	if f := isKind(t, err, fault.Invalid); f.Field != "references[1].kind" {
		t.Errorf("%+v", f)
	}
	req.References, req.Page = nil, json.RawMessage(`"`+strings.Repeat("x", 20_000)+`"`)
	_, err = c.Start(ctx, req)
	if f := isKind(t, err, fault.TooLarge); f.Field != "page" || !strings.Contains(f.Hint, "limits.max_page_bytes") {
		t.Errorf("%+v", f)
	}
}
