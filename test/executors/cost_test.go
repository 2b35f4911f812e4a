package executors

import (
	"testing"
	"time"

	"agentd/internal/engine"
	"agentd/internal/engine/enginetest"
	"agentd/tool"
)

// TestWhatExecutorsCost measures, in one run, what executors cost beside the work
// itself: runs that only answer, and runs of 100 steps, each a model call and a tool
// call that take no time. The store is in memory for all, so that what differs is the
// executor. It logs its figures (-v); that every run ends is what it checks.
func TestWhatExecutorsCost(t *testing.T) {
	s := serverOn(t, "")
	open := map[string]enginetest.Open{"alone": enginetest.Alone, "store": enginetest.Shared,
		"temporal": func(t *testing.T, cfg engine.Config) []*engine.Engine {
			c := newCluster(t, s)
			c.opts.Sweep, c.opts.Heartbeat, c.opts.Throttle = 0, 0, 0 // as it is by default
			return []*engine.Engine{c.node(cfg, "api", false).Engine, c.node(cfg, "one", true).Engine}
		}}
	const many, steps = 20, 100
	for _, kind := range []string{"alone", "store", "temporal"} {
		t.Run(kind, func(t *testing.T) {
			w := enginetest.New(t, open[kind], func(w *enginetest.World) enginetest.Agents {
				var names []string
				for range steps {
					names = append(names, "read")
				}
				short, long := enginetest.Agent(w.T, enginetest.Steps()), enginetest.Agent(w.T, enginetest.Steps(names...), w.Counting("read", tool.Read, false))
				long.Settings.MaxSteps = steps + 1
				short.Profile = "short"
				return enginetest.Agents{"short": short, "test": long}
			})
			w.Ended(w.Start(engine.StartRequest{Profile: "short"}).ID, "completed") // connections and caches
			took := func(profile string, n int) time.Duration {
				began := time.Now()
				for range n {
					w.Ended(w.Start(engine.StartRequest{Profile: profile}).ID, "completed")
				}
				return time.Since(began) / time.Duration(n)
			}
			short, long := took("short", many), took("test", 3)
			began := time.Now()
			var all []string
			for range 200 {
				all = append(all, w.Start(engine.StartRequest{Profile: "short"}).ID)
			}
			for _, id := range all {
				w.Ended(id, "completed")
			}
			t.Logf("a run that answers %.1f ms; one of %d steps %.1f ms, so %.2f ms for each step more; 200 at once %.0f runs/s", ms(short), steps, ms(long), ms(long-short)/steps, 200/time.Since(began).Seconds())
		})
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
