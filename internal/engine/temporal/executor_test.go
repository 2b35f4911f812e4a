package temporal

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/run"
)

func histories(t *testing.T) []string {
	all, err := filepath.Glob("testdata/*.json")
	if err != nil || len(all) == 0 {
		t.Fatalf("no histories in testdata: %v", err)
	}
	return all
}

// told is a Temporal that notes what it is told.
type told struct {
	client.Client
	mu   sync.Mutex
	got  []string
	fail error
	slow chan struct{}
}

func (c *told) SignalWithStartWorkflow(ctx context.Context, id, signal string, arg any, opts client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	if c.slow != nil {
		<-c.slow
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return nil, c.fail
	}
	if child, ok := arg.(string); ok {
		signal += " " + child
	}
	c.got = append(c.got, id+" "+signal)
	return nil, nil
}

func (c *told) Close() {}

func (c *told) is(t *testing.T, want ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.got) != len(want) {
		t.Fatalf("told %v, want %v", c.got, want)
	}
	for i := range want {
		if c.got[i] != want[i] {
			t.Errorf("told %v, want %v", c.got, want)
		}
	}
}

func connected(c client.Client) *Executor {
	o := Options{Address: "temporal://127.0.0.1"}
	o.defaults()
	return newExecutor(o, c)
}

func TestWhatIsToldTwiceGoesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &told{slow: make(chan struct{})}
		x := connected(c)
		defer x.Close()
		// Every sender is held up by another run, so what comes now waits.
		for i := range senders {
			if err := x.Submit(t.Context(), engine.Ref{Tenant: "acme", ID: fmt.Sprint("other_", i)}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		ref := engine.Ref{Tenant: "acme", ID: "run_1"}
		for range 3 {
			if err := errors.Join(x.Submit(t.Context(), ref), x.Wake(t.Context(), ref)); err != nil {
				t.Fatal(err)
			}
		}
		c.slow <- struct{}{}
		synctest.Wait()
		// It is on its way, so what comes then may be news.
		for range 3 {
			if err := x.Wake(t.Context(), ref); err != nil {
				t.Fatal(err)
			}
		}
		close(c.slow)
		synctest.Wait()
		c.got = slices.DeleteFunc(c.got, func(s string) bool { return strings.HasPrefix(s, "run/acme/other") })
		c.is(t, "run/acme/run_1 wake", "run/acme/run_1 wake")
	})
}

func TestAChildGoesThroughItsParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &told{}
		x := connected(c)
		defer x.Close()
		x.Submit(t.Context(), engine.Ref{Tenant: "acme", ID: "run_1.c1.c3"})
		synctest.Wait()
		c.is(t, "run/acme/run_1.c1 child run_1.c1.c3")
	})
}

// TestTemporalIsToldWhenItIsBack: nobody waits for it meanwhile.
func TestTemporalIsToldWhenItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &told{fail: errors.New("connection refused")}
		x := connected(c)
		defer x.Close()
		x.Submit(t.Context(), engine.Ref{Tenant: "acme", ID: "run_1"})
		time.Sleep(time.Minute)
		c.is(t)
		c.mu.Lock()
		c.fail = nil
		c.mu.Unlock()
		time.Sleep(6 * time.Second)
		c.is(t, "run/acme/run_1 wake")
	})
}

// runs is an engine of functions.
type runs struct {
	drive   func(ctx context.Context, ref engine.Ref) (engine.Parked, error)
	cancel  error
	waiting []engine.Ref
}

func (r *runs) Drive(ctx context.Context, ref engine.Ref) (engine.Parked, error) {
	return r.drive(ctx, ref)
}
func (r *runs) Cancel(context.Context, engine.Ref, string) (*engine.Run, error) { return nil, r.cancel }
func (r *runs) Waiting(context.Context, int) ([]engine.Ref, error)              { return r.waiting, nil }

