package engine

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// flaky is a store that fails some commits: those that which says, with its error.
type flaky struct {
	store.Store
	mu    sync.Mutex
	n     int
	which func(n int, tx *store.Tx) error
}

func (s *flaky) Commit(ctx context.Context, tx *store.Tx) error {
	s.mu.Lock()
	s.n++
	err := s.which(s.n, tx)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.Store.Commit(ctx, tx)
}

// on puts a store between the engine and its own.
func (h *harness) on(which func(n int, tx *store.Tx) error) *flaky {
	h.t.Helper()
	h.engine.Close()
	s := &flaky{Store: h.store, which: which}
	h.store = s
	h.start()
	return s
}

// A commit that fails for a moment is tried again, and nobody notices.
func TestPassingFailuresOfTheStoreAreNotNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, twoTools, echoTool(tool.Once))
		failed := map[int]bool{}
		h.on(func(n int, tx *store.Tx) error {
			if len(tx.Fences) > 0 && n%2 == 0 && !failed[n] {
				failed[n] = true
				return errors.New("the disk is busy")
			}
			return nil
		})
		r := h.ends(h.run("go"), "completed")
		if got := kinds(h.events(r)); strings.Contains(got, "run_resumed") {
			t.Errorf("events: %s", got)
		}
		if len(failed) == 0 {
			t.Error("no commit failed")
		}
		if err := h.engine.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A commit that fails for good lets go of the run: what was not committed has not
// happened, readers and callers are told, and Ready says what is wrong.
func TestLastingFailuresOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		calls := &counter{}
		h := newHarness(t, oneCall("act", `{}`), toolFunc{tool.Spec{Name: "act"}, func(ctx context.Context, c tool.Call) (tool.Result, error) {
			calls.add(c.Key)
			return tool.TextResult("done"), g.pass(ctx)
		}})
		full := false
		s := h.on(func(int, *store.Tx) error {
			if full {
				return errors.New("the disk is full")
			}
			return nil
		})
		set := func(v bool) { s.mu.Lock(); full = v; s.mu.Unlock() }
		r := h.begin(StartRequest{Mode: Autonomous})
		<-g.entered
		set(true)
		if err := h.engine.Steer(t.Context(), ref(r.ID), blocks("hello")); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("a message that can not be stored: %v", err)
		}
		if err := h.engine.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "the disk is full") || fault.HintOf(err) == "" {
			t.Errorf("ready: %v", err)
		}
		_, err := h.engine.Start(t.Context(), StartRequest{Input: blocks("x")})
		if err == nil || !strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("a start: %v", err)
		}
		set(false)
		close(g.open)
		r = h.ends(r, "completed")
		if calls.n[r.ID+"/1/a"] != 1 {
			t.Errorf("calls: %v", calls.n)
		}
		if got := h.transcript(r.SessionID); !strings.Contains(got, "It may or may not have happened") || strings.Contains(got, "hello") {
			t.Errorf("transcript:\n%s", got)
		}
		if err := h.engine.Ready(t.Context()); err != nil {
			t.Errorf("ready: %v", err)
		}
	})
}

// An engine whose run another one has taken lets go of it and starts nothing more.
func TestAnEngineThatLostItsRun(t *testing.T) {
	g := newGate()
	h := newHarness(t, oneCall("work", `{}`), gated("work", tool.Read, g))
	h.alone = true // nodes agree about who has it
	h.restart()
	r := h.run("go")
	<-g.entered
	h.until("the call is committed", func() bool { return strings.HasSuffix(h.stored(r), "tool_started") })
	old := h.engine
	h.start() // a second engine on the same store takes the run
	<-g.entered
	h.until("the run is the second engine's", func() bool { return strings.HasSuffix(h.stored(r), "run_resumed") })
	close(g.open)
	r = h.ends(r, "completed")
	h.until("the old engine has let go", func() bool {
		old.mu.Lock()
		defer old.mu.Unlock()
		return old.drivers[ref(r.ID)] == nil
	})
	if got := strings.Count(h.transcript(r.SessionID), "work is done"); got != 2 { // the result and the answer
		t.Errorf("transcript:\n%s", h.transcript(r.SessionID))
	}
	if got := kinds(h.events(r)); strings.Count(got, "run_completed") != 1 {
		t.Errorf("events: %s", got)
	}
}

