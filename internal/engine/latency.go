package engine

import (
	"sync"
	"time"

	"agentd/internal/run"
)

const (
	// latencyMemory is how long a measurement counts. What is older says little
	// about a service, and forgetting it gives a model that was slow, or down, its
	// next chance.
	latencyMemory = 10 * time.Minute
	// failedLatency stands for a call that failed: slower than any that works.
	failedLatency = time.Minute
)

// latencies are how long the replies of models took to begin: a moving average of
// the last few. They live in memory: a run keeps the order that was made of them
// in its state. The zero value is empty. Its methods are safe for concurrent use.
type latencies struct {
	mu sync.Mutex
	by map[string]latency
}

type latency struct {
	average time.Duration
	at      time.Time
}

func (l *latencies) measured(model string, took time.Duration, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[string]latency{}
	}
	have, ok := l.by[model]
	if ok && at.Sub(have.at) < latencyMemory {
		took = (7*have.average + 3*took) / 10
	}
	l.by[model] = latency{max(took, time.Millisecond), at}
}

func (l *latencies) failed(model string, at time.Time) { l.measured(model, failedLatency, at) }

// lately gives the average in milliseconds, 0 if there is none.
func (l *latencies) lately(model string, now time.Time) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	have, ok := l.by[model]
	if !ok || now.Sub(have.at) >= latencyMemory {
		return 0
	}
	return have.average.Milliseconds()
}

// facts is what the choice among the run's models is made from.
func (d *driver) facts() []run.ModelFacts {
	if len(d.agent.Models) < 2 {
		return nil
	}
	now := time.Now()
	out := make([]run.ModelFacts, len(d.agent.Models))
	for i := range d.agent.Models {
		m := &d.agent.Models[i]
		out[i] = run.ModelFacts{Price: m.Price, LatencyMS: d.e.speed.lately(m.Name, now)}
	}
	return out
}
