package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// TestNodesComeAndGo is a random life of three nodes under load: they die, lose their
// leases, drain and come back, the bus loses messages, people steer, answer and cancel
// at any of them. Every run ends, no once call happens twice without a person's word,
// and whoever read a run missed nothing and saw nothing twice.
func TestNodesComeAndGo(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { comeAndGo(t, seed) }) })
	}
}

func comeAndGo(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	calls := &counter{}
	take := func(name string, effect tool.Effect) tool.Tool {
		return toolFunc{tool.Spec{Name: name, Effect: effect}, func(ctx context.Context, c tool.Call) (tool.Result, error) {
			calls.add(name + " " + c.Key)
			select {
			case <-time.After(300 * time.Millisecond):
				return tool.TextResult("done"), nil
			case <-ctx.Done():
				return tool.Result{}, ctx.Err()
			}
		}}
	}
	n := newNodes(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		child := strings.Contains(req.Messages[0].Text(), "child")
		switch {
		case step == 0 && child:
			return say("well then", call("c1", "once", `{}`))
		case step == 0:
			return say("first things first", call("a", "read", `{}`), call("b", "once", `{}`))
		case step == 1 && !child:
			return say("and now", call("k", CreateSubagent, `{"subagent_type":"test","prompt":"child"}`))
		}
		return say("that is all there is to say")
	}, take("read", tool.Read), take("once", tool.Once))
	n.bus = &lossy{every: 5}
	api := n.node("api", false)
	type alive struct {
		e *Engine
		m *mortal
	}
	var all []alive
	add := func() {
		e, m := n.mortalNode(fmt.Sprint("w", len(all)), 0, false)
		all = append(all, alive{e, m})
	}
	for range 3 {
		add()
	}
	ses, err := api.CreateSession(t.Context(), SessionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var runs []*Run
	var seen []func()
	for range 16 {
		at := all[rng.IntN(len(all))].e
		if at.ctx.Err() != nil || rng.IntN(2) == 0 {
			at = api
		}
		req := StartRequest{Input: blocks("go")}
		if rng.IntN(3) == 0 {
			req.SessionID = ses.ID
		}
		r, err := at.Start(t.Context(), req)
		if err != nil {
			continue // at a node that is dead
		}
		runs = append(runs, r)
		got := n.watched(api, r.ID)
		seen = append(seen, func() { n.whole(api, r.ID, got()) })
		pass(time.Duration(rng.IntN(400)) * time.Millisecond)
		victim := all[rng.IntN(len(all))]
		switch rng.IntN(8) {
		case 0: // it dies
			victim.m.die()
			victim.e.Close()
			add()
		case 1: // the others believe that it is dead
			if id := victim.e.node.lease(); id != "" {
				_ = n.store.Commit(t.Context(), &store.Tx{Tenant: "default", Nodes: []store.NodeChange{{Node: store.Node{ID: id}, Leave: true}}})
			}
		case 2: // it stops
			_ = victim.e.Drain(t.Context())
			victim.e.Close()
			add()
		case 3:
			_ = api.Steer(t.Context(), ref(runs[rng.IntN(len(runs))].ID), blocks("now"))
		case 4:
			_, _ = api.Cancel(t.Context(), ref(runs[rng.IntN(len(runs))].ID), "enough")
		}
	}
	var people sync.WaitGroup
	for _, r := range runs {
		people.Go(func() { n.answerDone(api, r.ID) })
	}
	people.Wait()
	for _, f := range seen {
		f()
	}
	for _, r := range runs {
		if r, err := api.Get(t.Context(), ref(r.ID)); err != nil || r.Status == "failed" {
			t.Errorf("%+v (%+v), %v", r, r.Error, err)
		}
	}
	calls.mu.Lock()
	defer calls.mu.Unlock()
	for key, k := range calls.n {
		if strings.HasPrefix(key, "once ") && k > 1 {
			t.Errorf("%s ran %d times", key, k)
		}
	}
	pass(10 * time.Second)
	for _, x := range all {
		if id := x.e.node.lease(); id != "" {
			if c, err := n.store.(store.Cluster).Claimed(t.Context(), id); err != nil || len(c) > 0 {
				t.Errorf("a node has %v, %v", c, err)
			}
		}
	}
	if left, err := n.store.Unfinished(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("unfinished: %v, %v", left, err)
	}
	if err := api.DeleteSession(t.Context(), ref(ses.ID)); err != nil && fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
}
