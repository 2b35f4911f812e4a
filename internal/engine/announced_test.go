package engine

import (
	"context"
	"testing"

	"agentd/event"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// Whoever was told that a call's input began is told of its end, also if the call
// never started.
func TestEveryAnnouncedCallIsToldToEnd(t *testing.T) {
	two := func(stop message.StopReason) modelFunc {
		return func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
			if req.Messages[len(req.Messages)-1].Text() != "go" {
				return say("Done.")
			}
			m, err := say("", call("a", "echo", `{}`), call("b", "echo", `{}`))
			m.StopReason = stop
			return m, err
		}
	}
	for _, tt := range []struct {
		name, want string
		script     modelFunc
		change     func(h *harness)
		while      func(h *harness, r *Run)
	}{
		{"cut by its length", "a tool_failed b tool_failed", two(message.StopLength), nil, nil},
		{"over the limit of calls", "a tool_completed b tool_failed", two(message.StopToolUse), func(h *harness) { h.agents["test"].Settings.MaxToolCalls = 1 }, nil},
		{"skipped for a message", "a tool_failed b tool_failed", two(message.StopToolUse), func(h *harness) {
			a := testAgent(h.t, two(message.StopToolUse), asking(echoTool(tool.Once)))
			a.Settings.SkipRest = true
			h.agents["test"] = a
		}, func(h *harness, r *Run) {
			h.paused(r, 2)
			if err := h.engine.Steer(h.t.Context(), ref(r.ID), blocks("stop that")); err != nil {
				h.t.Fatal(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(t, tt.script, echoTool(tool.Read))
			if tt.change != nil {
				tt.change(h)
			}
			r := h.run("go")
			if tt.while != nil {
				tt.while(h, r)
			}
			r = h.wait(r)
			announced, ends := map[string]int{}, map[string]string{}
			for _, ev := range h.events(r) {
				d, ok := ev.Data.(*event.Tool)
				switch {
				case !ok:
				case ev.Type == event.ToolInputStarted:
					announced[d.ToolCallID]++
				case ev.Type == event.ToolCompleted || ev.Type == event.ToolFailed:
					ends[d.ToolCallID] += d.ToolCallID + " " + string(ev.Type)
					if d.Result == "" || announced[d.ToolCallID] != 1 {
						t.Errorf("%s: %+v, announced %d times", ev.Type, d, announced[d.ToolCallID])
					}
				}
			}
			if got := ends["a"] + " " + ends["b"]; got != tt.want {
				t.Errorf("ends: %s, want %s", got, tt.want)
			}
		})
	}
}

// nameless is a model whose calls have a name only when they are whole.
type nameless struct{ modelFunc }

func (n nameless) Generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
	return n.modelFunc.Generate(ctx, req, func(ev model.StreamEvent) {
		if c := ev.ToolCall; c != nil {
			early := *c
			early.Name = ""
			ev.ToolCall = &early
		}
		emit(ev)
	})
}

// A call of a late tool is announced once, also if its name came late, too.
func TestALateCallIsAnnouncedOnce(t *testing.T) {
	for _, early := range []bool{false, true} {
		h, l := lateHarness(t, echoTool(tool.Read))
		if early {
			h.agents["test"].Models[0].Provider = nameless{l.generate}
		}
		l.calls(call("a", CallByName, `{"tool":"echo","arguments":{}}`), call("b", "echo", `{}`), call("c", CallByName, `{}`))
		announced := map[string]int{}
		for _, ev := range h.events(h.ends(h.run("go"), "completed")) {
			if d, ok := ev.Data.(*event.Tool); ok && ev.Type == event.ToolInputStarted {
				announced[d.ToolCallID]++
			}
		}
		if announced["a"] != 1 || announced["b"] != 1 || announced["c"] != 1 {
			t.Errorf("nameless %v: announced %v", early, announced)
		}
	}
}
