//go:build unix

package soak

import (
	"maps"
	"slices"
	"sync"

	"agentd/client"
)

// record is a run that the server said it accepted, and what is known of it.
type record struct {
	id, session string
	kind        string
	// waits: it was left to wait for a person.
	waits bool
	// gone: its session was deleted, perhaps without a receipt.
	gone bool
}

// book is what everybody wrote down.
type book struct {
	mu      sync.Mutex
	records []*record
	answers map[string]string // decisions with a receipt, by interrupt
	// allowed counts how often people may have let a call happen again, by run
	// and call.
	allowed map[[2]string]int
}

func (b *book) add(r *client.Run, kind string) *record {
	b.mu.Lock()
	defer b.mu.Unlock()
	rec := &record{id: r.ID, session: r.SessionID, kind: kind}
	b.records = append(b.records, rec)
	return rec
}

func (b *book) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.records)
}

func (b *book) all() []*record {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.records)
}

func (b *book) answered(interrupt, decision string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answers == nil {
		b.answers = map[string]string{}
	}
	b.answers[interrupt] = decision
}

func (b *book) decisions() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.answers)
}

func (b *book) allow(run, call string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.allowed == nil {
		b.allowed = map[[2]string]int{}
	}
	b.allowed[[2]string{run, call}]++
}
