package engine

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"agentd/fault"
	"agentd/internal/store"
)

// A request to navigate that is repeated under its key gives what it did, whatever
// happened since; another one under that key is refused.
func TestNavigateIsRepeated(t *testing.T) {
	var rec recorder
	h := newHarness(t, rec.model)
	ctx := t.Context()
	r := h.ends(h.begin(StartRequest{Input: blocks("one")}), "completed")
	ses := r.SessionID
	h.ends(h.begin(StartRequest{SessionID: ses, Input: blocks("two")}), "completed")
	v, err := h.engine.Session(ctx, ref(ses))
	if err != nil {
		t.Fatal(err)
	}
	ask := NavigateRequest{Tenant: store.DefaultTenant, SessionID: ses, Entry: h.said(ses, "two"), Before: true, Label: "again", IfLeaf: &v.Leaf, IdempotencyKey: "k"}
	first, err := h.engine.Navigate(ctx, ask)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(first.Entry.Data), "asked") {
		t.Errorf("people are shown hashes: %s", first.Entry.Data)
	}
	h.restart()
	// A session that is busy, or went on, is the same to a repetition.
	h.ends(h.begin(StartRequest{SessionID: ses, Input: blocks("three")}), "completed")
	before := h.drawn(ses)
	again, err := h.engine.Navigate(ctx, ask)
	if err != nil || again.Entry == nil || again.Entry.ID != first.Entry.ID || len(again.Input) != 1 || again.Input[0].Text != "two" || again.Leaf == first.Leaf {
		t.Errorf("%v %+v", err, again)
	}
	other := ask
	other.Label = "otherwise"
	_, err = h.engine.Navigate(ctx, other)
	h.refuses(err, fault.Conflict, "was used for another request, which wrote entry "+first.Entry.ID)
	if h.drawn(ses) != before {
		t.Error("a repetition changed something")
	}
	// Keys are of a session, and a copy of one has not seen them.
	fork, err := h.engine.Fork(ctx, ForkRequest{Tenant: store.DefaultTenant, SessionID: ses, All: true})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := h.store.Entries(ctx, store.DefaultTenant, fork.ID, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range rows {
		if bytes.Contains(e.Body, []byte("asked")) {
			t.Errorf("%s", e.Body)
		}
	}
	if m := h.navigate(fork.ID, Root, func(r *NavigateRequest) { r.IdempotencyKey = "k" }); m.Entry == nil {
		t.Errorf("%+v", m)
	}
	// Where the session stands already there is an entry to know the key by: repeated
	// after the session went on it does not move back.
	stand := func(r *NavigateRequest) { r.IdempotencyKey = "stand" }
	leaf := again.Leaf
	m := h.navigate(ses, leaf, stand)
	if m.Entry == nil || m.Leaf != m.Entry.ID {
		t.Fatalf("%+v", m)
	}
	h.ends(h.begin(StartRequest{SessionID: ses, Input: blocks("four")}), "completed")
	if n := h.navigate(ses, leaf, stand); n.Entry.ID != m.Entry.ID || n.Leaf == m.Leaf {
		t.Errorf("%+v", n)
	}
	if rec.last() != "one|I hear one.|three|I hear three.|four" {
		t.Errorf("the model was shown %q", rec.last())
	}
}

// Of requests at once under one key one moves the session.
func TestNavigateAtOnce(t *testing.T) {
	h := newHarness(t, recite)
	r := h.ends(h.begin(StartRequest{Input: blocks("one")}), "completed")
	req := NavigateRequest{Tenant: store.DefaultTenant, SessionID: r.SessionID, Entry: Root, IdempotencyKey: "k"}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			// One that finds the session being changed is told to try again.
			if _, err := h.engine.Navigate(t.Context(), req); err != nil && fault.KindOf(err) != fault.Conflict {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := strings.Count(h.drawn(r.SessionID), " branch "); n != 1 {
		t.Errorf("%d branches:\n%s", n, h.drawn(r.SessionID))
	}
}

// A repetition does not pay for a summary twice.
func TestNavigateWithASummaryIsRepeated(t *testing.T) {
	w := &windowed{}
	h, ses, one := abandons(t, w)
	ask := func(r *NavigateRequest) { r.Summarize, r.IdempotencyKey = true, "k" }
	first := h.navigate(ses, one, ask)
	if first.RunID == "" {
		t.Fatalf("%+v", first)
	}
	if again := h.navigate(ses, one, ask); again.RunID != first.RunID {
		t.Errorf("%+v", again)
	}
	if r := h.wait(&Run{ID: first.RunID, SessionID: ses}); r.Status != "completed" {
		t.Fatalf("%+v", r)
	}
	h.restart()
	h.says(ses, "go on")
	if again := h.navigate(ses, one, ask); again.RunID != first.RunID || again.Leaf == first.Leaf {
		t.Errorf("%+v", again)
	}
	if len(w.summaries) != 1 {
		t.Errorf("%d summaries", len(w.summaries))
	}
	_, err := h.engine.Navigate(t.Context(), NavigateRequest{Tenant: store.DefaultTenant, SessionID: ses, Entry: one, IdempotencyKey: "k"})
	h.refuses(err, fault.Conflict, "which started run "+first.RunID)
	// A run of a client's own may have that key.
	if r := h.says(ses, "bye"); r.Status != "completed" {
		t.Errorf("%+v", r)
	}
	if r := h.ends(h.begin(StartRequest{SessionID: ses, Input: blocks("key"), IdempotencyKey: "k"}), "completed"); r.ID == first.RunID {
		t.Error("the key of a run is another one")
	}
}
