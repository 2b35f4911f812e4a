package executors

import (
	"testing"

	"agentd/internal/engine"
	"agentd/internal/engine/enginetest"
)

// TestTemporal is the conformance suite: an API node and two workers.
func TestTemporal(t *testing.T) {
	s := serverOn(t, "")
	enginetest.Run(t, func(t *testing.T, cfg engine.Config) []*engine.Engine {
		c := newCluster(t, s)
		return []*engine.Engine{c.node(cfg, "api", false).Engine, c.node(cfg, "one", true).Engine, c.node(cfg, "two", true).Engine}
	})
}

// TestTemporalWithPools is the same where Temporal decides which node drives a run, and
// another node makes all calls.
func TestTemporalWithPools(t *testing.T) {
	s := serverOn(t, "")
	enginetest.Run(t, func(t *testing.T, cfg engine.Config) []*engine.Engine {
		c := newCluster(t, s)
		c.pools = []string{"run"}
		enginetest.Making(t, cfg, c.bus)
		return []*engine.Engine{c.node(cfg, "api", false).Engine, c.node(cfg, "one", true).Engine, c.node(cfg, "two", true).Engine}
	})
}
