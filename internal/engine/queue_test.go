package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

func blocks(s string) []message.Block { return []message.Block{message.Text(s)} }

// listener calls a tool for the message "go" and repeats every other message.
func listener(_ context.Context, step int, req *model.Request) (*message.Message, error) {
	last := req.Messages[len(req.Messages)-1]
	switch {
	case last.Role == message.RoleUser && last.Text() == "go":
		return say("", call("a", "work", `{}`))
	case last.Role == message.RoleUser:
		return say("I hear " + last.Text() + ".")
	}
	return say("Done.")
}

func TestSteeringAndFollowUpsWhileAToolRuns(t *testing.T) {
	g := newGate()
	h := newHarness(t, listener, gated("work", tool.Read, g))
	r := h.run("go")
	<-g.entered
	for _, err := range []error{
		h.engine.FollowUp(t.Context(), ref(r.ID), blocks("later 1")), h.engine.Steer(t.Context(), ref(r.ID), blocks("now 1")),
		h.engine.FollowUp(t.Context(), ref(r.ID), blocks("later 2")), h.engine.Steer(t.Context(), ref(r.ID), blocks("now 2")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	close(g.open)
	r = h.ends(r, "completed")
	const want = `user "go"
assistant [a work {}]
toolResult "work is done" for a error=false
user "now 1"
assistant "I hear now 1."
user "now 2"
assistant "I hear now 2."
user "later 1"
assistant "I hear later 1."
user "later 2"
assistant "I hear later 2."
`
	if got := h.transcript(r.SessionID); got != want {
		t.Errorf("transcript:\n%s", got)
	}
}

// What was accepted is durable: the next engine delivers it.
func TestQueuedMessagesSurviveARestart(t *testing.T) {
	g := newGate()
	h := newHarness(t, listener, gated("work", tool.Read, g))
	r := h.run("go")
	<-g.entered
	if err := h.engine.Steer(t.Context(), ref(r.ID), blocks("now")); err != nil {
		t.Fatal(err)
	}
	if err := h.engine.FollowUp(t.Context(), ref(r.ID), blocks("later")); err != nil {
		t.Fatal(err)
	}
	h.restart()
	close(g.open)
	r = h.ends(r, "completed")
	if got := h.transcript(r.SessionID); !strings.HasSuffix(got, "user \"now\"\nassistant \"I hear now.\"\nuser \"later\"\nassistant \"I hear later.\"\n") {
		t.Errorf("transcript:\n%s", got)
	}
}

func TestSkipRestLeavesOutWhatHasNotStarted(t *testing.T) {
	g := newGate()
	h := newHarness(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
		if step == 0 && req.Messages[len(req.Messages)-1].Text() == "go" {
			return say("", call("a", "work", `{}`), call("b", "work", `{}`))
		}
		return say("Done.")
	}, gated("work", tool.Read, g))
	h.agents["test"].Settings.Sequential, h.agents["test"].Settings.SkipRest = true, true
	r := h.run("go")
	<-g.entered
	if err := h.engine.Steer(t.Context(), ref(r.ID), blocks("stop that")); err != nil {
		t.Fatal(err)
	}
	close(g.open)
	r = h.ends(r, "completed")
	const want = `user "go"
assistant [a work {}] [b work {}]
toolResult "work is done" for a error=false
toolResult "Skipped because of a new message." for b error=true
user "stop that"
assistant "Done."
`
	if got := h.transcript(r.SessionID); got != want {
		t.Errorf("transcript:\n%s", got)
	}
}

// A message that meets the end of its run is either in the session or refused
// with a conflict that says so: whichever comes first, it is not lost.
func TestSteeringMeetsTheEnd(t *testing.T) {
	var accepted, refused int
	for n := range 60 {
		g := newGate()
		h := newHarness(t, listener, gated("work", tool.Read, g))
		r := h.run("go")
		<-g.entered
		var errs [2]error
		var racing sync.WaitGroup
		racing.Go(func() {
			for range n * 20 {
				runtime.Gosched()
			}
			errs[0] = h.engine.Steer(t.Context(), ref(r.ID), blocks("now"))
			errs[1] = h.engine.FollowUp(t.Context(), ref(r.ID), blocks("later"))
		})
		close(g.open)
		racing.Wait()
		r = h.ends(r, "completed")
		got := h.transcript(r.SessionID)
		for i, said := range []string{"now", "later"} {
			switch {
			case errs[i] == nil:
				accepted++
				if !strings.Contains(got, fmt.Sprintf("user %q\nassistant \"I hear %s.\"\n", said, said)) {
					t.Errorf("%q was accepted and is not in the session:\n%s", said, got)
				}
			case fault.KindOf(errs[i]) == fault.Conflict:
				refused++
				if strings.Contains(got, said) {
					t.Errorf("%q was refused (%v) and is in the session:\n%s", said, errs[i], got)
				}
			default:
				t.Errorf("%q: %v", said, errs[i])
			}
		}
		h.engine.Close()
	}
	t.Logf("%d messages were accepted, %d refused", accepted, refused)
	// Both orders, for certain.
	g := newGate()
	h := newHarness(t, listener, gated("work", tool.Read, g))
	r := h.run("go")
	close(g.open)
	h.ends(r, "completed")
	if err := h.engine.Steer(t.Context(), ref(r.ID), blocks("now")); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "has ended: completed") {
		t.Errorf("after the end: %v", err)
	}
}