func TestAModelThatPanics(t *testing.T) {
	n := 0
	h := newHarness(t, func(context.Context, int, *model.Request) (*message.Message, error) {
		if n++; n == 1 {
			panic("oh no")
		}
		return say("Fine again.")
	})
	r := h.ends(h.run("go"), "completed") // it is tried again
	if r.Output != "Fine again." {
		t.Errorf("%+v", r)
	}
	for _, ev := range h.events(r) {
		if d, ok := ev.Data.(*event.Retry); ok && !strings.Contains(d.Message, "the adapter panicked: oh no") {
			t.Errorf("%+v", d)
		}
	}
}

func TestAToolThatPanics(t *testing.T) {
	h := newHarness(t, oneCall("work", `{}`), toolFunc{tool.Spec{Name: "work"}, func(context.Context, tool.Call) (tool.Result, error) {
		panic("oh no")
	}})
	if r := h.ends(h.run("go"), "completed"); r.Output != "It said: work panicked: oh no" {
		t.Errorf("%+v", r)
	}
}

// failing is a model that fails some times and then answers.
func failing(times int, err *model.Error) (modelFunc, *int) {
	n := 0
	return func(context.Context, int, *model.Request) (*message.Message, error) {
		if n++; n <= times {
			return nil, err
		}
		return say("At last.")
	}, &n
}

func TestRetriesAndFallback(t *testing.T) {
	overloaded := &model.Error{Class: model.ClassOverloaded, Provider: "fake", Message: "too much"}
	for _, tt := range []struct {
		name     string
		first    int // failures of the first model
		err      *model.Error
		calls    int // of the first model
		wait     time.Duration
		fallback bool
		status   string
		events   string
	}{
		{"one retry", 1, overloaded, 2, 100 * time.Millisecond, true, "completed", "model_retry"},
		{"doubling", 3, overloaded, 4, 700 * time.Millisecond, true, "completed", "model_retry model_retry model_retry"},
		{"then the next model", 99, overloaded, 4, 700 * time.Millisecond, true, "completed", "model_retry model_retry model_retry model_fallback"},
		{"then nothing", 99, overloaded, 4, 700 * time.Millisecond, false, "failed", "model_retry model_retry model_retry"},
		{"as the provider asks", 1, &model.Error{Class: model.ClassRateLimited, Provider: "fake", RetryAfter: 3 * time.Second}, 2, 3 * time.Second, true, "completed", "model_retry"},
		{"longer than the profile's patience", 1, &model.Error{Class: model.ClassRateLimited, Provider: "fake", RetryAfter: time.Hour}, 1, 0, true, "completed", "model_fallback"},
		{"no use", 1, &model.Error{Class: model.ClassAuth, Provider: "fake"}, 1, 0, true, "failed", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				script, n := failing(tt.first, tt.err)
				h := newHarness(t, script)
				a := h.agents["test"]
				a.Settings.Retry = run.Retry{Max: 3, BaseMS: 100, LimitMS: 10_000}
				if tt.fallback {
					second, _ := failing(0, nil)
					a.Models = append(a.Models, Model{Provider: second, ID: "n", Name: "fake/n"})
				}
				began := time.Now()
				r := h.ends(h.run("go"), tt.status)
				// Waits are spread by up to a tenth, and a timer that is due within a
				// millisecond fires at its end.
				if d := time.Since(began); d < tt.wait || d > tt.wait+tt.wait/10+10*time.Millisecond {
					t.Errorf("it took %v, not %v", d, tt.wait)
				}
				if *n != tt.calls {
					t.Errorf("%d calls, not %d", *n, tt.calls)
				}
				var told []string
				for _, ev := range h.events(r) {
					if _, ok := ev.Data.(*event.Retry); ok {
						told = append(told, string(ev.Type))
					}
				}
				if got := strings.Join(told, " "); got != tt.events {
					t.Errorf("events: %q", got)
				}
			})
		})
	}
}

// A retry that is waited for when the process ends is waited for at the next one.
func TestARetrySurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script, n := failing(1, &model.Error{Class: model.ClassRateLimited, Provider: "fake", RetryAfter: time.Minute})
		h := newHarness(t, script)
		h.agents["test"].Settings.Retry.LimitMS = 1 << 30
		began := time.Now()
		r := h.run("go")
		synctest.Wait()
		h.restart()
		h.wait2(r)
		if d := time.Since(began); d < time.Minute || d > time.Minute+7*time.Second || *n != 2 {
			t.Errorf("it took %v and %d calls", d, *n)
		}
	})
}

