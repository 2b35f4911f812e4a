package executors

import (
	"context"
	"fmt"
	"slices"
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
	// What there is; nodes look there when they are told to.
	items := []schedule.Item{{ID: "minutely", Times: times}}
	load := func(context.Context) ([]schedule.Item, error) {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(items), nil
	}
	var c *cluster
	var nodes []*node
	w := enginetest.New(t, func(t *testing.T, cfg engine.Config) []*engine.Engine {
		c = newCluster(t, s)
		var all []*engine.Engine
		for _, name := range []string{"one", "two"} {
			c.before = func(n *node) {
				nodes = append(nodes, n)
				n.x.Schedule(load, func(ctx context.Context, id string, due time.Time) error {
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
	// One that is made while they live, is changed at one node and again at the other, and
	// is gone: Temporal has the newest.
	set := func(at int, more ...schedule.Item) {
		mu.Lock()
		items = append(items[:1:1], more...)
		mu.Unlock()
		nodes[at].x.Rearrange()
	}
	spec := func() string {
		d, err := s.client().ScheduleClient().GetHandle(t.Context(), c.prefix+"/acme/sch_1").Describe(t.Context())
		if err != nil {
			return ""
		}
		return fmt.Sprint(d.Schedule.State.Note)
	}
	at := func(cron string, revision int64) schedule.Item {
		times, err := schedule.Parse(cron, "")
		if err != nil {
			t.Fatal(err)
		}
		return schedule.Item{ID: "acme/sch_1", Times: times, Revision: revision}
	}
	set(0, at("0 3 * * *", 1))
	w.Until("it is made", func() bool { return spec() == "agentd 1: 0 3 * * * UTC, 0s" })
	set(1, at("0 4 * * *", 2))
	w.Until("it is changed", func() bool { return spec() == "agentd 2: 0 4 * * * UTC, 0s" })
	set(0, at("0 3 * * *", 1)) // what that node has read is old
	<-time.After(time.Second)
	if got := spec(); got != "agentd 2: 0 4 * * * UTC, 0s" {
		t.Errorf("an old revision took its place: %s", got)
	}
	set(1)
	w.Until("it is gone", func() bool { return spec() == "" })
	if _, err := handle.Describe(t.Context()); err != nil {
		t.Errorf("the other one is gone, too: %v", err)
	}
	// A node whose configuration has no schedules takes them away.
	o := c.opts
	o.Address, o.Prefix = "temporal://"+s.hostPort()+"/default", c.prefix
	x, err := temporal.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	x.Schedule(func(context.Context) ([]schedule.Item, error) { return nil, nil }, nil)
	w.Until("the schedule is gone", func() bool { _, err := handle.Describe(t.Context()); return err != nil })
}
