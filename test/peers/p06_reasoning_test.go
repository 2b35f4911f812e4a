package peers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentd"
)

// 6. Reasoning of answered turns does not fill the prompt for ever, and leaving it out
// does not cost the provider's cache: it stays while the prompt is warm, goes when it
// is cold, and what is sent from then on only grows. That of the turn's own tool calls is
// always there.
func TestPeers06OldReasoningGoesWhenThePromptIsCold(t *testing.T) {
	for _, provider := range []string{"openai", "anthropic"} {
		for _, after := range []string{"5m", "1ms", "0s"} {
			t.Run(provider+" "+after, func(t *testing.T) { oldReasoning(t, provider, after) })
		}
	}
}

func oldReasoning(t *testing.T, provider, after string) {
	ctx := deadline(t)
	model := simulate(t, "- thinking: 'MUSING over {{.User}}, first.'\n  tool_calls: [{name: a_quick, arguments: {z: 1}}]\n"+
		"- thinking: 'MUSING over {{.User}}, again.'\n  tool_calls: [{name: a_quick, arguments: {z: 2}}]\n- thinking: 'MUSING over {{.User}}, last.'\n  text: 'Done.'\n")
	url := model.URL
	if provider == "openai" {
		url += "/v1"
	}
	w := newWorld(t, map[string]string{
		"agents/p.yaml": fmt.Sprintf("profile_name: p\nprimary_model: {provider: %s, model: m, base_url: %q, api_key_env: KEY}\ntools: {builtin: [extra]}\napproval_mode: never\nthinking: low\ndrop_reasoning_after: %s\n", provider, url, after),
	}, part{"a_quick"})
	session := ""
	for n := range 3 {
		r, err := w.rt.Start(ctx, agentd.StartRequest{Profile: "p", SessionID: session, Input: agentd.Text(fmt.Sprint("turn", n))})
		if err != nil {
			t.Fatal(err)
		}
		if r, err = w.rt.Wait(ctx, r.ID); err != nil || r.Status != "completed" {
			t.Fatalf("turn %d: %+v, %v", n, r, err)
		}
		session = r.SessionID
		<-time.After(5 * time.Millisecond) // the prompt is cold where that was said to be so soon
		w.restart()
	}
	marks := regexp.MustCompile(`,?"cache_control":\{[^}]*\}`)
	var before []json.RawMessage
	bodies := recorded(t, model.URL)
	if len(bodies) != 9 {
		t.Fatalf("%d requests", len(bodies))
	}
	for i, raw := range bodies {
		turn, step := i/3, i%3
		for k := range turn + 1 {
			want := 3 // what the turn thought
			if k == turn {
				want = step // so far
			} else if after == "1ms" {
				want = 0
			}
			if got := strings.Count(string(raw), fmt.Sprintf("MUSING over turn%d", k)); got != want {
				t.Errorf("request %d has %d thoughts of turn %d, not %d:\n%s", i+1, got, k, want, raw)
			}
		}
		var now struct{ Messages []json.RawMessage }
		if err := json.Unmarshal(marks.ReplaceAll(raw, nil), &now); err != nil {
			t.Fatal(err)
		}
		for k := range before {
			// Only as a turn begins may something have gone, and only from the turn before.
			if cold := after == "1ms" && step == 0 && k >= len(before)-6; !cold && !bytes.Equal(now.Messages[k], before[k]) {
				t.Errorf("request %d says in message %d\n%s\nwhere there was\n%s", i+1, k, now.Messages[k], before[k])
			}
		}
		before = now.Messages
	}
}