// TestTheSweepWakesWhatWaits: what was seen twice, and then ever more seldom.
func TestTheSweepWakesWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &told{}
		x := connected(c)
		defer x.Close()
		go x.Sweep(t.Context(), &runs{waiting: []engine.Ref{{Tenant: "acme", ID: "run_1"}}})
		time.Sleep(11 * time.Second)
		c.is(t)
		time.Sleep(10 * time.Second)
		c.is(t, "run/acme/run_1 wake")
		time.Sleep(60 * time.Second)
		c.is(t, "run/acme/run_1 wake", "run/acme/run_1 wake", "run/acme/run_1 wake")
	})
}

func driveIn(t *testing.T, drive func(ctx context.Context, ref engine.Ref) (engine.Parked, error)) (p Parked, err error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	w := &work{runs: &runs{drive: drive}, heartbeat: 10 * time.Millisecond, log: func(msg string, args ...any) { t.Log(msg, args) }}
	env.RegisterActivityWithOptions(w.drive, activity.RegisterOptions{Name: driveActivity})
	v, err := env.ExecuteActivity(driveActivity, Run{"acme", "run_1"})
	if err != nil {
		return p, err
	}
	return p, v.Get(&p)
}

// A run that was due by Temporal's clock and not by the store's is not tried all the time.
func TestClocksThatDifferAreNotWaitedForBusily(t *testing.T) {
	began := time.Now()
	p, err := driveIn(t, func(context.Context, engine.Ref) (engine.Parked, error) {
		return engine.Parked{Status: run.Paused, Next: began.Add(-5 * time.Second).UnixMilli()}, nil
	})
	if err != nil || p.Until < began.Add(again/2).UnixMilli() || p.Until > time.Now().Add(2*again).UnixMilli() {
		t.Errorf("%+v, %v at %d", p, err, began.UnixMilli())
	}
}

func TestADriveGivesWhenToGoOn(t *testing.T) {
	next := time.Now().Add(time.Hour).UnixMilli()
	p, err := driveIn(t, func(_ context.Context, ref engine.Ref) (engine.Parked, error) {
		if ref != (engine.Ref{Tenant: "acme", ID: "run_1"}) {
			t.Errorf("drives %v", ref)
		}
		return engine.Parked{Status: run.Paused, Next: next}, nil
	})
	if p != (Parked{Status: "paused_checkpoint", Until: next}) || err != nil {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestADriveWaitsForTheNodeThatHasTheRun(t *testing.T) {
	n := 0
	p, err := driveIn(t, func(context.Context, engine.Ref) (engine.Parked, error) {
		if n++; n == 1 {
			return engine.Parked{}, fault.New(fault.Conflict, "driven elsewhere")
		}
		return engine.Parked{Status: run.Completed}, nil
	})
	if !p.Ended || err != nil || n != 2 {
		t.Errorf("%+v, %v after %d drives", p, err, n)
	}
}

func TestADeletedRunEnds(t *testing.T) {
	p, err := driveIn(t, func(context.Context, engine.Ref) (engine.Parked, error) {
		return engine.Parked{}, fault.New(fault.NotFound, "no such run")
	})
	if !p.Ended || err != nil {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestAddresses(t *testing.T) {
	for _, tt := range []struct{ in, host, namespace string }{
		{"temporal://127.0.0.1:7233/default", "127.0.0.1:7233", "default"},
		{"temporal://temporal.example", "temporal.example:7233", "default"},
		{"temporal://[::1]:7/prod.acct", "[::1]:7", "prod.acct"},
		{"http://temporal.example", "", ""},
		{"temporal://key@temporal.example", "", ""},
		{"temporal:///x", "", ""},
		{"temporal://h/a/b", "", ""},
		{"temporal://h/a?key=x", "", ""},
	} {
		host, ns, err := Address(tt.in)
		if host != tt.host || ns != tt.namespace || (err == nil) != (tt.host != "") {
			t.Errorf("%s: %s, %s, %v", tt.in, host, ns, err)
		}
	}
}

// A run that lost its home many times finds the next one about as soon as the first.
func TestARunThatMovedOftenDoesNotWaitLonger(t *testing.T) {
	p := moves()
	wait := p.InitialInterval
	for range 100 {
		wait = min(p.MaximumInterval, time.Duration(float64(wait)*p.BackoffCoefficient))
	}
	if wait > 2*time.Second || p.MaximumAttempts != 0 {
		t.Errorf("it waits for %v: %+v", wait, p)
	}
}
