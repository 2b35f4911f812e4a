package peers

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"agentd"
	"agentd/message"
	"agentd/tool"
)

// heap gives a result that no model can read, with bytes that no provider takes.
type heap struct{ text string }

func (heap) Spec() tool.Spec {
	return tool.Spec{Name: "heap", Description: "Gives everything.", Schema: []byte(`{"type":"object"}`), Effect: tool.Read}
}

func (h heap) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.TextResult(h.text), nil
}

// 3. No result, however large or broken, makes a session useless: the model reads its
// beginning and can read on, every later message is answered, also after a restart, and
// what is sent stays small.
func TestPeers03SessionsCanNotBeBricked(t *testing.T) {
	ctx := deadline(t)
	whole := "begin " + strings.Repeat("\xff\xfe0123456789 ", 400_000) + "end"
	provider := simulate(t, `
- tool_calls: [{name: heap, arguments: {}}, {name: gone, arguments: {a: 1}}]
- text: That was much.
`)
	w := newWorld(t, map[string]string{"agents/p.yaml": fmt.Sprintf(
		"profile_name: p\nprimary_model: {provider: openai, model: m, base_url: %q, api_key_env: KEY}\ntools: {builtin: [extra]}\napproval_mode: never\n", provider.URL+"/v1")}, heap{whole})
	ask := func(session, say string) *agentd.Run {
		t.Helper()
		r, err := w.rt.Start(ctx, agentd.StartRequest{Profile: "p", SessionID: session, Input: agentd.Text(say)})
		if err == nil {
			r, err = w.rt.Wait(ctx, r.ID)
		}
		if err != nil || r.Status != "completed" {
			t.Fatalf("%q: %+v, %v", say, r, err)
		}
		return r
	}
	r := ask("", "give me everything")
	for range 2 {
		if a := ask(r.SessionID, "again"); a.Output != "That was much." {
			t.Errorf("the answer is %q", a.Output)
		}
		w.restart()
	}
	for i, req := range recorded(t, provider.URL) {
		if len(req) > 40_000 {
			t.Errorf("request %d has %d bytes", i, len(req))
		}
	}
	found := false
	entries, err := w.rt.Entries(ctx, r.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if m := e.Message; m != nil && m.Role == message.RoleToolResult && m.ToolName == "heap" {
			found = strings.Contains(m.Text(), "read_artifact") && len(m.Text()) < 4096
		}
	}
	if !found {
		t.Error("the model is not told how to read on")
	}
}
