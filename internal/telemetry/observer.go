package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"agentd/internal/engine"
	"agentd/message"
)

// maxTold is how much the engine may tell before it has to look at it itself.
const maxTold = 4096

// patience is how long counting may wait. Nobody reads metrics more often, and a
// reader is shown what waits all the same.
const patience = 100 * time.Millisecond

// observer gathers what the engine tells and looks at it some time later: a step
// pays for a copy and a place in a list, not for metrics, spans and lines, and not
// for waking a goroutine either. What somebody waits for (the life of runs,
// failures, lines) is looked at soon. Only if the list is full is it looked at in
// the engine's time, so that nothing is counted wrong.
type observer struct {
	t *Telemetry

	mu    sync.Mutex
	told  []news
	spare []news // of the last time, to be used again
	soon  bool
	timer *time.Timer

	// busy is held by who looks, so that things are seen in their order.
	busy sync.Mutex
}

// news is one thing that the engine told.
type news struct {
	run    *engine.RunSeen
	model  *engine.ModelSeen
	logged bool // the call of the model is in the log already
	tool   *engine.ToolSeen
	commit time.Duration
	err    error
}

func newObserver(t *Telemetry) *observer {
	o := &observer{t: t}
	o.timer = time.AfterFunc(time.Hour, o.look)
	o.timer.Stop()
	return o
}

// close looks at what is left.
func (o *observer) close() {
	o.timer.Stop()
	o.look()
}

// put takes one thing. With soon somebody waits for it.
func (o *observer) put(n news, soon bool) {
	o.mu.Lock()
	o.told = append(o.told, n)
	full := len(o.told) >= maxTold
	switch {
	case full:
	case soon && !o.soon:
		o.soon = true
		o.timer.Reset(0)
	case len(o.told) == 1:
		o.timer.Reset(patience)
	}
	o.mu.Unlock()
	if full {
		o.look()
	}
}

// look sees to everything that was told before it was called.
func (o *observer) look() {
	o.busy.Lock()
	defer o.busy.Unlock()
	o.mu.Lock()
	told := o.told
	o.told, o.spare, o.soon = o.spare, nil, false
	o.mu.Unlock()
	for _, n := range told {
		switch {
		case n.run != nil:
			o.run(n.run)
		case n.model != nil:
			o.model(n.model, n.logged)
		case n.tool != nil:
			o.tool(n.tool)
		default:
			o.t.meters.commit(n.commit, n.err)
		}
	}
	clear(told)
	o.mu.Lock()
	o.spare = told[:0]
	o.mu.Unlock()
}

// Run implements engine.Observer.
func (o *observer) Run(s *engine.RunSeen) { o.put(news{run: s}, true) }

// Tool implements engine.Observer.
func (o *observer) Tool(s *engine.ToolSeen) { o.put(news{tool: s}, o.verbose(s.Profile)) }

// Commit implements engine.Observer.
func (o *observer) Commit(took time.Duration, err error) {
	if o.t.meters != nil {
		o.put(news{commit: took, err: err}, err != nil)
	}
}

// verbose is whether a profile's runs have a line for each call.
func (o *observer) verbose(profile string) bool {
	log := o.profile(profile).Log
	return log != nil && log.Enabled(context.Background(), slog.LevelDebug)
}

// Model implements engine.Observer. What is said is logged at once, if at all: the
// messages belong to the run.
func (o *observer) Model(s *engine.ModelSeen) {
	c, logged := *s, o.verbose(s.Profile)
	if logged {
		logModel(o.profile(s.Profile).Log, s)
	}
	c.Request = nil
	if s.Usage != nil {
		u := *s.Usage
		c.Usage = &u
	}
	if s.Reply != nil {
		c.Reply = &message.Message{Model: s.Reply.Model, StopReason: s.Reply.StopReason}
	}
	o.put(news{model: &c, logged: logged}, s.Reply == nil)
}

func (o *observer) profile(name string) Profile {
	if o.t.opts.Profile == nil {
		return Profile{Metrics: true}
	}
	return o.t.opts.Profile(name)
}

func (o *observer) run(s *engine.RunSeen) {
	p := o.profile(s.Profile)
	if o.t.meters != nil && p.Metrics {
		o.t.meters.run(s)
	}
	if o.t.traced(&p, &s.RunID) {
		o.t.traceRun(&p, s)
	}
	if p.Log != nil {
		logRun(p.Log, s)
	}
}

func (o *observer) model(s *engine.ModelSeen, logged bool) {
	p := o.profile(s.Profile)
	if o.t.meters != nil && p.Metrics {
		o.t.meters.model(s)
	}
	if o.t.traced(&p, &s.RunID) {
		o.t.traceModel(&p, s)
	}
	if p.Log != nil && !logged {
		logModel(p.Log, s)
	}
}

func (o *observer) tool(s *engine.ToolSeen) {
	p := o.profile(s.Profile)
	if o.t.meters != nil && p.Metrics {
		o.t.meters.tool(s)
	}
	if o.t.traced(&p, &s.RunID) {
		o.t.traceTool(&p, s)
	}
	if p.Log != nil {
		logTool(p.Log, s)
	}
}
