package agentd

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"agentd/fault"
)

// TestRateLimits: what a limit that is used up says to clients of each kind, and
// who it counts for.
func TestRateLimits(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"agentd.yaml":       "http: {user_header: X-OpenWebUI-User-Id}\n",
		"agents/slow.yaml":  "profile_name: slow\nprimary_model: {provider: script, model: m, script: talk.yaml}\nrate_limits: {per_user: {requests_per_minute: 1}}\n",
		"agents/heavy.yaml": "profile_name: heavy\nprimary_model: {provider: script, model: m, script: talk.yaml}\nrate_limits: {per_org: {tokens_per_minute: 100}}\n",
		"talk.yaml":         "turns:\n- text: 'Yes.'\n  usage: {input: 500, output: 1}\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	data := t.TempDir()
	rt, err := Open(t.Context(), Config{Configs: dir, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	h, err := rt.Handler()
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(h)
	defer ts.Close()
	post := func(path, body string, headers ...string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", ts.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(b)
	}
	refused := func(res *http.Response, body string, says ...string) {
		t.Helper()
		seconds, err := strconv.Atoi(res.Header.Get("Retry-After"))
		if res.StatusCode != 429 || err != nil || seconds < 1 || seconds > 300 {
			t.Errorf("%s, Retry-After %q: %s", res.Status, res.Header.Get("Retry-After"), body)
		}
		for _, s := range says {
			if !strings.Contains(body, s) {
				t.Errorf("%q is not in %s", s, body)
			}
		}
	}
	const chat = `{"model":"slow","messages":[{"role":"user","content":"x"}]`
	res, body := post("/runs", `{"profile":"slow","input":"x","user":"kim"}`)
	var run struct {
		ID string `json:"run_id"`
	}
	if err := json.Unmarshal([]byte(body), &run); err != nil || res.StatusCode != 201 {
		t.Fatalf("%s %s", res.Status, body)
	}
	if r, err := rt.Wait(t.Context(), run.ID); err != nil || r.User != "kim" {
		t.Errorf("%+v %v", r, err)
	}
	res, body = post("/runs", `{"profile":"slow","input":"x","user":"kim"}`)
	refused(res, body, `"kind":"rate_limited"`, "this user used up its limit of 1 requests per minute (rate_limits.per_user.requests_per_minute)")
	res, body = post("/v1/chat/completions", chat+`,"safety_identifier":"kim","user":"lee"}`)
	refused(res, body, `"type":"requests"`, `"code":"rate_limit_exceeded"`)
	if h := res.Header; h.Get("x-ratelimit-limit-requests") != "1" || h.Get("x-ratelimit-remaining-requests") != "0" || h.Get("x-ratelimit-reset-requests") == "" || h.Get("x-ratelimit-limit-tokens") != "" {
		t.Errorf("%v", h)
	}
	res, body = post("/v1/chat/completions", chat+`,"user":"lee"}`)
	if res.StatusCode != 200 || res.Header.Get("x-ratelimit-remaining-requests") != "0" || !strings.Contains(body, "Yes.") {
		t.Errorf("%s %v %s", res.Status, res.Header, body)
	}
	res, body = post("/v1/chat/completions", chat+`}`, "X-OpenWebUI-User-Id", "lee")
	refused(res, body)
	if res, body = post("/runs", `{"profile":"slow","input":"x","user":"key:other"}`); res.StatusCode != 400 || !strings.Contains(body, "stand for API keys") {
		t.Errorf("%s %s", res.Status, body)
	}
	// Tokens: of all users, with all profiles.
	res, body = post("/v1/chat/completions", `{"model":"heavy","messages":[{"role":"user","content":"x"}],"user":"max"}`)
	refused(res, body, `"type":"tokens"`, "this organisation")
	if h := res.Header; h.Get("x-ratelimit-limit-tokens") != "100" || h.Get("x-ratelimit-remaining-tokens") != "0" {
		t.Errorf("%v", h)
	}
	res2, err := http.Get(ts.URL + "/usage?user=kim")
	if err != nil {
		t.Fatal(err)
	}
	defer res2.Body.Close()
	if b, err := io.ReadAll(res2.Body); err != nil || !strings.Contains(string(b), `"calls":1,`) {
		t.Errorf("%s %v", b, err)
	}
	// From the first key on, the key is the user.
	key, secret, err := rt.CreateKey(t.Context(), KeyRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if res, body = post("/runs", `{"profile":"slow","input":"x"}`, "Authorization", "Bearer "+secret); res.StatusCode != 201 {
		t.Fatalf("%s %s", res.Status, body)
	}
	if err := json.Unmarshal([]byte(body), &run); err != nil {
		t.Fatal(err)
	}
	if r, err := rt.Wait(t.Context(), run.ID); err != nil || r.User != "key:"+key.ID {
		t.Errorf("%+v %v", r, err)
	}
	res, body = post("/runs", `{"profile":"slow","input":"x"}`, "Authorization", "Bearer "+secret)
	refused(res, body)
	// Another process knows what this one let in.
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	if rt, err = Open(t.Context(), Config{Configs: dir, Data: data}); err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if _, err := rt.Start(t.Context(), StartRequest{Profile: "slow", Input: Text("x"), User: "kim"}); fault.KindOf(err) != fault.RateLimited {
		t.Errorf("after a restart: %v", err)
	}
}
