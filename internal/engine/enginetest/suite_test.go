package enginetest

import (
	"testing"

	"agentd/internal/engine"
)

func TestNodesThatTakeWhatThereIs(t *testing.T) { Run(t, Shared) }

func TestNodesThatDoAPartEach(t *testing.T) { Run(t, Pooled) }
func TestTwoVersionsTogether(t *testing.T) {
	bus := &engine.MemoryBus{}
	Adjacent(t, func(t *testing.T, name string, cfg engine.Config) *engine.Engine {
		cfg.Cluster = &engine.Cluster{Name: name, Worker: true, Bus: bus}
		return Start(t, cfg)
	})
}
