package temporal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"agentd/fault"
	"agentd/internal/engine"
)

// Runs is what a worker does with runs: an [engine.Engine] that is a node.
type Runs interface {
	Drive(ctx context.Context, ref engine.Ref) (engine.Parked, error)
	Cancel(ctx context.Context, ref engine.Ref, reason string) (*engine.Run, error)
	Waiting(ctx context.Context, most int) ([]engine.Ref, error)
}

// Work drives runs here from now on, until Stop. While Temporal can not be reached it
// tries again.
func (x *Executor) Work(runs Runs) {
	w := &work{runs: runs, heartbeat: x.opts.Throttle / 2, log: x.opts.Log.Error}
	opts := worker.Options{MaxHeartbeatThrottleInterval: x.opts.Throttle, DefaultHeartbeatThrottleInterval: x.opts.Throttle, WorkerStopTimeout: x.opts.Drain,
		StickyScheduleToStartTimeout: x.opts.Heartbeat / 2}
	roots, children := opts, opts
	roots.MaxConcurrentActivityExecutionSize = x.opts.Runs
	children.MaxConcurrentActivityExecutionSize = x.opts.Children
	children.DisableWorkflowWorker = true
	// By default ten thousand stay in memory, with a goroutine or two each, also those that
	// went on and ended elsewhere long ago.
	worker.SetStickyWorkflowCacheSize(x.opts.Cached)
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.schedules
	x.workers = append(x.workers,
		x.keep(x.queues.runs(), roots, func(r worker.Registry) {
			x.register(r)
			w.register(r)
			if s != nil {
				s.register(r)
			}
		}),
		x.keep(x.queues.children(), children, w.register))
}

// register registers the workflow.
func (x *Executor) register(r worker.WorkflowRegistry) {
	l := &loop{queues: x.queues, heartbeat: x.opts.Heartbeat}
	r.RegisterWorkflowWithOptions(l.run, workflow.RegisterOptions{Name: workflowName})
}

// Stop ends what this process does for Temporal: it takes nothing more, and hands over
// what it drives within Options.Drain. What it was told to tell is still told.
func (x *Executor) Stop() {
	x.mu.Lock()
	all := x.workers
	x.workers = nil
	x.mu.Unlock()
	for _, k := range all {
		close(k.stop)
	}
	for _, k := range all {
		<-k.done
	}
}

// keeper keeps a worker running.
type keeper struct{ stop, done chan struct{} }

// keep starts a worker on a queue, and again when it can not go on.
func (x *Executor) keep(queue string, opts worker.Options, register func(worker.Registry)) *keeper {
	k := &keeper{make(chan struct{}), make(chan struct{})}
	go func() {
		defer close(k.done)
		for fails := 0; ; fails++ {
			broken := make(chan error, 1)
			opts.OnFatalError = func(err error) {
				select {
				case broken <- err:
				default:
				}
			}
			w := worker.New(x.client, queue, opts)
			register(w)
			err := w.Start()
			if err == nil {
				fails = 0
				select {
				case <-k.stop:
					w.Stop()
					return
				case err = <-broken:
					w.Stop()
				}
			}
			if fails == 0 {
				x.opts.Log.Warn("no runs come from Temporal; it is tried again", "queue", queue, "error", err)
			}
			t := time.NewTimer(min(5*time.Second, 200*time.Millisecond<<min(fails, 5)))
			select {
			case <-t.C:
			case <-k.stop:
				t.Stop()
				return
			}
		}
	}()
	return k
}

// work is what activities do.
type work struct {
	runs      Runs
	heartbeat time.Duration
	log       func(msg string, args ...any)
}

func (w *work) register(r worker.Registry) {
	r.RegisterActivityWithOptions(w.drive, activity.RegisterOptions{Name: driveActivity})
	r.RegisterActivityWithOptions(w.cancel, activity.RegisterOptions{Name: cancelActivity})
}

const (
	// patience is how long a drive waits here for another node to let go of the run,
	// before it is tried at another place; again is how long that takes.
	patience = 10 * time.Second
	again    = time.Second
)