func TestMessagesGoBackWhenTheRunIsCancelled(t *testing.T) {
	g := newGate()
	h := newHarness(t, listener, gated("work", tool.Read, g))
	r := h.run("go")
	<-g.entered
	if err := h.engine.Steer(t.Context(), ref(r.ID), blocks("now")); err != nil {
		t.Fatal(err)
	}
	h.cancel(r)
	r = h.ends(r, "cancelled")
	if got := h.transcript(r.SessionID); strings.Contains(got, "now") {
		t.Errorf("transcript:\n%s", got)
	}
	if in, err := h.store.Inputs(t.Context(), store.DefaultTenant, r.ID); err != nil || len(in) != 0 {
		t.Errorf("still queued: %v, %v", in, err)
	}
}

func TestRunsOfASessionAreDrivenInTheOrderTheyWereAccepted(t *testing.T) {
	var mu sync.Mutex
	at, most := 0, 0
	var order []string
	h := newHarness(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		if step == 0 {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, req.Messages[len(req.Messages)-1].Text())
			return say("", call("a", "work", `{}`))
		}
		return say("Done.")
	}, toolFunc{tool.Spec{Name: "work", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
		mu.Lock()
		at++
		most = max(most, at)
		mu.Unlock()
		runtime.Gosched()
		mu.Lock()
		at--
		mu.Unlock()
		return tool.TextResult("ok"), nil
	}})
	ses, err := h.engine.CreateSession(t.Context(), SessionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var runs []*Run
	var want []string
	for n := range 12 {
		want = append(want, fmt.Sprint("task ", n))
		runs = append(runs, h.begin(StartRequest{SessionID: ses.ID, Input: blocks(want[n])}))
		if n == 5 {
			h.restart() // the order is durable
		}
	}
	for _, r := range runs {
		h.ends(r, "completed")
	}
	if order = slices.Compact(order); !slices.Equal(order, want) {
		t.Errorf("the order was %v", order)
	}
	if most != 1 {
		t.Errorf("%d runs of the session were under way at the same time", most)
	}
}

func TestRunsOfDifferentSessionsAreDrivenAtTheSameTime(t *testing.T) {
	g := newGate()
	h := newHarness(t, listener, gated("work", tool.Read, g))
	var runs []*Run
	for range 8 {
		runs = append(runs, h.run("go"))
	}
	for range runs {
		<-g.entered // all of them are in the tool now
	}
	close(g.open)
	for _, r := range runs {
		h.ends(r, "completed")
	}
}

