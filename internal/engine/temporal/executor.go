package temporal

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	enums "go.temporal.io/api/enums/v1"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/run"
)

// Executor tells Temporal what there is to do. Its methods never wait for Temporal:
// what is told is kept until Temporal takes it.
type Executor struct {
	opts   Options
	queues queues
	client client.Client
	ctx    context.Context
	stop   context.CancelFunc
	wg     sync.WaitGroup
	out    outbox

	mu        sync.Mutex
	workers   []*keeper
	schedules *schedules // or nil
}

var _ engine.Executor = (*Executor)(nil)

// senders is how many requests to Temporal are under way at the same time; sendTime
// bounds one.
// flushTime is how long Close waits for what is still to be told.
const (
	senders   = 16
	sendTime  = 10 * time.Second
	flushTime = 2 * time.Second
)

// Open makes an executor. It does not need Temporal to be there: an address that is
// wrong is an error, a server that is down is tried again until Close.
func Open(opts Options) (*Executor, error) {
	opts.defaults()
	c, err := opts.dial()
	if err != nil {
		return nil, err
	}
	return newExecutor(opts, c), nil
}

func newExecutor(opts Options, c client.Client) *Executor {
	ctx, stop := context.WithCancel(context.Background())
	x := &Executor{opts: opts, queues: queues{opts.Prefix}, client: c, ctx: ctx, stop: stop}
	x.out.init()
	for range senders {
		x.wg.Go(x.send)
	}
	return x
}

// Close ends the executor after its workers; what was not told yet is found by the
// sweeps of others.
func (x *Executor) Close() error {
	x.Stop()
	x.out.flushed(flushTime)
	x.stop()
	x.out.close()
	x.wg.Wait()
	x.client.Close()
	return nil
}

// Submit implements engine.Executor. The workflow of a child run is started by that of
// its parent, so that it ends with it.
func (x *Executor) Submit(_ context.Context, ref engine.Ref) error {
	if parent := run.ParentID(ref.ID); parent != "" {
		return x.out.put(message{to: Run{ref.Tenant, parent}, child: ref.ID})
	}
	return x.out.put(message{to: Run{ref.Tenant, ref.ID}})
}

// Wake implements engine.Executor.
func (x *Executor) Wake(_ context.Context, ref engine.Ref) error {
	return x.out.put(message{to: Run{ref.Tenant, ref.ID}})
}

// Cancel implements engine.Executor. The workflow is woken and not cancelled: that the
// run is to stop is in its mail already, which is there sooner.
func (x *Executor) Cancel(ctx context.Context, ref engine.Ref) error { return x.Wake(ctx, ref) }

// message is one thing to tell a workflow: that there is something to do, or that a
// child run was accepted.
type message struct {
	to    Run
	child string
}

// outbox keeps what Temporal is to be told, each thing once.
type outbox struct {
	mu     sync.Mutex
	more   sync.Cond
	queue  []message
	has    map[message]bool
	closed bool
	fails  int // in a row
	busy   int // senders with a message
	idle   chan struct{}
}

// outboxMost bounds what waits while Temporal is away.
const outboxMost = 1 << 16

func (o *outbox) init() {
	o.more.L = &o.mu
	o.has = map[message]bool{}
}

func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.more.Broadcast()
}

func (o *outbox) put(m message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return fault.New(fault.Unavailable, "the connection to Temporal is closed")
	case o.has[m]:
		return nil
	case len(o.queue) >= outboxMost:
		return fault.New(fault.Unavailable, "too much waits for Temporal, which can not be reached; it is found by the sweep")
	}
	o.has[m] = true
	o.queue = append(o.queue, m)
	o.more.Signal()
	return nil
}

// take waits for the next message. One that is put from then on is sent again.
func (o *outbox) take() (m message, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) == 0 && !o.closed {
		o.more.Wait()
	}
	if o.closed {
		return message{}, false
	}
	m = o.queue[0]
	o.queue = o.queue[1:]
	o.busy++
	delete(o.has, m)
	return m, true
}

// flushed waits until everything is told, but not long, and not if Temporal is away.
func (o *outbox) flushed(most time.Duration) {
	o.mu.Lock()
	if o.busy == 0 && len(o.queue) == 0 || o.fails > 0 {
		o.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	o.idle = idle
	o.mu.Unlock()
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-idle:
	case <-t.C:
	}
}

// outcome counts failures in a row and says how long to wait after this one.
func (o *outbox) outcome(err error) (first bool, pause time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy--; o.idle != nil && (err != nil || o.busy == 0 && len(o.queue) == 0) {
		close(o.idle)
		o.idle = nil
	}
	if err == nil {
		o.fails = 0
		return false, 0
	}
	o.fails++
	return o.fails == 1, min(5*time.Second, 100*time.Millisecond<<min(o.fails, 10))
}

// send tells Temporal what there is to tell, until Close.
func (x *Executor) send() {
	for {
		m, ok := x.out.take()
		if !ok {
			return
		}
		err := x.tell(m)
		if permanent(err) {
			x.out.outcome(nil)
			x.opts.Log.Error("Temporal refuses to be told of a run; the sweep tries again", "run", m.to.ID, "error", err)
			continue
		}
		first, pause := x.out.outcome(err)
		if err == nil {
			continue
		}
		if first {
			x.opts.Log.Warn("Temporal can not be reached; runs under way go on, others wait for it", "error", err)
		}
		_ = x.out.put(m)
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-x.ctx.Done():
			t.Stop()
			return
		}
	}
}

func (x *Executor) tell(m message) error {
	ctx, cancel := context.WithTimeout(x.ctx, sendTime)
	defer cancel()
	signal, arg := signalWake, any(nil)
	if m.child != "" {
		signal, arg = signalChild, m.child
	}
	_, err := x.client.SignalWithStartWorkflow(ctx, workflowID(m.to), signal, arg, client.StartWorkflowOptions{
		TaskQueue: x.queues.runs(), WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		// A worker that was stopped is given tasks as long as its connection lasts. What
		// it does not begin is given to another one as soon as what it does not go on with.
		WorkflowTaskTimeout: x.opts.Heartbeat}, workflowName, m.to)
	return err
}

// permanent is whether trying again would give the same error.
func permanent(err error) bool {
	switch err.(type) {
	case *serviceerror.InvalidArgument, *serviceerror.PermissionDenied, *serviceerror.NamespaceNotFound, *serviceerror.NotFound:
		return true
	}
	return false
}
