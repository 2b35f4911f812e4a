package enginetest

import (
	"testing"

	"agentd/internal/engine"
)

// Pooled is an executor's world of nodes that do a part each: one drives runs and makes
// no calls, the others make those of models and of tools.
func Pooled(t *testing.T, cfg engine.Config) []*engine.Engine {
	bus := &engine.MemoryBus{}
	node := func(name string, pools ...string) *engine.Engine {
		c := cfg
		c.Cluster = &engine.Cluster{Name: name, Worker: name == "home", Pools: pools, Bus: bus}
		return Start(t, c)
	}
	node("models", engine.PoolModel)
	node("tools", engine.PoolTool)
	return []*engine.Engine{node("api", []string{}...), node("home", "run")}
}

// Making starts a node that makes all calls of models and tools for others, and drives
// nothing.
func Making(t *testing.T, cfg engine.Config, bus engine.Bus) *engine.Engine {
	cfg.Cluster = &engine.Cluster{Name: "maker", Pools: []string{engine.PoolModel, engine.PoolTool}, Bus: bus}
	return Start(t, cfg)
}