func TestWhenBusy(t *testing.T) {
	begin := func(t *testing.T) (*harness, gate, *Run) {
		g := newGate()
		h := newHarness(t, listener, gated("work", tool.Read, g))
		r := h.run("go")
		<-g.entered
		return h, g, r
	}
	t.Run("reject", func(t *testing.T) {
		h, g, r := begin(t)
		_, err := h.engine.Start(t.Context(), StartRequest{SessionID: r.SessionID, Input: blocks("x"), WhenBusy: Reject})
		if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), r.ID) {
			t.Errorf("%v", err)
		}
		close(g.open)
		h.ends(r, "completed")
		h.ends(h.begin(StartRequest{SessionID: r.SessionID, Input: blocks("x"), WhenBusy: Reject}), "completed")
	})
	t.Run("enqueue", func(t *testing.T) {
		h, g, r := begin(t)
		next := h.begin(StartRequest{SessionID: r.SessionID, Input: blocks("x"), WhenBusy: Enqueue})
		if next.Status != "queued" || next.ID == r.ID {
			t.Errorf("%+v", next)
		}
		close(g.open)
		if next = h.ends(next, "completed"); next.Output != "I hear x." {
			t.Errorf("%+v", next)
		}
	})
	t.Run("steer", func(t *testing.T) {
		h, g, r := begin(t)
		same := h.begin(StartRequest{SessionID: r.SessionID, Input: blocks("x"), WhenBusy: Steer})
		if same.ID != r.ID {
			t.Errorf("%+v", same)
		}
		close(g.open)
		if r = h.ends(r, "completed"); r.Output != "I hear x." {
			t.Errorf("%+v", r)
		}
		other := h.begin(StartRequest{SessionID: r.SessionID, Input: blocks("y"), WhenBusy: Steer})
		if other.ID == r.ID {
			t.Error("a run that ended was steered")
		}
		h.ends(other, "completed")
	})
	t.Run("interrupt", func(t *testing.T) {
		h, _, r := begin(t)
		next := h.begin(StartRequest{SessionID: r.SessionID, Input: blocks("x"), WhenBusy: Interrupt})
		h.ends(r, "cancelled")
		if next = h.ends(next, "completed"); next.ID == r.ID || next.Output != "I hear x." {
			t.Errorf("%+v", next)
		}
	})
}

func TestIdempotencyKeys(t *testing.T) {
	g := newGate()
	h := newHarness(t, listener, gated("work", tool.Read, g))
	req := StartRequest{Input: blocks("go"), IdempotencyKey: "key"}
	const times = 8
	ids := make([]string, times)
	var all sync.WaitGroup
	for n := range times {
		all.Go(func() {
			r, err := h.engine.Start(t.Context(), req)
			if err != nil {
				t.Error(err)
				return
			}
			ids[n] = r.ID
		})
	}
	all.Wait()
	if len(slices.Compact(ids)) != 1 {
		t.Fatalf("the same request started %v", ids)
	}
	req.Input = blocks("something else")
	_, err := h.engine.Start(t.Context(), req)
	if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), ids[0]) {
		t.Errorf("another request under the same key: %v", err)
	}
	close(g.open)
	first := h.ends(&Run{ID: ids[0]}, "completed")
	h.restart()
	req.Input = blocks("go")
	if r := h.begin(req); r.ID != first.ID || r.Status != "completed" || r.Output != first.Output {
		t.Errorf("a repetition after a restart: %+v", r)
	}
	if runs, _, err := h.engine.List(t.Context(), store.DefaultTenant, RunFilter{}); err != nil || len(runs) != 1 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	h.agents["test"].IgnoreIdempotencyKeys = true
	if r := h.begin(req); r.ID == first.ID {
		t.Error("the profile takes no keys and a request under a key was a repetition")
	}
}

