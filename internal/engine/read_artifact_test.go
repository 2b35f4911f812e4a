package engine

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
)

// A model that answers faster than the store commits reads on in what the store does not
// have yet: the call waits for it.
func TestReadingOnWaitsForTheArtifact(t *testing.T) {
	h := newHarness(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		last := req.Messages[len(req.Messages)-1].Text()
		switch step {
		case 0:
			return say("", call("l", "large", `{"of":"x","bytes":40000}`))
		case 1:
			return say("", call("r", ReadArtifact, `{"artifact_id":"`+idRE.FindStringSubmatch(last)[1]+`","offset":39990}`))
		}
		return say(last)
	}, large())
	h.engine.Close()
	s := &pickyStore{Store: h.store}
	s.set(func(tx *store.Tx) bool {
		for n := 0; len(tx.Blobs) > 0 && n < 10_000; n++ {
			runtime.Gosched() // who would be faster than the commit is so
		}
		return false
	})
	h.store = s
	h.start()
	if r := h.ends(h.run("go"), "completed"); !strings.Contains(r.Output, "[Bytes 39990 to 40000 of 40000") {
		t.Errorf("output: %s", r.Output)
	}
}