// drive drives a run here until it is parked or has ended. That Temporal gave it up is
// no reason to stop: the run's claim says who may drive it, and whoever drives it next
// waits for that. It hands over when this worker stops.
func (w *work) drive(ctx context.Context, in Run) (Parked, error) {
	ref := engine.Ref{Tenant: in.Tenant, ID: in.ID}
	driving, handOver := context.WithCancel(context.WithoutCancel(ctx))
	defer handOver()
	ended := make(chan struct{})
	defer close(ended)
	go beat(ctx, w.heartbeat, ended, handOver)
	began := time.Now()
	until := began.Add(patience)
	for {
		p, err := w.runs.Drive(driving, ref)
		kind := fault.KindOf(err)
		switch {
		case err == nil:
			return Parked{Status: string(p.Status), Ended: p.Status.Ended(), Until: notBefore(p.Next, activity.GetInfo(ctx).StartedTime.Add(time.Since(began)))}, nil
		case kind == fault.NotFound:
			return Parked{Status: "deleted", Ended: true}, nil
		case driving.Err() != nil:
			return Parked{}, later("the run is handed over", err, time.Millisecond)
		case kind != fault.Conflict:
			if kind != fault.Unavailable { // that has been said: a lost lease, a store that is away
				w.log("a run can not be driven here; another node may", "run", in.ID, "error", err)
			}
			return Parked{}, later("the run can not be driven here", err, again)
		case ctx.Err() != nil:
			return Parked{}, later("nobody waits for this one", err, again)
		case time.Now().After(until):
			return Parked{}, later("another node has the run", err, again)
		}
		t := time.NewTimer(again/2 + rand.N(again/2))
		select {
		case <-t.C:
		case <-driving.Done():
			t.Stop()
		}
	}
}

// notBefore is a time for the workflow's timer. One that is over by Temporal's clock, now,
// and for which the run was not driven is not over by the store's: clocks differ, and
// until they agree it is looked at again now and then, not all the time.
func notBefore(next int64, now time.Time) int64 {
	if next == 0 {
		return 0
	}
	return max(next, now.Add(again).UnixMilli())
}

// later has Temporal try again after a time, without calling it a failure.
func later(what string, err error, after time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(fmt.Sprintf("%s: %v", what, fault.KindOf(err)), "later",
		temporal.ApplicationErrorOptions{NextRetryDelay: after, Category: temporal.ApplicationErrorCategoryBenign})
}

// beat tells Temporal that a drive goes on, and hands over when the worker stops.
func beat(ctx context.Context, every time.Duration, ended <-chan struct{}, handOver func()) {
	t := time.NewTicker(every)
	defer t.Stop()
	stop, lost := activity.GetWorkerStopChannel(ctx), ctx.Done()
	for {
		select {
		case <-t.C:
			if ctx.Err() == nil {
				activity.RecordHeartbeat(ctx)
			}
		case <-stop:
			handOver()
			stop = nil
		case <-lost:
			lost = nil
		case <-ended:
			return
		}
	}
}

// cancel asks a run to stop.
func (w *work) cancel(ctx context.Context, in Run) error {
	_, err := w.runs.Cancel(ctx, engine.Ref{Tenant: in.Tenant, ID: in.ID}, "cancelled in Temporal")
	switch fault.KindOf(err) {
	case fault.Conflict, fault.NotFound: // it has ended, or is being cancelled
		return nil
	}
	if err != nil {
		return later("the run could not be asked to stop", err, again)
	}
	return nil
}

// sweepMost is how many runs one sweep looks at.
const sweepMost = 1000

// Sweep finds what Temporal was not told: runs that have something to do and that
// nobody drives, twice in a row. It returns when ctx or the executor ends.
func (x *Executor) Sweep(ctx context.Context, runs Runs) {
	seen := map[engine.Ref]int{}
	t := time.NewTicker(x.opts.Sweep)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		case <-x.ctx.Done():
			return
		}
		refs, err := runs.Waiting(ctx, sweepMost)
		if err != nil {
			continue // it is looked for again
		}
		seen = x.overdue(refs, seen)
	}
}

// overdue wakes the runs that were seen before. A run may wait because there is no room
// for it, so it is woken ever more seldom: each time makes its history longer.
func (x *Executor) overdue(refs []engine.Ref, seen map[engine.Ref]int) map[engine.Ref]int {
	next := make(map[engine.Ref]int, len(refs))
	for _, ref := range refs {
		n := seen[ref] + 1
		next[ref] = n
		if n > 1 && n&(n-1) == 0 {
			_ = x.Wake(x.ctx, ref)
		}
	}
	return next
}

var _ Runs = (*engine.Engine)(nil)
