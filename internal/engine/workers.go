package engine

import "sync"

// maxIdleWorkers is how many goroutines are kept for the next effects.
const maxIdleWorkers = 32

// workers run effects and commits. They are goroutines that are used again: a step
// needs three, and a new one would grow its stack through the whole of net/http,
// encoding/json and SQLite each time.
type workers struct {
	mu     sync.Mutex
	idle   []chan func()
	closed bool
}

// run runs f in a goroutine.
func (w *workers) run(f func()) {
	w.mu.Lock()
	if n := len(w.idle) - 1; n >= 0 {
		c := w.idle[n]
		w.idle = w.idle[:n]
		w.mu.Unlock()
		c <- f
		return
	}
	w.mu.Unlock()
	go w.work(f)
}

func (w *workers) work(f func()) {
	c := make(chan func(), 1)
	for {
		f()
		w.mu.Lock()
		if w.closed || len(w.idle) >= maxIdleWorkers {
			w.mu.Unlock()
			return
		}
		w.idle = append(w.idle, c)
		w.mu.Unlock()
		next, ok := <-c
		if !ok {
			return
		}
		f = next
	}
}

// close ends the idle ones; the others end after what they do.
func (w *workers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, c := range w.idle {
		close(c)
	}
	w.idle = nil
}

// beside runs f in a goroutine that the engine waits for when it is closed. Once it closes,
// f is not run, and beside gives false.
func (e *Engine) beside(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.wg.Go(f)
	}
	return !e.closed
}
