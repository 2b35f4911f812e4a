package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentd/event"
	"agentd/internal/prompt"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// textOf gives the text that readers put together, by what voids it.
func textOf(evs []event.Event) string {
	text := ""
	for _, ev := range evs {
		switch ev.Type {
		case event.TextDelta:
			text += ev.Data.(*event.Delta).Text
		case event.ModelRetry, event.RunResumed, event.ModelFallback:
			text = ""
		}
	}
	return text
}

// TestModelsAreCalledAtNodesOfTheirPool: with the request of the home, and its readers
// get the text as it comes.
func TestModelsAreCalledAtNodesOfTheirPool(t *testing.T) {
	for _, pool := range []string{"model", "model.big"} {
		t.Run(pool, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				go1, seen := make(chan struct{}), make(chan *model.Request, 9)
				slow := provider(func(_ context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
					seen <- req
					m, _ := say("one two")
					emit(model.StreamEvent{Type: model.StreamStart, Partial: m})
					emit(model.StreamEvent{Type: model.StreamTextDelta, Delta: "one ", Partial: m})
					<-go1
					emit(model.StreamEvent{Type: model.StreamTextDelta, Delta: "two", Partial: m})
					return m, nil
				})
				n := newNodes(t, nil, echoTool(tool.Read))
				n.agents["test"].Models[0].Provider = slow
				n.agents["test"].Prompt, _ = prompt.NewSet(prompt.Section{Name: "system_prompt", Tier: prompt.Static, Text: "be good"})
				if pool != "model" {
					n.agents["test"].Models[0].Pool = pool
				}
				home, api := n.node("home", true, pooled("run", "tool")), n.node("api", false)
				maker := n.node("maker", false, pooled(pool))
				r := n.started(home, StartRequest{Input: blocks("hello")})
				text := ""
				var got []event.Event
				for ev, err := range api.Watch(t.Context(), ref(r.ID), 0) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, ev)
					if d, ok := ev.Data.(*event.Delta); ok {
						if text += d.Text; text == "one " {
							close(go1) // only now: the reply is in no commit yet
						}
					}
				}
				req := <-seen
				if req.Model != "m" || req.Messages[0].Text() != "hello" || req.System[0].Text != "be good" || !req.System[0].Cache || len(req.Tools) == 0 || req.SessionID != r.SessionID {
					t.Errorf("request: %+v", req)
				}
				r = n.ended(maker, r.ID, "completed")
				if text != "one two" || r.Output != "one two" {
					t.Errorf("text %q, output %q", text, r.Output)
				}
				if r.Usage.Input != 10 || r.Usage.Output != 5 {
					t.Errorf("usage: %+v", r.Usage)
				}
				n.whole(api, r.ID, got)
				n.clean(r.ID)
			})
		})
	}
}

type provider func(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error)

func (f provider) Generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
	return f(ctx, req, emit)
}

// TestFailuresOfModelsOfPools: they are what they would be at home.
func TestFailuresOfModelsOfPools(t *testing.T) {
	for name, x := range map[string]struct {
		f    provider
		want string
		fail string
	}{
		"retried": {func(_ context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
			return nil, &model.Error{Class: model.ClassRateLimited, Provider: "fake", Status: 429, Message: "slow down", RetryAfter: 500 * time.Millisecond}
		}, "model_retry", "slow down"},
		"fatal": {func(context.Context, *model.Request, func(model.StreamEvent)) (*message.Message, error) {
			return nil, &model.Error{Class: model.ClassAuth, Provider: "fake", Status: 401, Message: "who are you"}
		}, "run_failed", "who are you"},
		"idle": {func(ctx context.Context, _ *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, "model_retry", "nothing came for 1m0s"},
		"panic": {func(context.Context, *model.Request, func(model.StreamEvent)) (*message.Message, error) { panic("oh") }, "model_retry", "the adapter panicked: oh"},
		"deaf": {func(context.Context, *model.Request, func(model.StreamEvent)) (*message.Message, error) {
			<-time.After(2 * time.Minute)
			return nil, errors.New("late")
		}, "model_retry", "nothing came for 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNodes(t, nil)
				n.agents["test"].Models[0].Provider = x.f
				home := n.node("home", true, pooled("run", "tool"))
				n.node("maker", false, pooled("model"))
				r := n.started(home, StartRequest{})
				r = n.ended(home, r.ID, "failed")
				evs, err := home.Events(t.Context(), ref(r.ID), 0)
				if err != nil || !strings.Contains(kinds(evs), x.want) || r.Error == nil || !strings.Contains(r.Error.Message, x.fail) {
					t.Errorf("%s: %+v", kinds(evs), r.Error)
				}
				n.clean(r.ID)
				pass(3 * time.Minute)
			})
		})
	}
}

