package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd/client"
	"agentd/internal/store/postgres/pgtest"
	"agentd/message"
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
	var person sync.WaitGroup
	personCtx, stopPerson := context.WithCancel(ctx)
	person.Go(func() { w.person(personCtx, rand.New(rand.NewPCG(uint64(seed), 4))) })
	var runs []*watched
	for round := range kills {
		if w.p == nil {
			w.start()
		}
		for n := range 2 {
			mode := []string{"interactive", "autonomous"}[(round+n)%2]
			r, err := w.client.Start(ctx, client.StartRequest{Profile: "crash", Mode: mode, Input: []message.Block{message.Text("go")},
				IdempotencyKey: fmt.Sprintf("run-%d-%d", round, n)})
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			v := &watched{run: r, done: make(chan struct{})}
			runs = append(runs, v)
			go w.watch(ctx, v)
		}
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
	for _, v := range runs {
		<-v.done
	}
	stopPerson()
	person.Wait()
	w.check(ctx, runs)
	w.kill()
	if out, err := exec.Command(w.binary, append([]string{"doctor", "--json"}, w.place...)...).CombinedOutput(); err != nil || !strings.Contains(string(out), `"findings":[]`) {
		t.Errorf("the doctor: %v\n%s", err, out)
	}
}
