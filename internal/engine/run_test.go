package engine

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// twoTools calls two tools at once, then answers.
func twoTools(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
	if step == 0 {
		return say("I will look.", call("a", "echo", `{"n":1}`), call("b", "echo", `{"n":2}`))
	}
	return say("All done here.")
}

func TestRunWithTools(t *testing.T) {
	h := newHarness(t, twoTools, echoTool(tool.Read))
	r := h.run("hello")
	live := h.events(r)
	r = h.wait(r)
	if r.Status != "completed" || r.Output != "All done here." || r.StopReason != "stop" {
		t.Fatalf("run: %+v", r)
	}
	const want = `user "hello"
assistant "I will look." [a echo {"n":1}] [b echo {"n":2}]
toolResult "echo {\"n\":1}" for a error=false
toolResult "echo {\"n\":2}" for b error=false
assistant "All done here."
`
	if got := h.transcript(r.SessionID); got != want {
		t.Errorf("transcript:\n%s\nwant\n%s", got, want)
	}
	stored := h.events(r)
	if kinds(live) != kinds(stored) {
		t.Errorf("live and stored differ:\n%s\n%s", kinds(live), kinds(stored))
	}
	t.Log(kinds(stored))
	for _, ev := range stored {
		b, err := ev.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		t.Log(string(b))
	}
}

// failingStore refuses commits while it is told to.
type failingStore struct {
	store.Store
	mu     sync.Mutex
	refuse error
}

func (s *failingStore) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = err
}

func (s *failingStore) Commit(ctx context.Context, tx *store.Tx) error {
	s.mu.Lock()
	err := s.refuse
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.Store.Commit(ctx, tx)
}

// A store that fails for a while (a full disk) stops the run where its last
// commit is; when the store works again the run goes on by itself.
func TestRunGoesOnWhenTheStoreWorksAgain(t *testing.T) {
	var h *harness
	var fs *failingStore
	h = newHarness(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
		if step == 1 {
			fs.set(errors.New("disk full"))
		}
		if step == 2 {
			return say("done")
		}
		return say("", call("a", "echo", `{}`))
	}, echoTool(tool.Read))
	h.engine.Close()
	fs = &failingStore{Store: h.store}
	e, err := New(Config{Store: fs, Agents: h.agents, Log: h.log, RetryPause: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	h.engine = e
	r := h.run("go")
	for { // until the engine says that the store is broken
		if e.Ready(context.Background()) != nil {
			break
		}
		runtime.Gosched()
	}
	fs.set(nil)
	// The model breaks the store again each time it is asked for step 1, so
	// the way on leads through the store working when that step is committed.
	for {
		got, err := e.Get(context.Background(), Ref{store.DefaultTenant, r.ID})
		if err != nil {
			t.Fatal(err)
		}
		if got.Status == "completed" {
			break
		}
		fs.set(nil)
		runtime.Gosched()
	}
	if e.Ready(context.Background()) != nil {
		t.Error("the engine still says that the store is broken")
	}
}
