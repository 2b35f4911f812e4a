package telemetry

import (
	"context"
	"log/slog"
	"time"

	"agentd/internal/engine"
	"agentd/message"
)

// maxTold is how much the engine may tell before somebody looks at it.
const maxTold = 4096

// observer takes what the engine tells and hands it to one goroutine: a step pays
// for a copy and a place in a queue, not for metrics, spans and lines. Only if the
// queue is full does the engine wait, so that nothing is counted wrong.
type observer struct {
	t    *Telemetry
	told chan news
	done chan struct{}
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
	o := &observer{t: t, told: make(chan news, maxTold), done: make(chan struct{})}
	go o.work()
	return o
}

func (o *observer) close() {
	close(o.told)
	<-o.done
}

// Run implements engine.Observer.
func (o *observer) Run(s *engine.RunSeen) { o.told <- news{run: s} }

// Tool implements engine.Observer.
func (o *observer) Tool(s *engine.ToolSeen) { o.told <- news{tool: s} }

// Commit implements engine.Observer.
func (o *observer) Commit(took time.Duration, err error) {
	if o.t.meters != nil {
		o.told <- news{commit: took, err: err}
	}
}

// Model implements engine.Observer. What is said is logged at once, if at all: the
// messages belong to the run.
func (o *observer) Model(s *engine.ModelSeen) {
	c, logged := *s, false
	if log := o.profile(s.Profile).Log; log != nil && log.Enabled(context.Background(), slog.LevelDebug) {
		logModel(log, s)
		logged = true
	}
	c.Request = nil
	if s.Usage != nil {
		u := *s.Usage
		c.Usage = &u
	}
	if s.Reply != nil {
		c.Reply = &message.Message{Model: s.Reply.Model, StopReason: s.Reply.StopReason}
	}
	o.told <- news{model: &c, logged: logged}
}

func (o *observer) profile(name string) Profile {
	if o.t.opts.Profile == nil {
		return Profile{Metrics: true}
	}
	return o.t.opts.Profile(name)
}

func (o *observer) work() {
	defer close(o.done)
	for n := range o.told {
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
