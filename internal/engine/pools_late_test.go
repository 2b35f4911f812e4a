package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"agentd/event"
	"agentd/internal/store"
	"agentd/tool"
)

// slowLedger reads what there is of a call and is slow to say so.
type slowLedger struct {
	store.Store
	store.Cluster
}

func (s slowLedger) Effects(ctx context.Context, f store.EffectFilter) ([]*store.Effect, error) {
	all, err := s.Cluster.Effects(ctx, f)
	if f.ID != "" && err == nil && len(all) == 1 && all[0].Attempt == 0 {
		pass(time.Second)
	}
	return all, err
}

// A home that read that nobody has its call, and hears the reply before it gets to what it
// read, takes the reply for what it is: the one that it waits for.
func TestAReplyIsFasterThanALookForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, oneCall("echo", `{}`), echoTool(tool.Read))
		n.node("maker", false, pooled("model"))
		home := n.node("home", true, pooled("run", "tool"), func(c *Config) { c.Store = slowLedger{n.store, n.store.(store.Cluster)} })
		r := n.ended(home, n.started(home, StartRequest{}).ID, "completed")
		for _, ev := range got2(home, r.ID, t) {
			if ev.Type == event.ModelRetry {
				t.Errorf("readers were told to drop what they had: %+v", ev.Data)
			}
		}
	})
}
