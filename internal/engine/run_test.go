package engine

import (
	"context"
	"testing"

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
