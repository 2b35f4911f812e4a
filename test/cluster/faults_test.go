//go:build unix

package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"agentd/event"
	"agentd/internal/run"
	"agentd/internal/store"
)

// faultRecord is something that went wrong, and what it interrupted.
type faultRecord struct {
	kind string
	// at is when it happened, back when what was away was there again, in Unix
	// milliseconds: what was interrupted goes on within so much of back.
	at, back int64
	runs     []store.RunRef
	epochs   map[string]int64
	// node is the process it happened to, or 0.
	node int
}

// What was interrupted goes on within goesOn. The short form, which runs beside other tests
// on whatever machine there is, allows goesOnShort.
const (
	goesOn      = 10 * time.Second
	goesOnShort = 30 * time.Second
)

// disturb brings every kind of fault so many times, in any order, each when what the
// last one interrupted goes on.
func (w *world) disturb(ctx context.Context, times int, kinds map[string]func(context.Context, *rand.Rand) *faultRecord) {
	rng := rand.New(rand.NewPCG(w.seed, 1<<32))
	var todo []string
	for kind := range kinds {
		for range times {
			todo = append(todo, kind)
		}
	}
	slices.Sort(todo)
	rng.Shuffle(len(todo), func(i, j int) { todo[i], todo[j] = todo[j], todo[i] })
	began := time.Now()
	for n, kind := range todo {
		if w.t.Failed() || ctx.Err() != nil {
			return
		}
		<-time.After(time.Duration(500+rng.IntN(1500)) * time.Millisecond)
		f := kinds[kind](ctx, rng)
		f.kind = kind
		w.t.Logf("%s: %s, %d runs; back after %v", time.UnixMilli(f.at).UTC().Format("15:04:05.000"), kind, len(f.runs), time.Duration(f.back-f.at)*time.Millisecond)
		w.faults = append(w.faults, f)
		w.settle(ctx, f)
		if n%10 == 9 {
			w.t.Logf("%d faults, %d runs, %v", n+1, w.book.len(), time.Since(began).Round(time.Second))
		}
	}
	w.t.Logf("%d faults, %d runs, %v", len(w.faults), w.book.len(), time.Since(began).Round(time.Second))
}

// note gives the record of a fault that is about to happen to some nodes. It waits a
// while until there is something for it to interrupt.
func (w *world) note(ctx context.Context, nodes ...*node) *faultRecord {
	f := &faultRecord{epochs: map[string]int64{}}
	for late := time.Now().Add(goesOn); ; {
		f.runs = nil
		working := 0 // those that do not wait for people
		for _, n := range nodes {
			refs, err := w.claimed(ctx, n)
			if err != nil && ctx.Err() == nil {
				w.t.Error(err)
			}
			f.runs = append(f.runs, refs...)
			for _, r := range refs {
				if run.Status(r.Status) == run.Running {
					working++
				}
			}
			if len(nodes) == 1 {
				f.node = n.p.Cmd.Process.Pid
			}
		}
		if working >= 3 || !nodes[0].drives || time.Now().After(late) || ctx.Err() != nil {
			break
		}
		<-time.After(50 * time.Millisecond)
	}
	for _, r := range f.runs {
		if row, err := w.store.Run(ctx, r.Tenant, r.ID); err == nil {
			f.epochs[r.ID] = row.Epoch
		}
	}
	return f
}

// settle waits until what a node drove has another home, or does not need one: then it
// was not interrupted.
func (w *world) settle(ctx context.Context, f *faultRecord) {
	if f.node == 0 {
		return
	}
	late := time.Now().Add(2 * w.goesOn)
	all := f.runs
	f.runs = nil
	for _, r := range all {
		interrupted := true
		for time.Now().Before(late) && ctx.Err() == nil {
			row, err := w.store.Run(ctx, r.Tenant, r.ID)
			if err == nil && row.Epoch > f.epochs[r.ID]+1 {
				break // it was claimed, and said so
			}
			if err == nil && (run.Status(row.Status).Ended() || run.Status(row.Status) == run.Paused) {
				interrupted = false
				break
			}
			<-time.After(100 * time.Millisecond)
		}
		if interrupted {
			f.runs = append(f.runs, r)
		}
	}
}

// driven leaves those runs in the record of a fault that are under way. Those of them that
// wait for people as well are left out when it is checked: then for whoever drives them
// when these answered.
func (w *world) driven(ctx context.Context, f *faultRecord) {
	f.runs = slices.DeleteFunc(f.runs, func(r store.RunRef) bool {
		row, err := w.store.Run(ctx, r.Tenant, r.ID)
		return err != nil || run.Status(row.Status) != run.Running
	})
}

// asked is whether a run has asked people by a time what they had not answered.
func asked(events []event.Event, by int64) bool {
	open := map[string]bool{}
	for _, ev := range events {
		if c, ok := ev.Data.(*event.Checkpoint); ok && ev.Time <= by {
			switch ev.Type {
			case event.CheckpointRequired:
				open[c.InterruptID] = true
			case event.CheckpointResolved:
				delete(open, c.InterruptID)
			}
		}
	}
	return len(open) > 0
}

