package engine

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
)

func hello(context.Context, int, *model.Request) (*message.Message, error) { return say("Hello.") }

// A reader who has seen the end and comes again while somebody else still has the
// stream waits for nothing.
func TestWatchPastTheEnd(t *testing.T) {
	h := newHarness(t, hello)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r := h.run("hi")
	for ev, err := range h.engine.Watch(ctx, ref(r.ID), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if !ev.Type.Terminal() {
			continue
		}
		for _, after := range []int64{ev.Seq, ev.Seq + 1000} {
			for ev, err := range h.engine.Watch(ctx, ref(r.ID), after) {
				t.Errorf("after %d: %+v, %v", after, ev, err)
			}
		}
	}
}

// One whose position is beyond everything that the run will ever have is let go when
// the run ends.
func TestWatchBeyondTheEnd(t *testing.T) {
	g := newGate()
	h := newHarness(t, func(ctx context.Context, step int, _ *model.Request) (*message.Message, error) {
		g.entered <- struct{}{}
		<-g.open
		return say("Hello.")
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r := h.run("hi")
	<-g.entered
	done := make(chan error, 1)
	go func() {
		for ev, err := range h.engine.Watch(ctx, ref(r.ID), 1<<40) {
			if err == nil {
				err = errors.New("it got " + string(ev.Type))
			}
			done <- err
			return
		}
		done <- nil
	}()
	close(g.open)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A buffer that is small is not filled with what was there before its reader came.
func TestEarlyEventsLeaveRoomInSmallBuffers(t *testing.T) {
	s := &stream{}
	s.start(0)
	publish := func() {
		b, _ := s.open([]event.Event{{Type: event.StepStarted}})
		s.publish([]*batchEvents{b}, reserve)
	}
	for range 12 {
		publish()
	}
	r, _ := s.subscribe(16, 0)
	for range 8 {
		publish()
	}
	if r.slow {
		t.Error("a reader that has just come is told that it is too slow")
	}
}

// dropGate holds the commit that drops sessions.
type dropGate struct {
	store.Store
	at, pass chan struct{}
}

func (g *dropGate) Commit(ctx context.Context, tx *store.Tx) error {
	if len(tx.DropSessions) > 0 {
		close(g.at)
		<-g.pass
	}
	return g.Store.Commit(ctx, tx)
}

// A run that was accepted while its session was about to be deleted is there, and
// so is the session.
func TestStartWhileDropping(t *testing.T) {
	h := newHarness(t, hello)
	first := h.ends(h.run("hi"), "completed")
	h.engine.Close()
	g := &dropGate{Store: h.store, at: make(chan struct{}), pass: make(chan struct{})}
	h.store = g
	h.start()
	dropped := make(chan error, 1)
	go func() {
		dropped <- h.engine.DeleteSession(context.Background(), Ref{store.DefaultTenant, first.SessionID})
	}()
	<-g.at
	second := h.begin(StartRequest{SessionID: first.SessionID, Input: []message.Block{message.Text("again")}})
	close(g.pass)
	if err := <-dropped; fault.KindOf(err) != fault.Conflict {
		t.Errorf("the session with an accepted run is deleted: %v", err)
	}
	h.ends(second, "completed")
	h.engine.Close()
	if n := len(h.engine.lanes); n != 0 {
		t.Errorf("%d lanes are left", n)
	}
}

func TestInterruptsBelowARunInTheMiddle(t *testing.T) {
	h := newHarness(t, nil)
	tx := &store.Tx{Tenant: store.DefaultTenant}
	for i, id := range []string{"run_a", "run_a.c1", "run_a.c1.c1", "run_a.c10"} {
		r := &store.Run{ID: id, SessionID: "s" + id, RunUpdate: store.RunUpdate{Status: "paused_checkpoint"}}
		if i > 0 {
			r.RootID = "run_a"
		}
		tx.NewSessions = append(tx.NewSessions, &store.Session{ID: "s" + id, Created: 1, Updated: 1})
		tx.NewRuns = append(tx.NewRuns, r)
	}
	for _, id := range []string{"run_a.c1.c1", "run_a.c10"} {
		tx.NewInterrupts = append(tx.NewInterrupts, &store.Interrupt{ID: "i" + id, RunID: id, RootID: "run_a", SessionID: "s" + id, Kind: "question",
			InterruptAnswer: store.InterruptAnswer{Status: "open"}})
	}
	if err := h.store.Commit(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]int{"run_a": 2, "run_a.c1": 1, "run_a.c1.c1": 1, "run_a.c10": 1, "run_b": 0} {
		list, _, err := h.engine.Interrupts(t.Context(), store.DefaultTenant, InterruptFilter{RunID: id})
		if err != nil || len(list) != want {
			t.Errorf("%s: %d interrupts, %v; want %d", id, len(list), err, want)
		}
	}
}

// An entry whose body is damaged does not hide the others.
func TestDamagedEntryInAList(t *testing.T) {
	for _, body := range []string{"\x02\xc8\x01x", `{"role":7}`, ""} {
		v := entryView(&store.Entry{ID: "e", Kind: "message", Body: []byte(body)})
		if _, err := json.Marshal([]*EntryView{v}); err != nil {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// Who has seen the end of a run finds its session free.
func TestTheSessionIsFreeWhenTheEndIsSeen(t *testing.T) {
	h := newHarness(t, hello)
	ses := ""
	for range 100 {
		r := h.begin(StartRequest{SessionID: ses, WhenBusy: Reject, Input: []message.Block{message.Text("hi")}})
		ses = r.SessionID
		for ev, err := range h.engine.Watch(t.Context(), ref(r.ID), 0) {
			if err != nil || ev.Type == event.RunFailed {
				t.Fatal(ev.Type, err)
			}
		}
	}
	if err := h.engine.DeleteSession(t.Context(), Ref{store.DefaultTenant, ses}); err != nil {
		t.Error(err)
	}
}
