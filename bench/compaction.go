package main

import (
	"context"
	"fmt"

	"agentd/test/longsession"
)

// compaction plays long sessions with a model that knows nothing but its requests, and
// counts what it has at the end of what was planted.
func (b *bench) compaction(ctx context.Context) error {
	for _, c := range []struct {
		name string
		o    longsession.Options
	}{
		{"200,000 tokens, window 64,000", longsession.Options{Tokens: 200_000, Window: 64_000}},
		{"200,000 tokens, window 64,000, summariser with 12,000", longsession.Options{Tokens: 200_000, Window: 64_000, Summariser: 12_000}},
		{"1,000,000 tokens, window 200,000", longsession.Options{Tokens: 1_000_000, Window: 200_000}},
	} {
		r, err := longsession.Play(ctx, c.o)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		name := "compaction, " + c.name
		b.note(name+": tokens, turns, requests", "%d, %d, %d", r.Tokens, r.Turns, r.Requests)
		b.note(name+": compactions, in the middle of a turn, requests for summaries, largest of them", "%d, %d, %d, %d tokens", r.Compactions, r.InTurns, r.Summaries, r.Largest)
		b.note(name+": last summary, its lists of files", "%d tokens, %d bytes", r.LastTokens, r.LastBytes)
		b.atLeast(fmt.Sprintf("%s: kept of %d decisions and paths", name, r.Planted), 100*float64(r.Planted-len(r.Lost))/float64(r.Planted), 100, "%")
		for _, f := range r.Lost {
			b.note(name+": lost", "%s (%s)", f.Text, f.Where)
		}
	}
	return nil
}