// TestAModelsOwnerDies: ahead of the first word another node makes the call, behind it
// readers are told to drop what they have.
func TestAModelsOwnerDies(t *testing.T) {
	for _, spoke := range []bool{false, true} {
		t.Run(fmt.Sprint("spoke ", spoke), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				entered := make(chan struct{}, 9)
				calls := 0
				n := newNodes(t, nil)
				n.agents["test"].Models[0].Provider = provider(func(ctx context.Context, _ *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
					m, _ := say("the other one")
					if calls++; calls > 1 {
						emit(model.StreamEvent{Type: model.StreamTextDelta, Delta: "the other one", Partial: m})
						return m, nil
					}
					if spoke {
						emit(model.StreamEvent{Type: model.StreamTextDelta, Delta: "half a", Partial: m})
					}
					<-time.After(time.Second)
					entered <- struct{}{}
					<-ctx.Done()
					return nil, ctx.Err()
				})
				home := n.node("home", true, pooled("run", "tool"))
				g, m := n.mortalPool("maker1", false, 0, false, "model")
				r := n.started(home, StartRequest{})
				got := n.watched(home, r.ID)
				<-entered
				m.die()
				g.Close()
				n.node("maker2", false, pooled("model"))
				r = n.ended(home, r.ID, "completed")
				evs := got()
				n.whole(home, r.ID, evs)
				if textOf(evs) != "the other one" || strings.Contains(kinds(evs), "model_retry") != spoke {
					t.Errorf("%q in %s", textOf(evs), kinds(evs))
				}
				n.clean(r.ID)
			})
		})
	}
}

// TestAModelsHomeDies: the next home takes the reply, which is not made again.
func TestAModelsHomeDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, open := make(chan struct{}, 9), make(chan struct{})
		n := newNodes(t, nil)
		n.agents["test"].Models[0].Provider = provider(func(_ context.Context, _ *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
			m, _ := say("one two three")
			emit(model.StreamEvent{Type: model.StreamTextDelta, Delta: "one ", Partial: m})
			<-time.After(time.Second)
			entered <- struct{}{}
			<-open
			emit(model.StreamEvent{Type: model.StreamTextDelta, Delta: "two three", Partial: m})
			return m, nil
		})
		a, m := n.mortalPool("a", true, 0, false, "run", "tool")
		n.node("maker", false, pooled("model"))
		r := n.started(a, StartRequest{})
		<-entered
		b := n.node("b", true, pooled("run", "tool"))
		got := n.watched(b, r.ID)
		m.die()
		a.Close()
		<-time.After(20 * time.Second)
		close(open)
		r = n.ended(b, r.ID, "completed")
		evs := got()
		n.whole(b, r.ID, evs)
		if textOf(evs) != "one two three" || len(entered) != 0 {
			t.Errorf("%q in %s", textOf(evs), kinds(evs))
		}
		n.clean(r.ID)
	})
}

// TestAModelOfAPoolIsCancelled: what there was of its reply is kept, as at home.
func TestAModelOfAPoolIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered := make(chan struct{}, 9)
		ended := false
		n := newNodes(t, nil)
		n.agents["test"].Models[0].Provider = provider(func(ctx context.Context, _ *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
			m, _ := say("half a")
			emit(model.StreamEvent{Type: model.StreamTextDelta, Delta: "half a", Partial: m})
			<-time.After(time.Second)
			entered <- struct{}{}
			<-ctx.Done()
			ended = true
			return nil, ctx.Err()
		})
		home := n.node("home", true, pooled("run", "tool"))
		n.node("maker", false, pooled("model"))
		r := n.started(home, StartRequest{})
		<-entered
		if _, err := home.Cancel(t.Context(), ref(r.ID), "enough"); err != nil {
			t.Fatal(err)
		}
		r = n.ended(home, r.ID, "cancelled")
		if tr := n.transcript(r.SessionID); !strings.Contains(tr, "half a") || !ended {
			t.Errorf("ended %v, transcript:\n%s", ended, tr)
		}
		n.clean(r.ID)
	})
}

