package temporal

import (
	"errors"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"agentd/internal/run"
)

// Names that stored histories have.
const (
	workflowName   = "agentd.run"
	driveActivity  = "agentd.drive"
	cancelActivity = "agentd.cancel"
	// signalWake says that there is something to do, signalChild that a child run was
	// accepted; that one carries its id.
	signalWake  = "wake"
	signalChild = "child"
)

// Run is what a workflow knows of a run.
type Run struct {
	Tenant string `json:"tenant"`
	ID     string `json:"run"`
}

// workflowID is the id of a run's workflow. It is used again when a run is woken whose
// workflow has ended.
func workflowID(r Run) string { return "run/" + r.Tenant + "/" + r.ID }

// Parked is what a drive came to.
type Parked struct {
	Status string `json:"status"`
	Ended  bool   `json:"ended,omitempty"`
	// Until is when the run has something to do by itself, in Unix milliseconds; 0:
	// when it is woken.
	Until int64 `json:"until,omitempty"`
}

// driveLong bounds an activity. A run's own limits end it much earlier.
const driveLong = 365 * 24 * time.Hour

// queues are the task queues of an installation.
type queues struct{ prefix string }

// runs is where runs are driven that were started from outside, and where workflows are.
func (q queues) runs() string { return q.prefix + ".run" }

// children is where child runs are driven. They have a queue of their own because their
// parents have a place in the other one until they have ended.
func (q queues) children() string { return q.prefix + ".child" }

// of is the queue of a run's drives.
func (q queues) of(id string) string {
	if run.ParentID(id) != "" {
		return q.children()
	}
	return q.runs()
}

// loop is the workflow of a run.
type loop struct {
	queues
	heartbeat time.Duration
}

// life is one execution of the loop.
type life struct {
	*loop
	in Run
	// ctx is not cancelled with the workflow: a wish to end it is one more message to
	// the run, which then ends in its own way.
	ctx         workflow.Context
	wish        workflow.Context
	wake, child workflow.ReceiveChannel
	woken       bool // since the last drive began
	cancelling  bool
	open        []opened
}

// opened is a child workflow or a cancel under way; id is that of a child's workflow.
type opened struct {
	workflow.Future
	id string
}

// run is the workflow. Its order of commands is part of stored histories: a change of
// it needs workflow.GetVersion and a new history in testdata.
func (l *loop) run(ctx workflow.Context, in Run) (string, error) {
	detached, _ := workflow.NewDisconnectedContext(ctx)
	f := &life{loop: l, in: in, ctx: detached, wish: ctx, wake: workflow.GetSignalChannel(ctx, signalWake), child: workflow.GetSignalChannel(ctx, signalChild)}
	for {
		f.hear()
		if len(f.open) == 0 && workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return "", workflow.NewContinueAsNewError(f.ctx, workflowName, in) // which begins with a drive
		}
		f.woken = false
		parked, err := f.drive()
		if err != nil {
			return "", err
		}
		if parked.Ended {
			f.hear() // the last child may have been accepted just now
			if parked.Status == string(run.Cancelled) {
				return "", temporal.NewCanceledError()
			}
			return parked.Status, nil
		}
		f.park(parked.Until)
	}
}

// moves is how soon a run that lost its home gets another one. Attempts are counted over
// the whole life of a drive, and each time that a node waits in vain for the claim is one:
// a run that has moved often must not wait longer.
func moves() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 1.5, MaximumInterval: again}
}

// drive has the run driven, and hears meanwhile what others want.
func (f *life) drive() (p Parked, err error) {
	ctx := workflow.WithActivityOptions(f.ctx, workflow.ActivityOptions{
		TaskQueue: f.of(f.in.ID), StartToCloseTimeout: driveLong, HeartbeatTimeout: f.heartbeat,
		RetryPolicy: moves(),
	})
	driving := workflow.ExecuteActivity(ctx, driveActivity, f.in)
	for !driving.IsReady() {
		f.wait(driving)
	}
	return p, driving.Get(f.ctx, &p)
}

// park waits until there may be something to do.
func (f *life) park(until int64) {
	f.hear()
	if f.woken {
		return
	}
	ctx, stop := workflow.WithCancel(f.ctx)
	defer stop()
	var timer workflow.Future
	if until > 0 {
		timer = workflow.NewTimer(ctx, max(0, time.UnixMilli(until).Sub(workflow.Now(ctx))))
	}
	for !f.woken && (timer == nil || !timer.IsReady()) {
		f.wait(timer)
	}
}

// wait waits for one thing: whatever comes first, or what is given.
func (f *life) wait(what workflow.Future) {
	s := workflow.NewSelector(f.ctx)
	if what != nil {
		s.AddFuture(what, func(workflow.Future) {})
	}
	s.AddReceive(f.wake, func(c workflow.ReceiveChannel, _ bool) {
		f.woken = c.ReceiveAsync(nil) || f.woken
	})
	s.AddReceive(f.child, func(c workflow.ReceiveChannel, _ bool) {
		var id string
		if c.ReceiveAsync(&id) {
			f.start(Run{f.in.Tenant, id})
		}
	})
	if !f.cancelling {
		s.AddReceive(f.wish.Done(), func(workflow.ReceiveChannel, bool) { f.cancel() })
	}
	for _, o := range f.open {
		s.AddFuture(o.Future, func(workflow.Future) {})
	}
	s.Select(f.ctx)
	f.hear()
}

// hear takes every message there is, and forgets what has ended.
func (f *life) hear() {
	for f.wake.ReceiveAsync(nil) {
		f.woken = true
	}
	var id string
	for f.child.ReceiveAsync(&id) {
		f.start(Run{f.in.Tenant, id})
	}
	var open []opened
	for _, o := range f.open {
		if !o.IsReady() {
			open = append(open, o)
			continue
		}
		f.woken = true // a child's end is something to look at
		var before *temporal.ChildWorkflowExecutionAlreadyStartedError
		if errors.As(o.Get(f.ctx, nil), &before) {
			workflow.SignalExternalWorkflow(f.ctx, o.id, "", signalWake, nil)
		}
	}
	f.open = open
}

// start begins the workflow of a child run.
func (f *life) start(child Run) {
	ctx := workflow.WithChildOptions(f.ctx, workflow.ChildWorkflowOptions{WorkflowID: workflowID(child), TaskQueue: f.runs(), WorkflowTaskTimeout: f.heartbeat,
		ParentClosePolicy: enums.PARENT_CLOSE_POLICY_REQUEST_CANCEL, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE})
	f.open = append(f.open, opened{workflow.ExecuteChildWorkflow(ctx, workflowName, child), workflowID(child)})
}

// cancel passes on that the workflow is to be cancelled: people said so in Temporal, or
// the workflow of the parent run has ended.
func (f *life) cancel() {
	f.cancelling = true
	ctx := workflow.WithActivityOptions(f.ctx, workflow.ActivityOptions{TaskQueue: f.runs(), StartToCloseTimeout: time.Minute,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second}})
	f.open = append(f.open, opened{Future: workflow.ExecuteActivity(ctx, cancelActivity, f.in)})
}
