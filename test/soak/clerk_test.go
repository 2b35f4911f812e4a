//go:build unix

package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"agentd/client"
	"agentd/fault"
)

// habit is how people treat an interrupt.
type habit int

const (
	atOnce habit = iota
	late         // after a while
	twice        // two people at the same moment, who do not agree
	never
)

// habitOf is by chance, but the same whenever it is asked.
func (w *world) habitOf(interrupt string) habit {
	h := fnv.New32a()
	fmt.Fprint(h, w.seed, interrupt)
	switch n := h.Sum32() % 100; {
	case n < 6:
		return never
	case n < 20:
		return late
	case n < 35:
		return twice
	}
	return atOnce
}

// answers are two different ones for an interrupt.
func answers(i *client.Interrupt) [2]client.AnswerRequest {
	a := client.AnswerRequest{Interrupt: i.ID}
	b := a
	h := fnv.New32a()
	fmt.Fprint(h, i.ID)
	switch i.Kind {
	case "question":
		a.Answer, b.Answer = json.RawMessage(`"red"`), json.RawMessage(`"blue"`)
	case "uncertain":
		words := []string{"retry", "skip", "done"}
		a.Decision, b.Decision = words[h.Sum32()%3], words[(h.Sum32()+1)%3]
	default:
		a.Decision, b.Decision, b.Reason = "approve", "reject", "not today"
		a.Remember = h.Sum32()%5 == 0
	}
	return [2]client.AnswerRequest{a, b}
}

// word is what an interrupt says was decided.
func word(a *client.AnswerRequest) string {
	if a.Decision == "" {
		return "answer"
	}
	return a.Decision
}

// clerk answers what is asked, everywhere, as people do.
func (w *world) clerk(ctx context.Context) {
	begun := map[string]bool{}
	var busy sync.WaitGroup
	defer busy.Wait()
	for {
		for cursor := ""; ; {
			s, _ := w.current()
			open, next, err := s.client.Interrupts(ctx, "open", cursor, 200)
			if err != nil && serious(err) != nil && ctx.Err() == nil {
				w.t.Errorf("interrupts: %v", err)
				return
			}
			for _, i := range open {
				if begun[i.ID] {
					continue
				}
				begun[i.ID] = true
				if i.RunID == "" || i.Kind == "" || i.Status != "open" {
					w.t.Errorf("interrupt %+v", i)
				}
				if habit := w.habitOf(i.ID); habit != never {
					busy.Go(func() { w.attend(ctx, i, habit) })
				}
			}
			if cursor = next; err != nil || cursor == "" {
				break
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// attend answers one interrupt, and writes down what has a receipt.
func (w *world) attend(ctx context.Context, i *client.Interrupt, habit habit) {
	both := answers(i)
	voices := both[:1]
	switch habit {
	case late:
		select {
		case <-time.After(time.Duration(500+len(i.ID)*50) * time.Millisecond):
		case <-ctx.Done():
			return
		}
	case twice:
		voices = both[:]
	}
	if i.Kind == "uncertain" && slices.ContainsFunc(voices, func(a client.AnswerRequest) bool { return a.Decision == "retry" }) {
		// Noted ahead: the answer may be accepted although its receipt is lost.
		w.book.allow(i.RunID, i.ToolCall.ToolCallID)
	}
	receipts := make([]bool, len(voices))
	var speaking sync.WaitGroup
	for n := range voices {
		speaking.Go(func() {
			err := w.retry(ctx, "answering "+i.ID, func(s *server) (bool, error) {
				_, err := s.client.Answer(ctx, voices[n])
				switch {
				case err == nil:
					receipts[n] = true
					return true, nil
				case fault.KindOf(err) == fault.Conflict || fault.KindOf(err) == fault.NotFound:
					return true, nil // it is settled; how is looked at below
				}
				return false, serious(err)
			})
			if err != nil && ctx.Err() == nil {
				w.t.Errorf("%v", err)
			}
		})
	}
	speaking.Wait()
	if len(receipts) == 2 && receipts[0] && receipts[1] {
		w.t.Errorf("interrupt %s of kind %s was answered twice", i.ID, i.Kind)
	}
	for n := range receipts {
		if receipts[n] {
			w.book.answered(i.ID, word(&voices[n]))
		}
	}
}
