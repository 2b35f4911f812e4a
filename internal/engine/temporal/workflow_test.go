package temporal

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// rig runs the loop without a server and without waiting for time to pass.
type rig struct {
	*testsuite.TestWorkflowEnvironment
	t      *testing.T
	drives []Parked // what each drive gives
	began  []time.Time
	queues []string
	cancel int
	during func(n int) // called in the n-th drive
	// started are the workflows of children, which take an hour.
	started []string
}

func newRig(t *testing.T, drives ...Parked) *rig {
	var suite testsuite.WorkflowTestSuite
	r := &rig{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t, drives: drives}
	r.SetTestTimeout(time.Minute)
	l := &loop{queues: queues{"agentd"}, heartbeat: 5 * time.Second}
	r.RegisterWorkflowWithOptions(func(ctx workflow.Context, in Run) (string, error) {
		if info := workflow.GetInfo(ctx); info.ParentWorkflowExecution != nil {
			r.started = append(r.started, info.WorkflowExecution.ID)
			return "completed", workflow.Sleep(ctx, time.Hour)
		}
		return l.run(ctx, in)
	}, workflow.RegisterOptions{Name: workflowName})
	r.RegisterActivityWithOptions(func(ctx context.Context, in Run) (Parked, error) {
		info := activity.GetInfo(ctx)
		if info.HeartbeatTimeout != 5*time.Second {
			t.Errorf("heartbeat %v", info.HeartbeatTimeout)
		}
		n := len(r.began)
		r.began, r.queues = append(r.began, r.Now()), append(r.queues, info.TaskQueue)
		if r.during != nil {
			r.during(n)
		}
		if n >= len(r.drives) {
			t.Errorf("drive %d of %v", n+1, in)
			return Parked{Ended: true}, nil
		}
		return r.drives[n], nil
	}, activity.RegisterOptions{Name: driveActivity})
	r.RegisterActivityWithOptions(func(context.Context, Run) error { r.cancel++; return nil }, activity.RegisterOptions{Name: cancelActivity})
	return r
}

func (r *rig) finish(id string) (string, error) {
	r.t.Helper()
	r.ExecuteWorkflow(workflowName, Run{"default", id})
	if !r.IsWorkflowCompleted() {
		r.t.Fatal("the loop has not ended")
	}
	if len(r.began) != len(r.drives) {
		r.t.Errorf("%d drives, want %d", len(r.began), len(r.drives))
	}
	var out string
	if err := r.GetWorkflowError(); err != nil {
		return "", err
	}
	return out, r.GetWorkflowResult(&out)
}

var (
	paused = Parked{Status: "paused_checkpoint"}
	done   = Parked{Status: "completed", Ended: true}
)

func TestARunIsDrivenUntilItHasEnded(t *testing.T) {
	r := newRig(t, done)
	if out, err := r.finish("run_1"); out != "completed" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	if r.queues[0] != "agentd.run" {
		t.Errorf("queue %s", r.queues[0])
	}
}

func TestAChildRunIsDrivenOnItsOwnQueue(t *testing.T) {
	r := newRig(t, done)
	if _, err := r.finish("run_1.c2"); err != nil || r.queues[0] != "agentd.child" {
		t.Errorf("queue %v, %v", r.queues, err)
	}
}

func TestAParkedRunIsDrivenWhenItIsWoken(t *testing.T) {
	r := newRig(t, paused, paused, done)
	for _, after := range []time.Duration{time.Hour, 5000 * time.Hour} {
		r.RegisterDelayedCallback(func() { r.SignalWorkflow(signalWake, nil) }, after)
	}
	if _, err := r.finish("run_1"); err != nil {
		t.Fatal(err)
	}
	if d := r.began[2].Sub(r.began[0]); d < 5000*time.Hour || d > 5001*time.Hour {
		t.Errorf("the last drive began after %v", d)
	}
}

// TestAWakeDuringADriveIsNotLost: what it is about may have come too late for that one.
func TestAWakeDuringADriveIsNotLost(t *testing.T) {
	r := newRig(t, paused, done)
	r.during = func(n int) {
		if n == 0 {
			r.SignalWorkflow(signalWake, nil)
			r.SignalWorkflow(signalWake, nil)
		}
	}
	if _, err := r.finish("run_1"); err != nil {
		t.Error(err)
	}
}

