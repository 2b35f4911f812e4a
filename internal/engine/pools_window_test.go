package engine

import (
	"testing"
	"testing/synctest"
)

// A home knows how many tokens a model has that only the nodes of its pool can ask.
func TestTheWindowOfAModelOfAPoolIsLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &windowed{}
		n := newNodes(t, w.generate)
		n.windowed(w, false)
		n.agents["test"].Models[0].Learned = func() int { return 1600 }
		n.node("maker", false, pooled("model"))
		here := *n.agents["test"]
		here.Models = append([]Model(nil), here.Models...)
		here.Models[0].Learned = func() int { return 0 }
		home := n.node("home", true, pooled("run", "tool"), func(c *Config) { c.Agents = agents{"test": &here} })
		n.engine = home
		id, _ := n.talk(8)
		if made := n.compactions(id); len(made) == 0 || made[0].Reason != "threshold" {
			t.Errorf("%+v", made)
		}
	})
}
