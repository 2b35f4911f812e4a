//go:build unix

package soak

import (
	"context"
	"fmt"
	"strings"
	"time"

	"agentd/client"
	"agentd/fault"
)

// everyRun calls f with each run of the store.
func (w *world) everyRun(ctx context.Context, status string, f func(*client.Run)) {
	w.t.Helper()
	s, _ := w.current()
	for cursor := ""; ; {
		runs, next, err := s.client.Runs(ctx, client.RunFilter{Status: status, Cursor: cursor, Limit: 200})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, r := range runs {
			f(r)
		}
		if cursor = next; cursor == "" {
			return
		}
	}
}

// settle waits until nothing happens any more: who has not ended waits for a person
// that can be named, or in a queue behind such a run.
func (w *world) settle(ctx context.Context) {
	w.t.Helper()
	s, _ := w.current()
	late := time.After(patience)
	for {
		why := ""
		w.everyRun(ctx, client.Running, func(r *client.Run) { why = "run " + r.ID + " (" + r.Profile + ") goes on" })
		waiting := map[string]bool{}
		w.everyRun(ctx, client.Paused, func(r *client.Run) {
			waiting[r.SessionID] = true
			full, err := s.client.Run(ctx, r.ID)
			if err != nil {
				w.t.Fatal(err)
			}
			// One whose question expires or was just answered goes on soon.
			if left := w.unanswered(full); left != "" && !full.Ended() {
				why = left
			}
		})
		w.everyRun(ctx, client.Queued, func(r *client.Run) {
			if !waiting[r.SessionID] {
				why = "run " + r.ID + " is queued behind nobody"
			}
		})
		if why == "" {
			w.t.Logf("%d runs wait for people", len(waiting))
			return
		}
		select {
		case <-late:
			w.t.Fatal("not everything has ended or waits for a named person: " + why)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// unanswered says what is wrong with a run that waits; "" if it is a person who
// never answers that it waits for, and nobody else.
func (w *world) unanswered(r *client.Run) string {
	for _, i := range r.Interrupts {
		if i.Status == "open" && w.habitOf(i.ID) == never && i.ExpiresAt == "" {
			return ""
		}
	}
	return fmt.Sprintf("run %s (%s) is paused and waits for nobody: %+v", r.ID, r.Profile, r.Interrupts)
}

// check holds everything that had a receipt against what there is.
func (w *world) check(ctx context.Context) {
	t := w.t
	s, _ := w.current()
	counts := map[string]int{}
	for _, rec := range w.book.all() {
		r, err := s.client.Run(ctx, rec.id)
		if rec.gone {
			if fault.KindOf(err) != fault.NotFound {
				t.Errorf("run %s of a session that was deleted: %+v, %v", rec.id, r, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("run %s (%s) was acknowledged and is lost: %v", rec.id, rec.kind, err)
			continue
		}
		counts[r.Status]++
	}
	for id, decision := range w.book.decisions() {
		i, err := s.client.Interrupt(ctx, id)
		if fault.KindOf(err) == fault.NotFound && err != nil {
			continue // its session was deleted
		}
		got := ""
		if err == nil {
			if got = i.Decision; len(i.Answer) > 0 && got != "approve" {
				got = "answer"
			}
		}
		if err != nil || i.Status != "answered" || got != decision {
			t.Errorf("interrupt %s was answered with %s, and there is %+v, %v", id, decision, i, err)
		}
	}
	calls, err := readLedger(w.ledger)
	if err != nil {
		t.Fatal(err)
	}
	once, repeated := 0, 0
	for call, n := range calls {
		if call.Key == "" {
			t.Errorf("%s was called without an idempotency key", call.Tool)
		}
		if call.Tool != "fire" && call.Tool != "paint" && call.Tool != "risk" {
			continue
		}
		once++
		parts := strings.Split(call.Key, "/")
		if n > 1 {
			repeated++
		}
		if more := w.book.allowed[[2]string{parts[0], parts[len(parts)-1]}]; n > 1+more {
			t.Errorf("%s of %s happened %d times, and a person allowed %d more", call.Tool, call.Key, n, more)
		}
	}
	t.Logf("runs %v, %d answers, %d once calls of which %d were repeated on a person's word", counts, len(w.book.decisions()), once, repeated)
	if once == 0 || len(w.book.decisions()) == 0 || counts[client.Completed] == 0 {
		t.Error("the load did not reach what it is for")
	}
}
