package peers

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentd"
	"agentd/client"
	"agentd/event"
	"agentd/fault"
	"agentd/internal/keys"
)

// 11. What belongs to one tenant does not exist for another, whatever is asked for
// and however: the answer is that of an id that nobody has.
func TestPeers11NothingIsSeenAcrossTenants(t *testing.T) {
	ctx := deadline(t)
	w := newWorld(t, map[string]string{
		"agentd.yaml":   "default_profile: p\nlimits: {max_result_bytes: 1024}\n",
		"agents/p.yaml": "profile_name: p\nprimary_model: {provider: script, model: m, script: s.yaml}\ntools: {builtin: [file_read, ask_user_question]}\n",
		"large.txt":     strings.Repeat("a line of a large file\n", 200),
		"s.yaml":        "turns:\n- tool_calls: [{name: file_read, arguments: {file_path: configs/large.txt}}]\n- tool_calls: [{name: ask_user_question, arguments: {question: 'Which?'}}]\n- text: 'The secret of {{.User}}.'\n",
	})
	secrets := map[string]string{}
	for _, tenant := range []string{"acme", "other"} {
		_, s, err := w.rt.CreateKey(ctx, agentd.KeyRequest{Tenant: tenant, Scopes: []keys.Scope{keys.Run, keys.Read, keys.Answer, keys.Admin}})
		if err != nil {
			t.Fatal(err)
		}
		secrets[tenant] = s
	}
	c := w.client(secrets["acme"])
	// The same idempotency key is another one for another tenant.
	start := client.StartRequest{Input: text("acme"), IdempotencyKey: "k"}
	r, err := c.Start(ctx, start)
	if err != nil {
		t.Fatal(err)
	}
	asked := until(ctx, t, c, r.ID, event.CheckpointRequired).Data.(*event.Checkpoint)
	events, err := c.Events(ctx, r.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	artifact := ""
	for _, ev := range events {
		if raw, ok := ev.Data.(json.RawMessage); ok && ev.Type == event.ArtifactCreated {
			var a struct {
				ID string `json:"artifact_id"`
			}
			if err := json.Unmarshal(raw, &a); err != nil {
				t.Fatal(err)
			}
			artifact = a.ID
		}
	}
	do := func(tenant, method, path, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, method, w.http.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secrets[tenant])
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	if code, body := do("acme", "GET", "/artifacts/"+artifact, ""); artifact == "" || code != 200 {
		t.Fatalf("the artifact %q: %d %s", artifact, code, body)
	}
	for _, c := range [][3]string{
		{"GET", "/runs/ID", ""}, {"GET", "/runs/ID/events", ""}, {"GET", "/runs/ID/events?stream=false", ""}, {"GET", "/runs/ID/trace", ""}, {"GET", "/runs/ID/proposals", ""},
		{"POST", "/runs/ID/cancel", "{}"}, {"POST", "/runs/ID/steer", `{"input":"x"}`}, {"POST", "/runs/ID/follow_up", `{"input":"x"}`}, {"POST", "/runs/ID/input", `{"answer":"x"}`},
		{"POST", "/runs/ID/proposals/apply", "{}"}, {"POST", "/runs/ID/proposals/discard", "{}"},
		{"GET", "/sessions/SES", ""}, {"GET", "/sessions/SES/entries", ""}, {"GET", "/sessions/SES/rules", ""}, {"DELETE", "/sessions/SES", ""}, {"POST", "/runs", `{"session_id":"SES","input":"x"}`},
		{"GET", "/interrupts/INT", ""}, {"POST", "/interrupts/INT", `{"answer":"x"}`}, {"GET", "/artifacts/ART", ""},
	} {
		fill := func(id, session, interrupt, artifact string) (string, string) {
			r := strings.NewReplacer("ID", id, "SES", session, "INT", interrupt, "ART", artifact)
			return r.Replace(c[1]), r.Replace(c[2])
		}
		path, body := fill(r.ID, r.SessionID, asked.InterruptID, artifact)
		code, answer := do("other", c[0], path, body)
		madeUp := strings.Repeat("0", 26)
		path, body = fill("run_"+madeUp, "ses_"+madeUp, "run_"+madeUp+"_i1", strings.Repeat("0", len(artifact)))
		nobody, _ := do("other", c[0], path, body)
		if code != http.StatusNotFound || nobody != code || strings.Contains(answer, "secret") {
			t.Errorf("%s %s: %d %s; for an id that nobody has %d", c[0], c[1], code, answer, nobody)
		}
	}
	for _, path := range []string{"/runs", "/sessions", "/interrupts", "/runs?session_id=" + r.SessionID, "/usage"} {
		if code, body := do("other", "GET", path, ""); code != 200 && code != 404 || strings.Contains(body, r.ID) || strings.Contains(body, r.SessionID) {
			t.Errorf("GET %s: %d %s", path, code, body)
		}
	}
	theirs, err := w.client(secrets["other"]).Start(ctx, start)
	if err != nil || theirs.ID == r.ID {
		t.Errorf("the same idempotency key gives another tenant %+v, %v", theirs, err)
	}
	if _, err := w.client("").Run(ctx, r.ID); fault.KindOf(err) != fault.Unauthorized {
		t.Errorf("without a key: %v", err)
	}
}
