package openai

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"agentd/fault"
	"agentd/internal/engine"
)

// cancelTimeout bounds the cancelling of a run whose client is gone.
const cancelTimeout = 10 * time.Second

// clients knows who reads which run, so that a run ends with its last client.
type clients struct {
	engine Engine
	window time.Duration
	log    *slog.Logger
	mu     sync.Mutex
	runs   map[engine.Ref]*attached
	closed bool
}

// attached is a run with its readers, or waiting for one to come back.
type attached struct {
	readers int
	wait    *time.Timer
}

func newClients(e Engine, window time.Duration, log *slog.Logger) *clients {
	return &clients{engine: e, window: window, log: log, runs: map[engine.Ref]*attached{}}
}

// join adds a reader of a run.
func (c *clients) join(ref engine.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.runs[ref]
	if a == nil {
		a = &attached{}
		c.runs[ref] = a
	}
	if a.wait != nil {
		a.wait.Stop()
		a.wait = nil
	}
	a.readers++
}

// leave takes a reader away who has got its answer.
func (c *clients) leave(ref engine.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.runs[ref]; a != nil {
		if a.readers--; a.readers <= 0 && a.wait == nil {
			delete(c.runs, ref)
		}
	}
}

// lose takes a reader away who is gone. If it was the last, the run is
// cancelled: at once, or when nobody came back.
func (c *clients) lose(ref engine.Ref, mayReturn bool) {
	c.mu.Lock()
	a := c.runs[ref]
	if a == nil {
		c.mu.Unlock()
		return
	}
	if a.readers--; a.readers > 0 {
		c.mu.Unlock()
		return
	}
	if mayReturn && !c.closed {
		var timer *time.Timer
		timer = time.AfterFunc(c.window, func() {
			c.mu.Lock()
			mine := c.runs[ref] == a && a.wait == timer
			if mine {
				delete(c.runs, ref)
			}
			c.mu.Unlock()
			if mine {
				c.cancel(ref)
			}
		})
		a.wait = timer
		c.mu.Unlock()
		return
	}
	delete(c.runs, ref)
	c.mu.Unlock()
	c.cancel(ref)
}

func (c *clients) cancel(ref engine.Ref) {
	ctx, cancel := context.WithTimeout(context.Background(), cancelTimeout)
	defer cancel()
	_, err := c.engine.Cancel(ctx, ref, "the client disconnected")
	// It may have ended in the meantime.
	if kind := fault.KindOf(err); err != nil && kind != fault.Conflict && kind != fault.NotFound {
		c.log.Error("a run could not be cancelled after its client disconnected", "run_id", ref.ID, "error", err)
	}
}

// close cancels the runs that wait for a client to come back.
func (c *clients) close() {
	c.mu.Lock()
	c.closed = true
	var waiting []engine.Ref
	for ref, a := range c.runs {
		if a.wait != nil && a.wait.Stop() {
			waiting = append(waiting, ref)
			delete(c.runs, ref)
		}
	}
	c.mu.Unlock()
	for _, ref := range waiting {
		c.cancel(ref)
	}
}
