package engine

import "sync"

// turns lets few readers of a node run at a time. All of them wake for the same message
// of the bus, and each writes to a client. If all ran at once, whoever takes the next
// message had to wait until the last of thousands had written a word. So the others
// wait, and write more at a time when it is their turn. A reader that is in the middle
// of something is not given a turn, so one whose client does not read keeps nobody.
type turns struct {
	mu    sync.Mutex
	most  int
	out   int // woken and not running yet
	queue []*feed
	head  int
}

// Turns of a feed. Guarded by turns.mu.
const (
	turnNone = iota
	turnWaits
	turnWoken
)

// ready gives a feed that has something, and whose reader sleeps, a turn.
func (t *turns) ready(f *feed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.turn != turnNone {
		return
	}
	if t.out < t.most {
		t.give(f)
		return
	}
	f.turn = turnWaits
	if !f.lined {
		f.lined = true
		t.queue = append(t.queue, f)
	}
}

// give wakes a reader. t is locked.
func (t *turns) give(f *feed) {
	f.turn = turnWoken
	t.out++
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// taken is called when a reader runs, for whatever reason: the next one may.
func (t *turns) taken(f *feed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.turn == turnWoken {
		t.out--
	}
	f.turn = turnNone
	for t.out < t.most && t.head < len(t.queue) {
		next := t.queue[t.head]
		t.queue[t.head] = nil
		t.head++
		if next.lined = false; next.turn == turnWaits {
			t.give(next)
		}
	}
	switch {
	case t.head == len(t.queue):
		t.queue, t.head = t.queue[:0], 0
	case t.head > 1024 && t.head > len(t.queue)/2:
		n := copy(t.queue, t.queue[t.head:])
		clear(t.queue[n:])
		t.queue, t.head = t.queue[:n], 0
	}
}