// TestNobodyServesAModel: another model of the profile answers.
func TestNobodyServesAModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, nil)
		answers := modelFunc(func(context.Context, int, *model.Request) (*message.Message, error) { return say("from another") })
		a := n.agents["test"]
		a.Models = []Model{{Provider: answers, ID: "m", Name: "fake/m", Pool: "model.big"}, {Provider: answers, ID: "s", Name: "fake/s"}}
		home := n.node("home", true, pooled("run", "tool", "model"), func(c *Config) { c.Cluster.PoolWait = time.Minute })
		r := n.ended(home, n.started(home, StartRequest{}).ID, "completed")
		evs, err := home.Events(t.Context(), ref(r.ID), 0)
		if k := kinds(evs); err != nil || !strings.Contains(k, "checkpoint_info model_fallback") || r.Output != "from another" {
			t.Errorf("%q in %s", r.Output, k)
		}
		n.clean(r.ID)
	})
}

// TestPoolsWithBudgets: what a call costs is settled once, wherever it is made.
func TestPoolsWithBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &counter{}
		script, tools := poolWorkload(calls)
		n := newNodes(t, script, tools...)
		a := n.agents["test"]
		a.Caps = Caps{MaxTokens: 1_000_000}
		home := n.node("home", true, pooled("run"))
		n.node("maker", false, pooled("model", "tool.gpu"))
		r := n.ended(home, n.started(home, StartRequest{}).ID, "completed")
		if r.Usage.Input+r.Usage.Output != 60 {
			t.Errorf("usage: %+v", r.Usage)
		}
		report, err := n.store.(store.Checker).Check(t.Context(), store.CheckOptions{})
		if err != nil || len(report.Findings) > 0 {
			t.Errorf("%+v, %v", report, err)
		}
		n.clean(r.ID)
	})
}

// TestLostNewsOfAReply: the bus loses pieces; readers get all of the text once the reply
// is there, in order.
func TestLostNewsOfAReply(t *testing.T) {
	for lose := 1; lose <= 6; lose++ {
		synctest.Test(t, func(t *testing.T) {
			n := newNodes(t, nil)
			n.agents["test"].Models[0].Provider = provider(func(_ context.Context, _ *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
				m, _ := say("one two three four", call("c", "gone", `{}`))
				m.Content = append([]message.Block{{Type: message.BlockThinking, Text: "well well"}}, m.Content...)
				m.StopReason = message.StopEnd
				m.Content = m.Content[:2]
				for _, w := range []string{"well ", "well"} {
					emit(model.StreamEvent{Type: model.StreamThinkingDelta, Delta: w, Partial: m})
					<-time.After(50 * time.Millisecond)
				}
				for _, w := range strings.SplitAfter("one two three four", " ") {
					emit(model.StreamEvent{Type: model.StreamTextDelta, Index: 1, Delta: w, Partial: m})
					<-time.After(50 * time.Millisecond)
				}
				return m, nil
			})
			home := n.node("home", true, pooled("run", "tool"))
			n.node("maker", false, pooled("model"), func(c *Config) { c.Cluster.Bus = &lossyBus{Bus: n.bus, lose: lose} })
			r := n.started(home, StartRequest{})
			got := n.watched(home, r.ID)
			n.ended(home, r.ID, "completed")
			evs := got()
			n.whole(home, r.ID, evs)
			thoughts := ""
			for _, ev := range evs {
				if d, ok := ev.Data.(*event.Delta); ok && ev.Type == event.ThinkingDelta {
					thoughts += d.Text
				}
			}
			if textOf(evs) != "one two three four" || thoughts != "well well" {
				t.Errorf("lost %d: %q, %q in %s", lose, thoughts, textOf(evs), kinds(evs))
			}
		})
	}
}

// lossyBus loses the n-th message with news.
type lossyBus struct {
	Bus
	n, lose int
}

func (b *lossyBus) Publish(m []byte) {
	if strings.Contains(string(m), `"k":"news"`) {
		if b.n++; b.n == b.lose {
			return
		}
	}
	b.Bus.Publish(m)
}