// wait2 waits as long as it takes, for tests whose clock is not the real one.
func (h *harness) wait2(r *Run) *Run {
	h.t.Helper()
	out, err := h.engine.Wait(h.t.Context(), ref(r.ID))
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

// A model from which nothing comes is given up; one that is slow but alive is not.
func TestModelIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		h := newHarness(t, nil)
		h.agents["test"].ModelIdle = time.Minute
		h.agents["test"].Models[0].Provider = providerFunc(func(ctx context.Context, _ *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
			m, _ := say("slow but alive")
			if n++; n == 1 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			for range 10 {
				select {
				case <-time.After(50 * time.Second):
				case <-ctx.Done():
					return nil, ctx.Err()
				}
				emit(model.StreamEvent{Type: model.StreamTextDelta, Delta: "x", Partial: m})
			}
			return m, nil
		})
		began := time.Now()
		r := h.wait2(h.run("go"))
		if d := time.Since(began).Round(time.Second); r.Status != "completed" || d != 560*time.Second || n != 2 {
			t.Errorf("%+v after %v and %d calls", r, d, n)
		}
		for _, ev := range h.events(r) {
			if d, ok := ev.Data.(*event.Retry); ok && (d.Class != string(model.ClassTimeout) || !strings.Contains(d.Message, "nothing came for 1m0s")) {
				t.Errorf("%+v", d)
			}
		}
	})
}

type providerFunc func(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error)

func (f providerFunc) Generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
	return f(ctx, req, emit)
}

// A run ends at its deadline. Waiting for a person does not count, and neither
// does the time in which nobody drove it start again after a restart.
func TestDeadline(t *testing.T) {
	t.Run("working", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := newGate()
			h := newHarness(t, oneCall("work", `{}`), gated("work", tool.Read, g))
			h.agents["test"].Settings.MaxRunMS = 60_000
			h.agents["test"].ToolTimeout = time.Hour
			began := time.Now()
			r := h.run("go")
			<-g.entered
			<-time.After(40 * time.Second)
			h.restart()
			r = h.wait2(r)
			if d := time.Since(began).Round(time.Second); d != time.Minute || r.Status != "failed" || r.StopReason != "max_run_time" || r.Error == nil || r.Error.Hint == "" {
				t.Errorf("%+v, %+v after %v", r, r.Error, d)
			}
		})
	})
	t.Run("waiting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, oneCall("echo", `{}`), asking(echoTool(tool.Read)))
			h.agents["test"].Settings.MaxRunMS = 60_000
			r := h.run("go")
			<-time.After(24 * time.Hour)
			h.restart()
			h.answer(AnswerRequest{Run: r.ID, Decision: "approve"})
			if r = h.wait2(r); r.Status != "completed" {
				t.Errorf("%+v, %+v", r, r.Error)
			}
		})
	})
}

func TestToolTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		slow := gated("work", tool.Read, g).(toolFunc)
		slow.spec.Timeout = 5 * time.Second
		h := newHarness(t, oneCall("work", `{}`), slow)
		began := time.Now()
		r := h.wait2(h.run("go"))
		if d := time.Since(began).Round(time.Second); d != 5*time.Second || !strings.Contains(r.Output, "context deadline exceeded") {
			t.Errorf("%q after %v", r.Output, d)
		}
	})
}

func TestOverflowEndsTheRun(t *testing.T) {
	script, _ := failing(9, &model.Error{Class: model.ClassOverflow, Provider: "fake"})
	h := newHarness(t, script)
	r := h.ends(h.run("go"), "failed")
	if r.StopReason != "context_overflow" || r.Error.Hint == "" || !regexp.MustCompile(`the provider refused .*about \d+ tokens, .* the tools \d+, .* fake/m: not known`).MatchString(r.Error.Message) {
		t.Errorf("%+v, %+v", r, r.Error)
	}
}

