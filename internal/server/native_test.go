package server_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/server"
)

func TestRunLifecycle(t *testing.T) {
	a := start(t, nil)
	r := a.do("POST", "/runs", `{"profile":"echo@1.0.0","input":"hello there","mode":"autonomous","session_mode":"plan","when_busy":"reject",
		"context":{"page":"x"},"page":{"path":"/orders"},"references":["a",{"kind":"ticket","id":"7","title":"Printer","extra":1}],"budget":{"max_steps":3,"max_tool_calls":4,"max_run_time_seconds":5,"max_output_tokens":6,"max_cost_usd":0.123456789,"max_tokens":7},"metadata":{"k":"v"}}`)
	if r.status != 201 || r.header.Get("Location") != "/runs/r1" || r.json(t)["session_id"] != "s1" {
		t.Fatalf("%d %v %s", r.status, r.header, r.body)
	}
	got := a.e.lastStart()
	if got.Tenant != "default" || got.Profile != "echo@1.0.0" || got.Mode != "autonomous" || got.SessionMode != "plan" || got.WhenBusy != engine.Reject || got.Input[0].Text != "hello there" ||
		string(got.Context) != `{"page":"x"}` || got.Overrides.MaxSteps != 3 || got.Overrides.MaxToolCalls != 4 || got.Overrides.MaxRunTimeSeconds != 5 || got.Overrides.MaxOutputTokens != 6 || got.Overrides.MaxCostUSD != 123456789 || got.Overrides.MaxTokens != 7 ||
		string(got.Page) != `{"path":"/orders"}` || len(got.References) != 2 || string(got.References[0]) != `"a"` || string(got.References[1]) != `{"kind":"ticket","id":"7","title":"Printer","extra":1}` {
		t.Errorf("%+v", got)
	}
	a.do("GET", "/runs/r1/events", "") // waits for the end
	run := a.do("GET", "/runs/r1", "").json(t)
	if run["status"] != "completed" || run["output"] != "hello there" || run["profile_version"] != "1.0.0" {
		t.Errorf("%v", run)
	}
	if b, _ := json.Marshal(run["budget"]); string(b) != `{"limits":{"max_steps":3},"used":{"run_time_seconds":0.5,"steps":1,"tool_calls":0}}` {
		t.Errorf("%s", b)
	}
	if r := a.do("POST", "/runs/r1/cancel", ""); r.status != 409 {
		t.Errorf("cancelling an ended run: %d", r.status)
	}
	a.do("POST", "/runs", `{"input":[{"type":"text","text":"look"},{"type":"image","data":"AAAA","mimeType":"image/png"}],"session_id":"s1","profile":"manual"}`)
	if l := a.do("GET", "/runs?session_id=s1&status=running&limit=1", "").json(t)["runs"].([]any); len(l) != 1 {
		t.Errorf("%v", l)
	}
	if l := a.do("GET", "/runs?limit=1", "").json(t); l["cursor"] != "r2" {
		t.Errorf("%v", l)
	}
	if l := a.do("GET", "/runs?status=failed", ""); !strings.Contains(string(l.body), `"runs":[]`) {
		t.Errorf("%s", l.body)
	}
	for _, op := range []string{"steer", "follow_up"} {
		if r := a.do("POST", "/runs/r2/"+op, `{"input":"more"}`); r.status != 202 {
			t.Errorf("%s: %d %s", op, r.status, r.body)
		}
	}
	if r := a.do("POST", "/runs/r2/follow_up", `{"input":"and","context_blocks":[{"kind":"tree","text":"a.go"},{"kind":"mode"}]}`); r.status != 202 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if strings.Join(a.e.steered, ",") != "steer more,follow_up more,follow_up and with tree=a.go with mode=" {
		t.Errorf("%v", a.e.steered)
	}
	if r := a.do("POST", "/runs/r2/cancel", `{"reason":"enough"}`); r.status != 200 || r.json(t)["status"] != "cancelled" || <-a.e.cancelled != "r2: enough" {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestIdempotencyKey(t *testing.T) {
	a := start(t, nil)
	first := a.do("POST", "/runs", `{"input":"a"}`, "Idempotency-Key: k1")
	again := a.do("POST", "/runs", `{"input":"a"}`, "Idempotency-Key: k1")
	if first.json(t)["run_id"] != again.json(t)["run_id"] {
		t.Errorf("%s %s", first.body, again.body)
	}
	if r := a.do("POST", "/runs", `{"input":"b"}`, "Idempotency-Key: k1"); r.status != 409 {
		t.Errorf("%d", r.status)
	}
	if r := a.do("POST", "/runs", `{"input":"a"}`, "Idempotency-Key: "+strings.Repeat("x", 256)); r.status != 400 {
		t.Errorf("%d", r.status)
	}
}

func TestInterrupts(t *testing.T) {
	a := start(t, nil)
	a.e.script("asks", func(r *fakeRun) { r.ask("r1.i1", "approval", "May I delete x?", true) })
	a.do("POST", "/runs", `{"profile":"asks","input":"go"}`)
	for range parseUntil(t, a, "/runs/r1/events", event.CheckpointRequired) {
	}
	if r := a.do("GET", "/runs/r1", "").json(t); len(r["interrupts"].([]any)) != 1 || r["status"] != "paused_checkpoint" {
		t.Errorf("%v", r)
	}
	if r := a.do("GET", "/interrupts?status=open&run_id=r1", "").json(t); len(r["interrupts"].([]any)) != 1 {
		t.Errorf("%v", r)
	}
	a.e.asked["r1.i2"] = &engine.InterruptView{ID: "r1.i2", RunID: "r1", SessionID: "s1", Kind: "question", Status: "open", Prompt: "Why?", CreatedAt: stamp}
	first := a.do("GET", "/interrupts?status=open&limit=1", "").json(t)
	if len(first["interrupts"].([]any)) != 1 || first["cursor"] != "r1.i1" {
		t.Errorf("%v", first)
	}
	second := a.do("GET", "/interrupts?status=open&limit=1&cursor=r1.i1", "").json(t)
	if l := second["interrupts"].([]any); len(l) != 1 || l[0].(map[string]any)["interrupt_id"] != "r1.i2" || second["cursor"] != nil {
		t.Errorf("%v", second)
	}
	delete(a.e.asked, "r1.i2")
	if r := a.do("GET", "/interrupts/r1.i1", "").json(t); r["prompt"] != "May I delete x?" {
		t.Errorf("%v", r)
	}
	if r := a.do("POST", "/runs/r1/input", `{"decision":"approve","args":{"path":"y"},"reason":"fine"}`); r.status != 200 || r.json(t)["status"] != "answered" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := a.do("POST", "/interrupts/r1.i1", `{"decision":"reject"}`); r.status != 409 {
		t.Errorf("a double answer: %d", r.status)
	}
	// Both ways to say that a question is answered.
	if r := a.do("POST", "/interrupts/nope", `{"decision":"answer","answer":"x"}`); r.status != 404 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := a.do("POST", "/interrupts/nope", `{"answer":"x"}`); r.status != 404 {
		t.Errorf("%d", r.status)
	}
}

func TestSessions(t *testing.T) {
	a := start(t, nil)
	if r := a.do("POST", "/sessions", ``); r.status != 201 || r.header.Get("Location") != "/sessions/s1" {
		t.Errorf("%d %v", r.status, r.header)
	}
	a.do("POST", "/sessions", `{"title":"plans","metadata":{"a":1}}`, "Idempotency-Key: k1")
	if got := a.e.created[1]; got.Tenant != "default" || got.IdempotencyKey != "k1" || got.Title != "plans" || string(got.Metadata) != `{"a":1}` {
		t.Errorf("%+v", got)
	}
	if _, _, _, field := a.do("POST", "/sessions", `{}`, "Idempotency-Key: "+strings.Repeat("x", 256)).error(t); field != "Idempotency-Key" {
		t.Errorf("field %q", field)
	}
	if r := a.do("GET", "/sessions?limit=1", "").json(t); len(r["sessions"].([]any)) != 1 || r["cursor"] != "s1" {
		t.Errorf("%v", r)
	}
	if r := a.do("GET", "/sessions/s2", "").json(t); r["title"] != "plans" {
		t.Errorf("%v", r)
	}
	a.e.mu.Lock()
	a.e.sessions["s1"].Ephemeral = true
	a.e.mu.Unlock()
	for q, want := range map[string]string{"": "s2", "?ephemeral=false": "s2", "?ephemeral=true": "s1"} {
		r := a.do("GET", "/sessions"+q, "").json(t)
		if ss := r["sessions"].([]any); len(ss) != 1 || ss[0].(map[string]any)["session_id"] != want {
			t.Errorf("%s: %v", q, r)
		}
	}
	if r := a.do("GET", "/sessions?ephemeral=perhaps", ""); r.status != 400 || !strings.Contains(string(r.body), "perhaps") {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := a.do("GET", "/sessions/s2/entries?limit=10", "").json(t); len(r["entries"].([]any)) != 4 {
		t.Errorf("%v", r)
	}
	if r := a.do("GET", "/sessions/s2/entries?after=e4", ""); !strings.Contains(string(r.body), `"entries":[]`) {
		t.Errorf("%s", r.body)
	}
	if r := a.do("DELETE", "/sessions/s2", ""); r.status != 204 {
		t.Errorf("%d", r.status)
	}
	for _, path := range []string{"/sessions/s2", "/sessions/s2/entries"} {
		if r := a.do("GET", path, ""); r.status != 404 {
			t.Errorf("%s: %d", path, r.status)
		}
	}
}

func TestCatalogue(t *testing.T) {
	a := start(t, &server.Options{Version: "1.2.3"})
	if r := a.do("GET", "/profiles", "").json(t); len(r["profiles"].([]any)) != 2 {
		t.Errorf("%v", r)
	}
	r := a.do("GET", "/artifacts/a1", "")
	if r.status != 200 || !strings.HasPrefix(r.header.Get("Content-Disposition"), "attachment") || !strings.Contains(r.header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("an agent's HTML must not run here: %v", r.header)
	}
	if r := a.do("GET", "/artifacts/a2", ""); r.status != 404 {
		t.Errorf("%d", r.status)
	}
	if r := a.do("GET", "/usage?from=2026-01-01&to=2026-02-01T00:00:00Z&session_id=s1", "").json(t); r["cost"] != 0.25 {
		t.Errorf("%v", r)
	}
	if r := a.do("GET", "/usage?to=0", "").json(t); len(r["usage"].([]any)) != 2 {
		t.Errorf("%v", r)
	}
	if r := a.do("GET", "/healthz", "").json(t); r["version"] != "1.2.3" {
		t.Errorf("%v", r)
	}
	if r := a.do("HEAD", "/healthz", ""); r.status != 200 || len(r.body) != 0 {
		t.Errorf("%d", r.status)
	}
	if r := a.do("GET", "/readyz", ""); r.status != 200 {
		t.Errorf("%d", r.status)
	}
	a.e.notReady = fault.New(fault.Unavailable, "the store refuses commits")
	if r := a.do("GET", "/readyz", ""); r.status != 503 || !strings.Contains(string(r.body), "refuses") {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := a.do("GET", "/openapi.json", "").json(t); r["openapi"] != "3.1.0" {
		t.Errorf("%v", r["openapi"])
	}
}

// TestBadRequests holds that wrong requests are answered with what was wrong,
// and that the document's schema calls wrong what the handler does.
func TestBadRequests(t *testing.T) {
	a := start(t, nil)
	for _, c := range []struct {
		name, method, path, body string
		field, message           string
	}{
		{"empty body", "POST", "/runs", "  \n", "", "empty"},
		{"malformed", "POST", "/runs", "{\"input\": \"x\",\n  \"mode\": oops}", "", "line 2, column 11"},
		{"cut off", "POST", "/runs", `{"input":"x"`, "", "unexpected end"},
		{"trailing garbage", "POST", "/runs", `{"input":"x"} {}`, "", "line 1, column 15"},
		{"not an object", "POST", "/runs", `["x"]`, "", "a list"},
		{"null", "POST", "/runs", `null`, "", "null"},
		{"not UTF-8", "POST", "/runs", "{\"input\":\"\xff\"}", "", "UTF-8"},
		{"unknown field", "POST", "/runs", `{"input":"x","promt":"y"}`, "promt", "line 1, column 20"},
		{"other case", "POST", "/runs", `{"Input":"x"}`, "Input", "unknown"},
		{"repeated field", "POST", "/runs", `{"input":"x","input":"y"}`, "input", "twice"},
		{"unknown nested field", "POST", "/runs", `{"input":"x","budget":{"max_step":1}}`, "budget.max_step", "unknown"},
		{"a limit that nothing enforces", "POST", "/runs", `{"input":"x","budget":{"max_steps":1,"max_patience":0.5}}`, "budget.max_patience", "not be enforced"},
		{"less than nothing", "POST", "/runs", `{"input":"x","budget":{"max_cost_usd":-1}}`, "budget.max_cost_usd", "not negative"},
		{"a limit in another case", "POST", "/runs", `{"input":"x","budget":{"MAX_STEPS":1}}`, "budget.MAX_STEPS", "not be enforced"},
		{"wrong type", "POST", "/runs", `{"input":"x","profile":7}`, "profile", "must be a string, not number"},
		{"wrong nested type", "POST", "/runs", `{"input":"x","budget":{"max_steps":"1"}}`, "budget.max_steps", "must be an integer, not string"},
		{"a fraction", "POST", "/runs", `{"input":"x","budget":{"max_steps":1.5}}`, "budget.max_steps", "must be an integer"},
		{"negative", "POST", "/runs", `{"input":"x","budget":{"max_tool_calls":-1}}`, "budget.max_tool_calls", "negative"},
		{"no input", "POST", "/runs", `{"profile":"echo"}`, "input", "missing"},
		{"null input", "POST", "/runs", `{"input":null}`, "input", "missing"},
		{"blank input", "POST", "/runs", `{"input":" \n "}`, "input", "empty"},
		{"no blocks", "POST", "/runs", `{"input":[]}`, "input", "empty"},
		{"blank blocks", "POST", "/runs", `{"input":[{"type":"text","text":" "}]}`, "input", "empty"},
		{"a number as input", "POST", "/runs", `{"input":5}`, "input", "string or a list"},
		{"unknown block", "POST", "/runs", `{"input":[{"type":"video"}]}`, "input", "block 0"},
		{"a call as input", "POST", "/runs", `{"input":[{"type":"toolCall","name":"x"}]}`, "input[0].type", "text and images"},
		{"image without data", "POST", "/runs", `{"input":[{"type":"image","mimeType":"image/png"}]}`, "input", "base64"},
		{"image of another type", "POST", "/runs", `{"input":[{"type":"image","data":"AAAA","mimeType":"text/html"}]}`, "input[0].mimeType", "image type"},
		{"image of a type that no provider takes", "POST", "/runs", `{"input":[{"type":"text","text":"x"},{"type":"image","data":"AAAA","mimeType":"image/tiff"}]}`, "input[1].mimeType", "image/png"},
		{"image that is not base64", "POST", "/runs", `{"input":[{"type":"image","data":"not base64!","mimeType":"image/png"}]}`, "input[0].data", "base64"},
		{"steer with such an image", "POST", "/runs/r1/steer", `{"input":[{"type":"image","data":"***","mimeType":"image/png"}]}`, "input[0].data", "base64"},
		{"mode", "POST", "/runs", `{"input":"x","mode":"batch"}`, "mode", "batch"},
		{"when_busy", "POST", "/runs", `{"input":"x","when_busy":"later"}`, "when_busy", "later"},
		{"metadata", "POST", "/runs", `{"input":"x","metadata":[1]}`, "metadata", "object"},
		{"references", "POST", "/runs", `{"input":"x","references":"y"}`, "references", "must be a list"},
		{"steer nothing", "POST", "/runs/r1/steer", `{}`, "input", "missing"},
		{"steer with a block of two shapes", "POST", "/runs/r1/steer", `{"input":"x","context_blocks":[{"kind":7}]}`, "context_blocks.kind", "must be a string"},
		{"follow up nothing", "POST", "/runs/r1/follow_up", `{"input":""}`, "input", "empty"},
		{"cancel with more", "POST", "/runs/r1/cancel", `{"force":true}`, "force", "unknown"},
		{"no answer", "POST", "/interrupts/i1", `{"reason":"x"}`, "decision", "give a decision"},
		{"null answer", "POST", "/runs/r1/input", `{"answer":null}`, "decision", "give a decision"},
		{"decision", "POST", "/runs/r1/input", `{"decision":"maybe"}`, "decision", "maybe"},
		{"args", "POST", "/runs/r1/input", `{"decision":"approve","args":[1]}`, "args", "object"},
		{"session title", "POST", "/sessions", `{"title":{}}`, "title", "must be a string"},
		{"session metadata", "POST", "/sessions", `{"metadata":"x"}`, "metadata", "object"},
		{"limit", "GET", "/runs?limit=0", "", "limit", "1 to 200"},
		{"limit word", "GET", "/sessions?limit=many", "", "limit", "1 to 200"},
		{"status", "GET", "/runs?status=done", "", "status", "done"},
		{"parameter", "GET", "/runs?stauts=failed", "", "stauts", "unknown query"},
		{"query", "GET", "/runs?a=%zz", "", "", "query"},
		{"limit of interrupts", "GET", "/interrupts?limit=201", "", "limit", "1 to 200"},
		{"interrupt status", "GET", "/interrupts?status=x", "", "status", "not a choice"},
		{"time", "GET", "/usage?from=yesterday", "", "from", "time"},
		{"after", "GET", "/runs/r1/events?after=x", "", "after", "number of an event"},
		{"negative after", "GET", "/runs/r1/events?after=-1", "", "after", "number of an event"},
		{"stream", "GET", "/runs/r1/events?stream=maybe", "", "stream", "not a choice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := *a
			b.t = t
			r := b.do(c.method, c.path, c.body)
			kind, message, hint, field := r.error(t)
			if r.status != 400 || kind != "invalid" || field != c.field || !strings.Contains(message, c.message) {
				t.Errorf("%d %s %q %q (hint %q)", r.status, kind, field, message, hint)
			}
			if c.body != "" && json.Valid([]byte(c.body)) && c.name != "repeated field" && c.name != "not UTF-8" {
				path, _, _ := strings.Cut(c.path, "?")
				if b.request(c.method, path, c.body) == nil {
					t.Error("the document's schema accepts it")
				}
			}
		})
	}
	if len(a.e.started) != 0 {
		t.Errorf("%d runs were started", len(a.e.started))
	}
}

func TestNotFound(t *testing.T) {
	a := start(t, nil)
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/runs/nope", ""}, {"GET", "/runs/nope/events", ""}, {"POST", "/runs/nope/cancel", ""}, {"POST", "/runs/nope/steer", `{"input":"x"}`},
		{"POST", "/runs", `{"input":"x","profile":"nope"}`}, {"POST", "/runs", `{"input":"x","session_id":"nope"}`},
		{"GET", "/interrupts/nope", ""}, {"POST", "/runs/nope/input", `{"decision":"approve"}`}, {"DELETE", "/sessions/nope", ""},
		{"GET", "/nope", ""}, {"GET", "/runs/", ""}, {"GET", "/", ""},
	} {
		r := a.do(c.method, c.path, c.body)
		if kind, message, _, _ := r.error(t); r.status != 404 || kind != "not_found" || message == "" || strings.Contains(message, "engine.") {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.status, r.body)
		}
	}
	if _, _, hint, _ := a.do("GET", "/runs/", "").error(t); !strings.Contains(hint, "slash") {
		t.Errorf("%q", hint)
	}
}

func TestMethods(t *testing.T) {
	a := start(t, nil)
	for path, allow := range map[string]string{"/runs": "GET, HEAD, POST", "/runs/x/events": "GET", "/sessions/x": "DELETE, GET, HEAD", "/healthz": "GET, HEAD", "/v1/chat/completions": "POST"} {
		r := a.do("PUT", path, "")
		if r.status != 405 || r.header.Get("Allow") != allow {
			t.Errorf("%s: %d %q", path, r.status, r.header.Get("Allow"))
		}
	}
}

func TestInternalErrorsStayInside(t *testing.T) {
	a := start(t, nil)
	a.e.notReady = errors.New("dial postgres://user:secret@db")
	r := a.do("GET", "/readyz", "", "X-Request-Id: abc.1")
	if r.status != 500 || strings.Contains(string(r.body), "secret") || !strings.Contains(string(r.body), "abc.1") {
		t.Errorf("%d %s", r.status, r.body)
	}
	a.e.panics = true
	for _, path := range []string{"/runs", "/v1/chat/completions"} {
		r = a.do("POST", path, map[string]string{"/runs": `{"input":"x"}`, "/v1/chat/completions": `{"model":"echo","messages":[{"role":"user","content":"x"}]}`}[path])
		if r.status != 500 || strings.Contains(string(r.body), "broken") {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	if r := a.do("GET", "/healthz", ""); r.status != http.StatusOK {
		t.Errorf("the server must survive a panic: %d", r.status)
	}
}
