package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"

	"agentd/client"
	"agentd/message"
)

// crowd are the runs of a test, a reader of each, and a person who answers what they
// ask.
type crowd struct {
	w      *world
	ctx    context.Context
	runs   []*watched
	person sync.WaitGroup
	leave  context.CancelFunc
}

// crowd begins with the person, whose answers follow from the seed.
func (w *world) crowd(ctx context.Context, seed, stream int) *crowd {
	c := &crowd{w: w, ctx: ctx}
	there, leave := context.WithCancel(ctx)
	c.leave = leave
	c.person.Go(func() { w.person(there, rand.New(rand.NewPCG(uint64(seed), uint64(stream)))) })
	return c
}

// start starts runs of a round, interactive and autonomous ones in turns.
func (c *crowd) start(round, n int) {
	c.w.t.Helper()
	for i := range n {
		mode := []string{"interactive", "autonomous"}[(round+i)%2]
		r, err := c.w.client.Start(c.ctx, client.StartRequest{Profile: "crash", Mode: mode, Input: []message.Block{message.Text("go")},
			IdempotencyKey: fmt.Sprintf("run-%d-%d", round, i)})
		if err != nil {
			c.w.t.Fatalf("round %d: %v", round, err)
		}
		v := &watched{run: r, done: make(chan struct{})}
		c.runs = append(c.runs, v)
		go c.w.watch(c.ctx, v)
	}
}

// settle waits for the end of all runs, and checks what became of them.
func (c *crowd) settle() {
	c.w.t.Helper()
	for _, v := range c.runs {
		<-v.done
	}
	c.leave()
	c.person.Wait()
	c.w.check(c.ctx, c.runs)
}

// doctor has every invariant of the store checked, while no process uses it.
func (w *world) doctor() {
	w.t.Helper()
	if out, err := exec.Command(w.binary, append([]string{"doctor", "--json"}, w.place...)...).CombinedOutput(); err != nil || !strings.Contains(string(out), `"findings":[]`) {
		w.t.Errorf("the doctor: %v\n%s", err, out)
	}
}
