package agentd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"agentd"
	"agentd/internal/sim"
	"agentd/model/script"
	"agentd/tool"
)

const cacheScript = `name: cache
turns:
  - repeat: 3
    text: "Now the next."
    tool_calls: [CALLS]
  - text: "Done with it."
`

// A session that only grows reads all that there is to read by the rules of each provider,
// also when one step has more blocks than a mark looks back; what its tools change is named.
func TestSessionsReadWhatTheySent(t *testing.T) {
	for _, tt := range []struct {
		provider, model string
		calls           int
	}{{"anthropic", "claude-sonnet-5", 1}, {"anthropic", "claude-opus-5", 1}, {"anthropic", "claude-sonnet-5", 30}, {"openai", "gpt-5.4", 1}, {"openai", "gpt-6-sol", 1}, {"openai", "gpt-5.4", 30}} {
		t.Run(fmt.Sprint(tt.model, " ", tt.calls), func(t *testing.T) {
			var calls []string
			for i := range tt.calls {
				calls = append(calls, fmt.Sprintf(`{name: note, arguments: {text: "note %d of {{.Step}}"}}`, i))
			}
			s, err := script.Parse("cache.yaml", []byte(strings.Replace(cacheScript, "CALLS", strings.Join(calls, ", "), 1)))
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(sim.New(sim.Options{Scripts: []*script.Script{s}}))
			defer server.Close()
			url := server.URL
			if tt.provider == "openai" {
				url += "/v1"
			}
			rt, err := agentd.Open(t.Context(), agentd.Config{Configs: write(t, map[string]string{"agents/p.yaml": fmt.Sprintf(
				"profile_name: p\nsystem_prompt: %q\nprimary_model: {provider: %s, model: %s, base_url: %q, prompt_cache_key: yes}\ntools: {builtin: [extra]}\napproval_mode: never\nmax_same_calls: 0\n",
				strings.Repeat("be careful with records. ", 300), tt.provider, tt.model, url)}), Data: ":memory:", Tools: []tool.Tool{noteTool{}}})
			if err != nil {
				t.Fatal(err)
			}
			defer rt.Close()
			session := ""
			for n := range 5 {
				req := agentd.StartRequest{Profile: "p", SessionID: session, Input: agentd.Text(fmt.Sprint("turn ", n)), Page: json.RawMessage(fmt.Sprintf(`{"url":"/%d"}`, n))}
				if n == 4 {
					req.Overrides.ClientTools = []agentd.ClientTool{{Name: "zoom"}}
				}
				r, err := rt.Start(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				if r, err = rt.Wait(t.Context(), r.ID); err != nil || r.Status != "completed" {
					t.Fatalf("%+v %v", r, err)
				}
				session = r.SessionID
			}
			h, err := rt.Cache(t.Context(), session, "", 0)
			if err != nil {
				t.Fatal(err)
			}
			if len(h.Steps) != 20 {
				t.Fatalf("%d steps", len(h.Steps))
			}
			before := int64(0)
			for i, s := range h.Steps {
				all := s.Input + s.CacheRead + s.CacheWrite
				switch {
				case i == 16:
					if s.Broken == nil || s.Broken.Part != "tool" || s.Broken.Name != "zoom" || s.Miss != "broken" {
						t.Errorf("step %d: %+v, %+v", i, s, s.Broken)
					}
				case tt.model == "gpt-5.4" && s.CacheRead < before-before%128, tt.model != "gpt-5.4" && s.CacheRead < before:
					t.Errorf("step %d read %d of %d tokens (%s)", i, s.CacheRead, before, s.Miss)
				}
				before = all
			}
			if h.Total.Breaks != 1 || h.Total.Saved <= 0 {
				t.Errorf("%+v", h.Total)
			}
			page, err := rt.Cache(t.Context(), session, "", 3)
			if err != nil || len(page.Steps) != 3 || page.Cursor == "" || page.Total != h.Total {
				t.Fatalf("%+v %v", page, err)
			}
			if page, err = rt.Cache(t.Context(), session, page.Cursor, 0); err != nil || len(page.Steps) != 17 || page.Cursor != "" || page.Steps[0].EntryID != h.Steps[3].EntryID {
				t.Errorf("the rest: %+v %v", page, err)
			}
			if _, err := rt.Cache(t.Context(), session, "x", 0); err == nil {
				t.Error("a cursor of nothing is taken")
			}
		})
	}
}

// noteTool gives a note back.
type noteTool struct{}

func (noteTool) Spec() tool.Spec {
	return tool.Spec{Name: "note", Description: "Takes a note.", Effect: tool.Read, Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)}
}

func (noteTool) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	return tool.TextResult("noted: " + string(c.Args)), nil
}
