package engine

import (
	"context"
	"fmt"
	"testing"

	"agentd/event"
)

func delta(s string) event.Event {
	return event.Event{Type: event.TextDelta, Data: &event.Delta{Text: s}}
}

func drain(t *testing.T, r *reader) []event.Event {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	events, _, err := r.next(ctx, nil, nil, nil)
	if err != nil && err != context.Canceled {
		t.Fatal(err)
	}
	return events
}

func show(events []event.Event) string {
	s := ""
	for _, e := range events {
		if d, ok := e.Data.(*event.Delta); ok {
			s += fmt.Sprintf("%d:%q ", e.Seq, d.Text)
		} else {
			s += fmt.Sprintf("%d:%s ", e.Seq, e.Type)
		}
	}
	return s
}

// A reply may begin to stream while the commit that opened its step is still
// under way: its deltas wait for that commit, in order, and none is lost.
func TestDeltasWaitForTheCommitAheadOfThem(t *testing.T) {
	s := &stream{}
	s.start(0)
	s.whole = false // the store has what was before
	r := sub(s, 100)
	first, _ := s.open([]event.Event{{Type: event.StepStarted}})
	s.publishLive(delta("Hello "))
	s.publishLive(delta("world"))
	if got := drain(t, r); len(got) != 0 {
		t.Fatalf("published ahead of the commit: %s", show(got))
	}
	late := sub(s, 100)
	s.publish([]*batchEvents{first}, reserve)
	const want = `1:step_started 7:"Hello " 12:"world" `
	for name, r := range map[string]*reader{"early": r, "late": late} {
		if got := show(drain(t, r)); got != want {
			t.Errorf("%s reader got %s, want %s", name, got, want)
		}
	}
	later := sub(s, 100)
	if got := show(drain(t, later)); got != `12:"Hello world" ` {
		t.Errorf("a reader who comes during the reply gets %s", got)
	}
	_, all := s.open([]event.Event{{Type: event.StepCompleted}})
	if got := show(all); got != `12:"Hello world" 13:step_completed ` {
		t.Errorf("the next commit contains %s", got)
	}
	// Between that commit's start and its end, what was published live is
	// neither in the store nor live; a reader who comes now gets it all the same.
	if got := show(drain(t, sub(s, 100))); got != `12:"Hello world" ` {
		t.Errorf("a reader who comes during the commit gets %s", got)
	}
}

// A delta that waited for one commit is part of the next. A reader who comes
// after it was sent and before that next commit is durable gets it.
func TestReaderBetweenTwoCommitsMissesNothing(t *testing.T) {
	s := &stream{}
	s.start(0)
	s.whole = false // the store has what was before
	first, _ := s.open([]event.Event{{Type: event.StepStarted}})
	s.publishLive(delta("Hello"))
	second, all := s.open([]event.Event{{Type: event.StepCompleted}})
	if got := show(all); got != `6:"Hello" 7:step_completed ` {
		t.Fatalf("the second commit contains %s", got)
	}
	early := sub(s, 100)
	if got := show(drain(t, early)); got != "" {
		t.Errorf("before anything was sent a reader gets %s", got)
	}
	s.publish([]*batchEvents{first}, reserve)
	late := sub(s, 100)
	if got := show(drain(t, late)); got != `6:"Hello" ` {
		t.Errorf("a reader between the commits gets %s", got)
	}
	s.publish([]*batchEvents{second}, reserve)
	if got := show(drain(t, late)); got != `7:step_completed ` {
		t.Errorf("then it gets %s", got)
	}
	if got := show(drain(t, early)); got != `1:step_started 6:"Hello" 7:step_completed ` {
		t.Errorf("the early reader gets %s", got)
	}
}

func TestSlowReaderIsDisconnected(t *testing.T) {
	s := &stream{}
	s.start(0)
	s.limit = reserve
	slow, quick := sub(s, 3), sub(s, 100)
	for range 5 {
		s.publishLive(delta("x"))
	}
	if _, _, err := slow.next(context.Background(), nil, nil, nil); err != ErrSlowReader {
		t.Errorf("the slow reader got %v", err)
	}
	if got := drain(t, quick); len(got) != 5 {
		t.Errorf("the quick reader got %s", show(got))
	}
}

func TestNumbersBeyondTheReserveAreNotPublished(t *testing.T) {
	s := &stream{}
	s.start(0)
	s.limit = 3
	r := sub(s, 100)
	s.publishLive(delta("abc"))
	s.publishLive(delta("d"))
	if got := show(drain(t, r)); got != `3:"abc" ` {
		t.Errorf("got %s", got)
	}
}

func sub(s *stream, limit int) *reader {
	r, _ := s.subscribe(limit, 0)
	return r
}

// Who comes while a run is young gets all its events from memory, in order and
// once; later, or when the run was handed over, it has to ask the store.
func TestEarlyReadersNeedNoStore(t *testing.T) {
	s := &stream{}
	s.start(0)
	first, _ := s.open([]event.Event{{Type: event.StepStarted}})
	s.publish([]*batchEvents{first}, reserve)
	s.publishLive(delta("Hello"))
	r, whole := s.subscribe(100, 0)
	if !whole {
		t.Fatal("a reader of a young run is sent to the store")
	}
	second, _ := s.open([]event.Event{{Type: event.StepCompleted}})
	s.publish([]*batchEvents{second}, reserve)
	const want = `1:step_started 6:"Hello" 7:step_completed `
	if got := show(drain(t, r)); got != want {
		t.Errorf("it gets %s, want %s", got, want)
	}
	if r, whole := s.subscribe(100, 0); !whole || show(drain(t, r)) != want {
		t.Errorf("after the commit another one does not get the same (whole: %t)", whole)
	}
	for range maxEarly {
		s.publishLive(delta("x"))
	}
	if _, whole := s.subscribe(100, 0); whole {
		t.Errorf("after more than %d events they are still kept", maxEarly)
	}
	for name, over := range map[string]func(*stream){
		"a driver that goes on":  func(s *stream) { s.start(7) },
		"a driver that let go":   func(s *stream) { s.closeReaders() },
		"the same run once more": func(s *stream) { s.seq = 3; s.start(0) },
	} {
		s := &stream{}
		s.start(0)
		over(s)
		if _, whole := s.subscribe(100, 0); whole {
			t.Errorf("after %s readers are not sent to the store", name)
		}
	}
}
