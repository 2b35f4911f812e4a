package crash

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentd/internal/store/postgres/pgtest"
)

// TestPoolsOnPostgres is TestNodesOnPostgres for processes that do a part each: an API,
// two that drive runs and make no calls, and two of each pool, of the tools and of the
// models. At random moments one of any kind is killed, stopped past its lease, or told
// to stop. The promises are the same.
func TestPoolsOnPostgres(t *testing.T) {
	rounds, seed := number(t, "AGENTD_POOL_ROUNDS", 16), number(t, "AGENTD_SEED", int(time.Now().UnixNano()%1e9))
	t.Logf("%d rounds, AGENTD_SEED=%d", rounds, seed)
	rng := rand.New(rand.NewPCG(uint64(seed), 7))
	c := pgtest.Start(t)
	w := newWorld(t)
	w.place = []string{"--store", c.NewURL()}
	w.write("configs/agentd.yaml", "cluster: {lease: 2s, poll_interval: 500ms, drain_timeout: 20s, pools: [run]}\n")
	servers := filepath.Join(w.dir, "configs/mcp/servers.yaml")
	b, err := os.ReadFile(servers)
	if err != nil {
		t.Fatal(err)
	}
	w.write("configs/mcp/servers.yaml", strings.Replace(string(b), "    effects:", "    pool: gpu\n    effects:", 1))
	api := &node{w: w, args: []string{"serve", "--no-worker", "--addr", w.addr}}
	kinds := [][]*node{{api}}
	for _, args := range [][]string{{"worker"}, {"worker", "--pools", "tool.gpu"}, {"worker", "--pools", "model"}} {
		kinds = append(kinds, []*node{{w: w, args: args}, {w: w, args: args}})
	}
	var all []*node
	for _, k := range kinds {
		all = append(all, k...)
	}
	for _, n := range all {
		n.start()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rounds)*10*time.Second+3*time.Minute)
	defer cancel()
	cr := w.crowd(ctx, seed, 8)
	for round := range rounds {
		cr.start(round, 3)
		<-time.After(time.Duration(rng.IntN(300)) * time.Millisecond)
		kind := kinds[1+round%3]
		n := kind[rng.IntN(2)]
		switch round % 8 {
		case 0, 1, 2, 6:
			n.kill()
			n.start()
		case 3: // an owner and a home together
			home := kinds[1][rng.IntN(2)]
			owner := kinds[2][rng.IntN(2)]
			home.kill()
			owner.kill()
			home.start()
			owner.start()
		case 4:
			n.freeze()
		case 5:
			n.stop()
			n.start()
		case 7:
			api.kill()
			api.start()
		}
	}
	cr.settle()
	for _, n := range all {
		n.stop()
	}
	w.doctor()
}