func TestMaxConcurrentRuns(t *testing.T) {
	g := newGate()
	h := newHarness(t, listener, gated("work", tool.Read, g))
	h.engine.Close()
	e, err := New(Config{Store: h.store, Agents: h.agents, Log: h.log, MaxConcurrentRuns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	h.engine = e
	var runs []*Run
	for range 5 {
		runs = append(runs, h.run("go"))
	}
	<-g.entered
	<-g.entered
	// A third could only enter after one of these has left.
	for range 200 {
		runtime.Gosched()
	}
	if n := len(g.entered); n != 0 {
		t.Errorf("%d more run at the same time", n)
	}
	// One that waits for a slot can be cancelled.
	h.cancel(runs[4])
	h.ends(runs[4], "cancelled")
	close(g.open)
	for _, r := range runs[:4] {
		h.ends(r, "completed")
	}
	e.Close() // which waits for the drivers, who give their slots back when they leave
	if e.slots.free != 2 || len(e.slots.waiting) != 0 {
		t.Errorf("slots at the end: %d free, %d wait", e.slots.free, len(e.slots.waiting))
	}
}

// A run that waits for a person gives its slot back.
func TestPausedRunsDoNotHoldSlots(t *testing.T) {
	h := newHarness(t, oneCall("echo", `{}`), asking(echoTool(tool.Once)))
	h.engine.slots.free = 1
	first := h.paused(h.run("go"), 1)
	second := h.paused(h.run("go"), 1)
	for _, r := range []*Run{first, second} {
		h.answer(AnswerRequest{Run: r.ID, Decision: "approve"})
		h.ends(r, "completed")
	}
}

func TestStartRefusesNonsense(t *testing.T) {
	h := newHarness(t, listener)
	for _, tt := range []struct {
		req   StartRequest
		kind  fault.Kind
		field string
	}{
		{StartRequest{}, fault.Invalid, "input"},
		{StartRequest{Input: blocks("x"), Mode: "fast"}, fault.Invalid, "mode"},
		{StartRequest{Input: blocks("x"), WhenBusy: "hope"}, fault.Invalid, "when_busy"},
		{StartRequest{Input: blocks("x"), Context: []byte("{")}, fault.Invalid, "context"},
		{StartRequest{Input: []message.Block{{Type: "noise"}}}, fault.Invalid, "input[0]"},
		{StartRequest{Input: blocks("x"), Profile: "nobody"}, fault.NotFound, ""},
		{StartRequest{Input: blocks("x"), SessionID: "ses_x"}, fault.NotFound, ""},
		{StartRequest{Input: blocks("x"), Tenant: "other", SessionID: h.ends(h.run("hi"), "completed").SessionID}, fault.NotFound, ""},
	} {
		_, err := h.engine.Start(t.Context(), tt.req)
		if fault.KindOf(err) != tt.kind || fieldOf(err) != tt.field {
			t.Errorf("%+v: %v (kind %s, field %q)", tt.req, err, fault.KindOf(err), fieldOf(err))
		}
	}
	if runs, _, err := h.engine.List(t.Context(), store.DefaultTenant, RunFilter{}); err != nil || len(runs) != 1 {
		t.Errorf("refused requests left %d runs, %v", len(runs), err)
	}
}

// fieldOf is the field that an error names.
func fieldOf(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Field
	}
	return ""
}

// A message that is refused is answered when the commits ahead of it are through,
// while the run moves on. The race detector watches this one.
func TestARefusalWhileTheRunMovesOn(t *testing.T) {
	for range 20 {
		deaf, entered := make(chan struct{}), make(chan struct{})
		h := newHarness(t, oneCall("work", `{}`), toolFunc{tool.Spec{Name: "work"}, func(context.Context, tool.Call) (tool.Result, error) {
			close(entered)
			<-deaf
			return tool.TextResult("done"), nil
		}})
		stopped, held := make(chan struct{}, 10), make(chan struct{})
		hold := false
		s := h.on(func(int, *store.Tx) error {
			if hold {
				stopped <- struct{}{}
				<-held
			}
			return nil
		})
		// However busy the machine is, the tool is not abandoned meanwhile: the run
		// would end, and its driver wait for the commit that is held back here.
		h.engine.cfg.AbandonAfter = time.Hour
		letGo := sync.OnceFunc(func() { close(held); close(deaf) })
		t.Cleanup(letGo) // a test that fails here does not hang in Close
		r := h.run("go")
		<-entered
		h.until("the call is committed", func() bool { return strings.HasSuffix(h.stored(r), "tool_started") })
		s.mu.Lock()
		hold = true
		s.mu.Unlock()
		var both sync.WaitGroup
		both.Go(func() { h.cancel(r) })
		<-stopped
		both.Go(func() {
			if err := h.engine.Steer(t.Context(), ref(r.ID), blocks("now")); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "is being cancelled") {
				t.Errorf("a message for a run that is being cancelled: %v", err)
			}
		})
		h.engine.mu.Lock()
		d := h.engine.drivers[ref(r.ID)]
		h.engine.mu.Unlock()
		h.until("the message is refused", func() bool {
			d.commits.mu.Lock()
			defer d.commits.mu.Unlock()
			return len(d.commits.late) > 0
		})
		letGo()
		both.Wait()
		h.ends(r, "cancelled")
		h.engine.Close()
	}
}
