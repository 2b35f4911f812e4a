package executors

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"agentd/internal/engine"
	"agentd/internal/engine/enginetest"
	"agentd/internal/engine/temporal"
	"agentd/internal/schedule"
)

// TestSchedules: Temporal tells one worker when a run is due; a key of the time that was
// due makes it one run, whatever else tells so.
func TestSchedules(t *testing.T) {
	t.Parallel()
	s := serverOn(t, "")
	var mu sync.Mutex
	told := map[time.Time][]string{}
	times, err := schedule.Parse("* * * * *", "Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	var c *cluster
	w := enginetest.New(t, func(t *testing.T, cfg engine.Config) []*engine.Engine {
		c = newCluster(t, s)
		var all []*engine.Engine
		for _, name := range []string{"one", "two"} {
			c.before = func(n *node) {
				n.x.Schedule([]schedule.Item{{ID: "minutely", Times: times}}, func(ctx context.Context, id string, due time.Time) error {
					mu.Lock()
					told[due] = append(told[due], name)
					mu.Unlock()
					_, err := n.Start(ctx, engine.StartRequest{Tenant: "default", Input: enginetest.Text("go"), Mode: engine.Autonomous, Scheduled: true, IdempotencyKey: fmt.Sprintf("schedule/%s/%d", id, due.Unix())})
					return err
				})
			}
			all = append(all, c.node(cfg, name, true).Engine)
		}
		return all
	}, func(w *enginetest.World) enginetest.Agents {
		return enginetest.Agents{"test": enginetest.Agent(w.T, enginetest.Steps())}
	})
	handle := s.client().ScheduleClient().GetHandle(t.Context(), c.prefix+"/minutely")
	w.Until("the schedule is there", func() bool { _, err := handle.Describe(t.Context()); return err == nil })
	d, err := handle.Describe(t.Context())
	if err != nil || len(d.Info.NextActionTimes) == 0 {
		t.Fatalf("%+v, %v", d, err)
	}
	due := d.Info.NextActionTimes[0]
	if due.Second() != 0 || !due.Equal(times.Next(due.Add(-time.Second))) {
		t.Errorf("due at %v", due)
	}
	end := time.Now().Add(75 * time.Second)
	for time.Now().Before(end) {
		mu.Lock()
		n := len(told[due.UTC()])
		mu.Unlock()
		if n > 0 {
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	mu.Lock()
	t.Logf("due %v, told %v, %v after", due, told, time.Since(due).Round(time.Millisecond))
	if len(told) == 0 || len(told[due.UTC()]) != 1 {
		t.Errorf("told: %v, due: %v", told, due)
	}
	mu.Unlock()
	w.Until("its run is done", func() bool {
		runs, _, err := w.Node().List(t.Context(), "default", engine.RunFilter{})
		return err == nil && len(runs) >= 1 && runs[len(runs)-1].Status == "completed"
	})
	// A worker whose configuration has no schedules takes them away.
	o := c.opts
	o.Address, o.Prefix = "temporal://"+s.hostPort()+"/default", c.prefix
	x, err := temporal.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	x.Schedule(nil, nil)
	x.Work(w.Node())
	w.Until("the schedule is gone", func() bool { _, err := handle.Describe(t.Context()); return err != nil })
}
