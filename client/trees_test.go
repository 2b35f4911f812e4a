package client_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"agentd/client"
	"agentd/fault"
	"agentd/message"
)

// A session's tree over the API: entries, ways, forks and files.
func TestTrees(t *testing.T) {
	c, _, _ := serve(t)
	ctx := timeout(t)
	s, err := c.CreateSession(ctx, client.SessionRequest{Title: "tree"})
	if err != nil {
		t.Fatal(err)
	}
	hello := message.User("hello")
	first, err := c.Append(ctx, s.ID, client.AppendRequest{Kind: "message", Message: &hello})
	if err != nil || first.Message == nil || first.Message.Text() != "hello" {
		t.Fatalf("%+v %v", first, err)
	}
	if _, err := c.Append(ctx, s.ID, client.AppendRequest{Kind: "label", Data: json.RawMessage(`{"target":"` + first.ID + `","label":"start"}`)}); err != nil {
		t.Fatal(err)
	}
	_, err = c.Append(ctx, s.ID, client.AppendRequest{Kind: "label", Data: json.RawMessage(`{"target":"nope"}`)})
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "no entry nope") {
		t.Errorf("%v", err)
	}
	m, err := c.Navigate(ctx, s.ID, client.NavigateRequest{Entry: first.ID, Before: true, Label: "again"})
	if err != nil || len(m.Input) != 1 || m.Entry == nil || m.Leaf != m.Entry.ID {
		t.Fatalf("%+v %v", m, err)
	}
	keyed := client.NavigateRequest{Entry: m.Entry.ID, Label: "kept", IdempotencyKey: "n"}
	kept, err := c.Navigate(ctx, s.ID, keyed)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Navigate(ctx, s.ID, keyed); err != nil || again.Entry == nil || again.Entry.ID != kept.Entry.ID {
		t.Errorf("%+v %v", again, err)
	}
	keyed.Label = "other"
	if _, err := c.Navigate(ctx, s.ID, keyed); fault.KindOf(err) != fault.Conflict {
		t.Errorf("%v", err)
	}
	stale := first.ID
	if _, err := c.Navigate(ctx, s.ID, client.NavigateRequest{Entry: client.EntryRoot, IfLeaf: &stale}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("%v", err)
	}
	if _, err := c.Navigate(ctx, s.ID, client.NavigateRequest{Entry: first.ID, Summarize: true, Profile: "nobody", Instructions: "x"}); err != nil {
		t.Errorf("nothing is left behind there, and no run is needed: %v", err)
	}
	if _, err := c.Navigate(ctx, s.ID, client.NavigateRequest{Entry: client.EntryRoot, Summarize: true, Profile: "nobody"}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
	if _, err := c.Navigate(ctx, s.ID, client.NavigateRequest{Entry: m.Entry.ID}); err != nil {
		t.Fatal(err)
	}
	v, err := c.Tree(ctx, s.ID)
	if err != nil || len(v.Entries) != 6 || v.Entries[0].Label != "start" || v.Entries[0].OnPath || !v.Entries[5].OnPath || v.Entries[0].Preview != "hello" {
		t.Fatalf("%+v %v", v, err)
	}
	fork, err := c.Fork(ctx, s.ID, client.ForkRequest{Entry: first.ID, Title: "fork", IdempotencyKey: "f"})
	if err != nil || fork.Title != "fork" {
		t.Fatalf("%+v %v", fork, err)
	}
	if again, err := c.Fork(ctx, s.ID, client.ForkRequest{Entry: first.ID, Title: "fork", IdempotencyKey: "f"}); err != nil || again.ID != fork.ID {
		t.Errorf("%+v %v", again, err)
	}
	var file bytes.Buffer
	if err := c.Export(ctx, s.ID, &file, client.ExportOptions{}); err != nil || strings.Count(file.String(), "\n") != 7 {
		t.Fatalf("%v %s", err, file.String())
	}
	in, err := c.Import(ctx, bytes.NewReader(file.Bytes()), client.ImportOptions{Title: "in", IdempotencyKey: "i"})
	if err != nil || in.Entries != 6 || in.Format != "agentd" || in.Title != "in" {
		t.Fatalf("%+v %v", in, err)
	}
	if again, err := c.Import(ctx, bytes.NewReader(file.Bytes()), client.ImportOptions{Title: "in", IdempotencyKey: "i"}); err != nil || again.ID != in.ID {
		t.Errorf("%+v %v", again, err)
	}
	if _, err := c.Import(ctx, strings.NewReader("nonsense\n"), client.ImportOptions{}); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("%v", err)
	}
	for _, err := range []error{c.Export(ctx, "ses_x", &file, client.ExportOptions{NoArtifacts: true}), func() error { _, err := c.Tree(ctx, "ses_x"); return err }()} {
		if fault.KindOf(err) != fault.NotFound {
			t.Errorf("%v", err)
		}
	}
}
