package peers

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"agentd"
)

// 4. What is stored grows with what was said, and not with its square: history is
// never copied, from run to run or from step to step.
func TestPeers04StorageGrowsWithTheConversation(t *testing.T) {
	ctx := deadline(t)
	w := newWorld(t, map[string]string{
		"agents/p.yaml": "profile_name: p\nprimary_model: {provider: script, model: m, script: s.yaml}\n",
		"s.yaml":        "turns:\n- text: 'Noted.'\n",
	})
	const turns, size = 60, 4000
	rng := rand.New(rand.NewPCG(1, 2)) // words that do not pack well
	session, sizes := "", []int64{}
	for n := range 2 * turns {
		words := make([]byte, size)
		for i := range words {
			words[i] = byte('!' + rng.IntN(90))
		}
		r, err := w.rt.Start(ctx, agentd.StartRequest{Profile: "p", SessionID: session, Input: agentd.Text(string(words))})
		if err == nil {
			r, err = w.rt.Wait(ctx, r.ID)
		}
		if err != nil || r.Status != "completed" {
			t.Fatalf("turn %d: %+v, %v", n, r, err)
		}
		session = r.SessionID
		if n == 0 || n == turns || n == 2*turns-1 {
			w.restart() // the log goes into the file
			sizes = append(sizes, folder(t, w.cfg.Data))
		}
	}
	first, second := sizes[1]-sizes[0], sizes[2]-sizes[1]
	t.Logf("%d turns of %d bytes took %d bytes, and %d more took %d", turns, size, first, turns, second)
	if second > first+first/2 {
		t.Error("the second half of a conversation takes more than the first")
	}
	if said := int64(turns * size); second > 2*said {
		t.Errorf("%d bytes were said, and %d stored", said, second)
	}
}

func folder(t *testing.T, dir string) (n int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", e.Name(), err))
		}
		n += info.Size()
	}
	return n
}