// The profile of a run is gone when the process comes back: the run fails with an
// error that says so, and its session is free.
func TestAProfileThatIsGoneAtRestart(t *testing.T) {
	g := newGate()
	h := newHarness(t, oneCall("work", `{}`), gated("work", tool.Read, g))
	r := h.run("go")
	<-g.entered
	other := *h.agents["test"]
	other.Profile = "other"
	h.agents["other"] = &other
	delete(h.agents, "test")
	h.restart()
	r = h.ends(r, "failed")
	if r.StopReason != "profile_gone" || !strings.Contains(r.Error.Message, `"test"`) || r.Error.Hint == "" {
		t.Errorf("%+v, %+v", r, r.Error)
	}
	if got := h.transcript(r.SessionID); !strings.Contains(got, "it may have happened") {
		t.Errorf("transcript:\n%s", got)
	}
	close(g.open)
	h.ends(h.begin(StartRequest{SessionID: r.SessionID, Profile: "other"}), "completed")
}

func TestFailOnRestart(t *testing.T) {
	g := newGate()
	h := newHarness(t, oneCall("work", `{}`), gated("work", tool.Once, g))
	h.agents["test"].FailOnRestart = true
	r := h.run("go")
	<-g.entered
	queued := h.begin(StartRequest{SessionID: r.SessionID})
	h.restart()
	r = h.ends(r, "failed")
	if r.StopReason != "interrupted" || !strings.Contains(r.Error.Hint, "resume_on_restart") {
		t.Errorf("%+v, %+v", r, r.Error)
	}
	close(g.open)
	h.ends(queued, "completed") // it was not under way
}

// A result that is too large reaches the model as its beginning, and people as a
// whole.
func TestLargeResults(t *testing.T) {
	large := strings.Repeat("0123456789 ä\n", 10_000)
	h := newHarness(t, oneCall("work", `{}`), toolFunc{tool.Spec{Name: "work", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.TextResult(large), nil
	}})
	r := h.ends(h.run("go"), "completed")
	if len(r.Output) > 4<<10 || !strings.Contains(r.Output, "is too large (140000 bytes)") {
		t.Errorf("the model got %d bytes: %.200s", len(r.Output), r.Output)
	}
	id := ""
	for _, ev := range h.events(r) {
		if ev.Type == event.ArtifactCreated {
			raw, err := ev.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(string(raw), `"artifact_id":"`)
			id, _, _ = strings.Cut(rest, `"`)
		}
	}
	name, mime, data, err := h.engine.Artifact(t.Context(), ref(id))
	if err != nil || string(data) != large || name != "work.txt" || !strings.HasPrefix(mime, "text/plain") || !strings.Contains(r.Output, id) {
		t.Errorf("artifact %q: %s, %s, %d bytes, %v", id, name, mime, len(data), err)
	}
	if _, _, _, err := h.engine.Artifact(t.Context(), Ref{"other", id}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another tenant's artifact: %v", err)
	}
}

// Calls of the client's own tools end the run and are the client's to perform.
func TestClientToolsAreHandedBack(t *testing.T) {
	h := newHarness(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		switch text := req.Messages[0].Text(); {
		case step > 0:
			return say("Then not.")
		case text == "mixed":
			return say("", call("a", "local", `{"x":1}`), call("b", "echo", `{}`))
		}
		return say("Do these.", call("a", "local", `{"x":1}`), call("b", "local", `{"x":2}`))
	}, echoTool(tool.Read))
	with := Overrides{ClientTools: []ClientTool{{Name: "local", Description: "Runs there."}}}
	r := h.ends(h.begin(StartRequest{Overrides: with}), "completed")
	if r.StopReason != run.StopClientTools || len(r.ToolCalls) != 2 || r.ToolCalls[1].ID != "b" || string(r.ToolCalls[1].Arguments) != `{"x":2}` || r.Output != "Do these." {
		t.Errorf("%+v", r)
	}
	r = h.ends(h.begin(StartRequest{Overrides: with, Input: blocks("mixed")}), "completed")
	if got := h.transcript(r.SessionID); !strings.Contains(got, "runs on the client and can not share a reply") || r.Output != "Then not." {
		t.Errorf("transcript:\n%s", got)
	}
	_, err := h.engine.Start(t.Context(), StartRequest{Input: blocks("x"), Overrides: Overrides{ClientTools: []ClientTool{{Name: "echo"}}}})
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "rename it") {
		t.Errorf("a client's tool with the name of a server's: %v", err)
	}
}
