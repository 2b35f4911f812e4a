package executors

import (
	"testing"

	"agentd/internal/engine"
	"agentd/internal/engine/enginetest"
)

// TestTwoVersionsTogether: a deploy in the middle. Temporal knows nothing of versions;
// a node that does not understand a run has it tried elsewhere.
func TestTwoVersionsTogether(t *testing.T) {
	t.Parallel()
	c := newCluster(t, serverOn(t, ""))
	enginetest.Adjacent(t, func(t *testing.T, name string, cfg engine.Config) *engine.Engine {
		return c.node(cfg, name, true).Engine
	})
}
