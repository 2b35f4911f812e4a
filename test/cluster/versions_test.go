//go:build unix

package cluster

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"agentd/client"
	"agentd/message"
	"agentd/test/proc"
)

// TestNeighbouringVersions is a rolling upgrade: nodes of this agentd and of one whose
// runs it can not read, on one store. The older ones give such runs back, the newer ones
// take them, and whatever is read, answered or driven where, each run ends as ever.
func TestNeighbouringVersions(t *testing.T) {
	t.Parallel() // it waits more than it works
	w := newWorld(t, options{bin: proc.Build(t), first: 100 * time.Millisecond, pace: 200 * time.Millisecond})
	next := proc.Build(t, "-tags", "agentd_next")
	w.book.retried = map[string]map[string]bool{}
	old, oldAPI, newAPI, newer := w.add("old", false, "worker"), w.add("old api", true, "serve", "--no-worker"), w.add("new api", true, "serve", "--no-worker"), w.add("new", true, "serve")
	newAPI.bin, newer.bin = next, next
	old.older, oldAPI.older = true, true
	old.start()
	oldAPI.start()
	ctx, cancel := context.WithTimeout(t.Context(), 2*proc.Patience)
	defer cancel()
	all := w.book.apis
	w.book.apis = []*node{oldAPI}
	w.undisturbed(ctx)
	// Who takes requests is upgraded first: nobody can drive what it accepts.
	newAPI.start()
	r, err := newAPI.client.Start(ctx, client.StartRequest{Profile: "worker", Input: []message.Block{message.Text("batch too-new")}})
	if err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(old.p.Text(), "use the newer agentd") {
		select {
		case <-ctx.Done():
			t.Fatalf("the older worker never met run %s:\n%s", r.ID, old.p.Text())
		case <-time.After(50 * time.Millisecond):
		}
	}
	w.book.apis = []*node{oldAPI}
	w.load(ctx, 4, func() { <-time.After(time.Second) }) // what it can read it drives
	if got, err := oldAPI.client.Run(ctx, r.ID); err != nil || got.Status != client.Queued {
		t.Fatalf("the run that is too new: %+v, %v", got, err)
	}
	if n := strings.Count(old.p.Text(), r.ID); n > 2 {
		t.Errorf("the older worker met it %d times", n)
	}
	// The workers follow.
	newer.start()
	w.book.apis = all
	p := &person{w: w, name: "late", rng: rand.New(rand.NewPCG(w.seed, 1))}
	if err := p.stay(ctx, &record{kind: "batch interactive", id: r.ID, session: r.SessionID}); err != nil {
		t.Fatal(err)
	}
	w.load(ctx, 20, func() {
		<-time.After(3 * time.Second)
		old.p.Stop(time.Minute)
		<-time.After(time.Second)
	})
	old.heed()
	w.nodes = []*node{oldAPI, newAPI, newer}
	w.check(ctx)
	w.bin = next // an older doctor tells of states that it can not read
	w.end()
}