// killNode kills one of some nodes and starts it again a while later.
func (w *world) killNode(nodes ...*node) func(context.Context, *rand.Rand) *faultRecord {
	return func(ctx context.Context, rng *rand.Rand) *faultRecord {
		n := nodes[rng.IntN(len(nodes))]
		f := w.note(ctx, n)
		n.kill()
		f.at = time.Now().UnixMilli()
		f.back = f.at
		// Sometimes it is back before its lease is over, sometimes others go on first.
		<-time.After(time.Duration(rng.IntN(7000)) * time.Millisecond)
		n.start()
		return f
	}
}

// pauseNode stops one of some nodes past its lease and wakes it.
func (w *world) pauseNode(nodes ...*node) func(context.Context, *rand.Rand) *faultRecord {
	return func(ctx context.Context, rng *rand.Rand) *faultRecord {
		n := nodes[rng.IntN(len(nodes))]
		n.excused = true
		f := w.note(ctx, n)
		n.p.Signal(syscall.SIGSTOP)
		f.at = time.Now().UnixMilli()
		f.back = f.at
		<-time.After(6*time.Second + time.Duration(rng.IntN(3000))*time.Millisecond)
		n.p.Signal(syscall.SIGCONT)
		return f
	}
}

// killPostgres ends the database at once and starts it again a while later.
func (w *world) killPostgres(ctx context.Context, rng *rand.Rand) *faultRecord {
	f := w.note(ctx, w.nodes...)
	for _, n := range w.nodes {
		n.excused = true // an outage may be longer than the lease
	}
	w.pg.Kill(w.t)
	f.at = time.Now().UnixMilli()
	<-time.After(time.Duration(rng.IntN(7000)) * time.Millisecond)
	w.pg.Restart(w.t)
	for { // it recovers
		if _, err := w.store.Nodes(ctx, time.Now().UnixMilli()); err == nil || ctx.Err() != nil {
			break
		}
	}
	f.back = time.Now().UnixMilli()
	w.driven(ctx, f)
	return f
}

// killTemporal kills the Temporal server and starts it again a while later. What is
// under way goes on meanwhile.
func (w *world) killTemporal(ctx context.Context, rng *rand.Rand) *faultRecord {
	f := w.note(ctx, w.nodes...)
	w.temporal.Kill()
	f.at = time.Now().UnixMilli()
	f.back = f.at
	w.driven(ctx, f)
	<-time.After(time.Duration(rng.IntN(7000)) * time.Millisecond)
	w.temporal.Start()
	return f
}

// spread is how something that is measured is spread.
type spread []time.Duration

func (s spread) String() string {
	if len(s) == 0 {
		return "none"
	}
	slices.Sort(s)
	at := func(p int) time.Duration { return s[min(len(s)-1, len(s)*p/100)].Round(10 * time.Millisecond) }
	return fmt.Sprintf("%d: median %v, 90%% %v, 99%% %v, longest %v", len(s), at(50), at(90), at(99), s[len(s)-1].Round(10*time.Millisecond))
}

// checkFaults measures how long what each fault interrupted took to go on.
func (w *world) checkFaults(events map[string][]event.Event, ledger map[string][]written) {
	runs, calls := map[string]spread{}, map[string]spread{}
	count := map[string]int{}
	for i, f := range w.faults {
		count[f.kind]++
		for _, r := range f.runs {
			if f.node == 0 && (w.book.parents()[r.ID] || asked(events[r.ID], f.back)) {
				continue // it waits for people, or it waits for a run below it, which may be one that waits for people
			}
			for _, ev := range events[r.ID] {
				// What a new home does first is say so.
				moved := f.node == 0 || ev.Type == event.RunResumed || ev.Type == event.RunStarted || ev.Type.Terminal()
				if ev.Time <= f.back || ev.Type.Delta() || !moved {
					continue
				}
				took := time.Duration(ev.Time-f.back) * time.Millisecond
				for _, next := range w.faults[i+1:] { // what was away meanwhile could not be used
					took -= max(0, time.Duration(min(next.back, ev.Time)-next.at)) * time.Millisecond
				}
				runs[f.kind] = append(runs[f.kind], took)
				most := w.goesOn
				if f.node == 0 { // nobody says that it goes on, until what is open ends
					most += w.longest
				}
				if took > most {
					w.t.Errorf("%s at %s: run %s went on after %v", f.kind, time.UnixMilli(f.at).Format("15:04:05.000"), r.ID, took)
				}
				break
			}
		}
		if f.node == 0 {
			continue
		}
		for _, lines := range ledger {
			open := false
			for _, l := range lines {
				switch {
				case l.End:
				case l.At <= f.at:
					open = l.Node == f.node
				case open && l.Node != f.node:
					calls[f.kind] = append(calls[f.kind], time.Duration(l.At-f.at)*time.Millisecond)
					open = false
				}
			}
		}
	}
	var names []string
	for kind := range count {
		names = append(names, kind)
	}
	slices.Sort(names)
	w.t.Logf("answers took, with all that was away: %v", w.book.answers)
	for _, kind := range names {
		w.t.Logf("%s, %d times; until runs went on: %v; until calls were made again: %v", kind, count[kind], runs[kind], calls[kind])
	}
}
