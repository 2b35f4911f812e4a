package crash

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"agentd/internal/store/postgres/pgtest"
)

// TestKill9OnPostgres is TestKill9 with a store in PostgreSQL: at random moments the
// server is killed, or the database, or the server while the database is down. The
// promises are the same.
func TestKill9OnPostgres(t *testing.T) {
	kills, seed := number(t, "AGENTD_PG_KILLS", 30), number(t, "AGENTD_SEED", int(time.Now().UnixNano()%1e9))
	t.Logf("%d kills, AGENTD_SEED=%d", kills, seed)
	rng := rand.New(rand.NewPCG(uint64(seed), 3))
	c := pgtest.Start(t)
	w := newWorld(t)
	w.place = []string{"--store", c.NewURL()}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(kills)*5*time.Second+3*time.Minute)
	defer cancel()
	cr := w.crowd(ctx, seed, 4)
	for round := range kills {
		if w.p == nil {
			w.start()
		}
		cr.start(round, 2)
		<-time.After(time.Duration(rng.IntN(400)) * time.Millisecond)
		switch round % 3 {
		case 0:
			w.kill()
		case 1:
			c.Kill(t)
			c.Restart(t)
		case 2:
			c.Kill(t)
			<-time.After(time.Duration(rng.IntN(50)) * time.Millisecond)
			w.kill()
			c.Restart(t)
		}
	}
	if w.p == nil {
		w.start()
	}
	cr.settle()
	w.kill()
	w.doctor()
}