func TestAParkedRunIsDrivenWhenItsTimeHasCome(t *testing.T) {
	r := newRig(t, paused, done)
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	r.SetStartTime(start)
	r.drives[0].Until = start.Add(30 * 24 * time.Hour).UnixMilli()
	if _, err := r.finish("run_1"); err != nil {
		t.Fatal(err)
	}
	if d := r.began[1].Sub(start); d < 30*24*time.Hour || d > 31*24*time.Hour {
		t.Errorf("driven after %v", d)
	}
}

func TestATimeThatIsOverDoesNotWait(t *testing.T) {
	r := newRig(t, Parked{Status: "paused_checkpoint", Until: 1}, done)
	if _, err := r.finish("run_1"); err != nil || r.began[1].Sub(r.began[0]) > time.Second {
		t.Errorf("%v, %v", r.began, err)
	}
}

func TestACancelOfTheWorkflowIsAWishOfTheRun(t *testing.T) {
	for _, driving := range []bool{false, true} {
		r := newRig(t, paused, Parked{Status: "cancelled", Ended: true})
		if driving {
			r.during = func(n int) {
				if n == 0 {
					r.CancelWorkflow()
				}
			}
		} else {
			r.RegisterDelayedCallback(r.CancelWorkflow, time.Hour)
		}
		_, err := r.finish("run_1")
		var cancelled *temporal.CanceledError
		if r.cancel != 1 || !errors.As(err, &cancelled) {
			t.Errorf("driving %v: %d cancels, %v", driving, r.cancel, err)
		}
	}
}

func TestTheWorkflowOfAChildIsStartedByItsParents(t *testing.T) {
	r := newRig(t, paused, done)
	r.during = func(n int) {
		if n == 0 {
			r.SignalWorkflow(signalChild, "run_1.c1")
		}
	}
	if _, err := r.finish("run_1"); err != nil {
		t.Fatal(err)
	}
	// Its end is what the parent waited for.
	if d := r.began[1].Sub(r.began[0]); len(r.started) != 1 || r.started[0] != "run/default/run_1.c1" || d < time.Hour {
		t.Errorf("started %v, driven again after %v", r.started, d)
	}
}

func TestTheLoopBeginsAnewWhenItsHistoryIsLong(t *testing.T) {
	r := newRig(t, paused)
	r.during = func(int) {
		r.SetContinueAsNewSuggested(true)
		r.RegisterDelayedCallback(func() { r.SignalWorkflow(signalWake, nil) }, time.Minute)
	}
	_, err := r.finish("run_1")
	var anew *workflow.ContinueAsNewError
	if !errors.As(err, &anew) || anew.WorkflowType.Name != workflowName {
		t.Error(err)
	}
}

// TestTheLoopDoesNotBeginAnewWithChildren: their workflows would be cancelled with it.
func TestTheLoopDoesNotBeginAnewWithChildren(t *testing.T) {
	r := newRig(t, paused, paused)
	r.during = func(n int) {
		if n == 0 {
			r.SetContinueAsNewSuggested(true)
			r.SignalWorkflow(signalChild, "run_1.c1")
			r.SignalWorkflow(signalWake, nil)
		}
	}
	_, err := r.finish("run_1")
	var anew *workflow.ContinueAsNewError
	if !errors.As(err, &anew) {
		t.Error(err)
	}
}

// TestHistoriesReplay replays what older versions of the loop did. A history that does
// not replay belongs to runs that are parked somewhere: the loop must not change so.
func TestHistoriesReplay(t *testing.T) {
	for _, name := range histories(t) {
		r := worker.NewWorkflowReplayer()
		l := &loop{queues: queues{"agentd"}, heartbeat: 5 * time.Second}
		r.RegisterWorkflowWithOptions(l.run, workflow.RegisterOptions{Name: workflowName})
		if err := r.ReplayWorkflowHistoryFromJSONFile(nil, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
