package postgres

import (
	"testing"

	"agentd/internal/engine/bustest"
	"agentd/internal/store/postgres/pgtest"
)

func TestBus(t *testing.T) {
	c := pgtest.Start(t, "fsync = off")
	url := c.NewURL()
	bustest.Suite{
		Open: func(t *testing.T) bustest.Bus {
			b := openTest(t, url, nil).Bus()
			t.Cleanup(func() { _ = b.Close() })
			return b
		},
		Break: func(t *testing.T) { c.Restart(t) },
	}.Run(t)
}
