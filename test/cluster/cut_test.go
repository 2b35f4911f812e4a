//go:build linux && netns

package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"agentd/test/proc"
)

// far is a network namespace with cables of its own to what is on this machine. Packets
// on a cable that is cut get lost, both ways, and nobody is told.
type far struct {
	t  *testing.T
	id string
	ns string
}

// ip is the command.
func (f *far) ip(args ...string) {
	f.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		f.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
}

// newFar makes the namespace. A machine that does not allow that fails the test.
func newFar(t *testing.T) *far {
	t.Helper()
	f := &far{t: t, id: fmt.Sprintf("ad%d", os.Getpid()%100000)}
	f.ns = f.id
	if out, err := exec.Command("ip", "netns", "add", f.ns).CombinedOutput(); err != nil {
		t.Fatalf("this test cuts a process off by a network namespace, which is not permitted here: ip netns add: %v: %s\nRun it as root on Linux with iproute2, for instance\n  sudo env PATH=$PATH go test -count=1 -tags netns -run CutOff ./test/cluster", err, strings.TrimSpace(string(out)))
	}
	t.Cleanup(func() { f.ip("netns", "del", f.ns) })
	f.ip("-n", f.ns, "link", "set", "lo", "up")
	return f
}

// cable lays one and gives the address of this machine at its end. n is unlike those of
// the others.
func (f *far) cable(n int) string {
	f.t.Helper()
	bridge, here, there := fmt.Sprintf("%sb%d", f.id, n), fmt.Sprintf("%sh%d", f.id, n), fmt.Sprintf("%st%d", f.id, n)
	net := fmt.Sprintf("10.%d.%d.", 64+os.Getpid()%128, 8*(os.Getpid()/128%31)+n)
	f.ip("link", "add", bridge, "type", "bridge")
	f.t.Cleanup(func() { f.ip("link", "del", bridge) })
	f.ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", f.ns)
	f.t.Cleanup(func() { f.ip("link", "del", here) })
	f.ip("link", "set", here, "master", bridge, "up")
	f.ip("addr", "add", net+"1/24", "dev", bridge)
	f.ip("link", "set", bridge, "up")
	f.ip("-n", f.ns, "addr", "add", net+"2/24", "dev", there)
	f.ip("-n", f.ns, "link", "set", there, "up")
	return net + "1"
}

// cut takes a cable off, mend puts it back.
func (f *far) cut(n int) { f.ip("link", "set", fmt.Sprintf("%sh%d", f.id, n), "nomaster") }
func (f *far) mend(n int) {
	f.ip("link", "set", fmt.Sprintf("%sh%d", f.id, n), "master", fmt.Sprintf("%sb%d", f.id, n))
}

const (
	toPostgres = 1 + iota
	toTemporal
	toModel
)

// TestCutOff: a worker is cut off from PostgreSQL, from Temporal, from both, and gets
// its way back. The promises are those of TestNodes.
func TestCutOff(t *testing.T) {
	f := newFar(t)
	faults, people := number(t, "AGENTD_CLUSTER_FAULTS", 1), number(t, "AGENTD_CLUSTER_RUNS", 40)
	o := options{bin: proc.Build(t), temporal: true, first: 150 * time.Millisecond, pace: 400 * time.Millisecond}
	o.stretch(people)
	o.pg, o.tp, o.sim = f.cable(toPostgres), f.cable(toTemporal), f.cable(toModel)
	w := newWorld(t, o)
	one, away := w.add("one", true, "serve"), w.add("away", false, "worker")
	w.add("api", true, "serve", "--no-worker")
	away.wrap = []string{"ip", "netns", "exec", f.ns}
	off := func(cables ...int) func(context.Context, *rand.Rand) *faultRecord {
		return func(ctx context.Context, rng *rand.Rand) *faultRecord {
			away.excused = true
			r := w.note(ctx, away)
			for _, n := range cables {
				f.cut(n)
			}
			r.at = time.Now().UnixMilli()
			r.back = r.at
			if cables[0] == toTemporal {
				r.node = 0 // what it drives goes on there
				w.driven(ctx, r)
			}
			<-time.After(6*time.Second + time.Duration(rng.IntN(6000))*time.Millisecond)
			for _, n := range cables {
				f.mend(n)
			}
			return r
		}
	}
	w.cluster(faults, people, one, map[string]func(context.Context, *rand.Rand) *faultRecord{
		"cut off from PostgreSQL": off(toPostgres),
		"cut off from Temporal":   off(toTemporal),
		"cut off from both":       off(toPostgres, toTemporal),
	})
}
