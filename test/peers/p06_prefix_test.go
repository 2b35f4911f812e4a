package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
	"time"

	"agentd"
	"agentd/event"
	"agentd/tool"
)

// parts are tools that answer in any order.
type part struct{ name string }

func (p part) Spec() tool.Spec {
	return tool.Spec{Name: p.name, Description: "Part " + p.name + ".", Effect: tool.Read, Schema: json.RawMessage(`{"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"string"}}}`)}
}

func (p part) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if p.name == "b_slow" {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return tool.Result{Content: text(p.name + " did " + string(c.Args)), IsError: p.name == "c_fails"}, nil
}

// 6. Each request of a conversation begins with the one before it, byte for byte:
// through parallel and failing calls, retries, new pages, steering, and restarts.
func TestPeers06PromptsOnlyGrow(t *testing.T) {
	for _, provider := range []string{"openai", "anthropic"} {
		t.Run(provider, func(t *testing.T) { promptsOnlyGrow(t, provider) })
	}
}

func promptsOnlyGrow(t *testing.T, provider string) {
	ctx := deadline(t)
	model := simulate(t, "- text: 'Parts.'\n  tool_calls: [{name: b_slow, arguments: {z: 1, a: 'ü < & >'}}, {name: a_quick, arguments: '{\"z\": 2,   \"a\": \"x\"}'}, {name: c_fails, arguments: {}}, {name: unknown, arguments: {}}]\n"+
		"- text: 'More.'\n  tool_calls: [{name: a_quick, arguments: {z: 3}}]\n  fault: {kind: cut, after: 2, times: 1}\n- text: 'Done with {{.User}}.'\n")
	url := model.URL
	if provider == "openai" {
		url += "/v1"
	}
	w := newWorld(t, map[string]string{
		"agents/p.yaml": fmt.Sprintf("profile_name: p\nprimary_model: {provider: %s, model: m, base_url: %q, api_key_env: KEY}\ntools: {builtin: [extra, ask_user_question]}\napproval_mode: never\nretry: {base_delay: 1ms}\n", provider, url),
	}, part{"c_fails"}, part{"b_slow"}, part{"a_quick"})
	session := ""
	for n := range 6 {
		req := agentd.StartRequest{Profile: "p", SessionID: session, Input: agentd.Text(fmt.Sprintf("turn %d", n))}
		if n%2 == 1 {
			req.Page = json.RawMessage(fmt.Sprintf(`{"url": "/record/%d", "title": "A < B"}`, n))
		}
		r, err := w.rt.Start(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		if n == 4 {
			for ev, err := range w.rt.Watch(ctx, r.ID, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if ev.Type == event.ToolStarted {
					break
				}
			}
			if err := w.rt.Steer(ctx, r.ID, agentd.Text("and steered")); err != nil {
				t.Fatal(err)
			}
		}
		if r, err = w.rt.Wait(ctx, r.ID); err != nil || r.Status != "completed" {
			t.Fatalf("turn %d: %+v, %v", n, r, err)
		}
		session = r.SessionID
		w.restart()
	}
	bodies := recorded(t, model.URL)
	before := growing(t, bodies)
	if len(bodies) < 20 || len(before.Tools) < 10 {
		t.Errorf("%d requests, tools %s", len(bodies), before.Tools)
	}
}

// request is what of a request is the model's prompt.
type request struct {
	Tools, System json.RawMessage
	Messages      []json.RawMessage
}

// growing holds that each request begins with the one before it, byte for byte, and
// gives the last.
func growing(t *testing.T, bodies []json.RawMessage) request {
	t.Helper()
	// Marks say where a cache may end; they move on and are no part of the text.
	marks := regexp.MustCompile(`,?"cache_control":\{[^}]*\}`)
	var before request
	for i, raw := range bodies {
		var now request
		if err := json.Unmarshal(marks.ReplaceAll(raw, nil), &now); err != nil {
			t.Fatal(err)
		}
		if i > 0 && (!bytes.Equal(now.Tools, before.Tools) || !bytes.Equal(now.System, before.System)) {
			t.Errorf("request %d has other tools or another system prompt:\n%s %s\nand before\n%s %s", i+1, now.Tools, now.System, before.Tools, before.System)
		}
		if len(now.Messages) < len(before.Messages) {
			t.Fatalf("request %d has %d messages after %d", i+1, len(now.Messages), len(before.Messages))
		}
		for k := range before.Messages {
			if !bytes.Equal(now.Messages[k], before.Messages[k]) {
				t.Errorf("request %d says in message %d\n%s\nwhere there was\n%s", i+1, k, now.Messages[k], before.Messages[k])
			}
		}
		before = now
	}
	return before
}
