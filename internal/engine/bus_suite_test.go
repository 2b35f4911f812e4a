package engine_test

import (
	"testing"

	"agentd/internal/engine"
	"agentd/internal/engine/bustest"
)

func TestMemoryBus(t *testing.T) {
	b := &engine.MemoryBus{}
	bustest.Suite{Direct: true, Open: func(*testing.T) bustest.Bus { return b }}.Run(t)
}
