package agentd

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentd/internal/engine"
	"agentd/internal/keys"
	"agentd/internal/profile"
	"agentd/internal/server"
	"agentd/internal/timetable"
)

// house is one server with several tenants who get the same ids.
type house struct {
	t    *testing.T
	url  string
	keys map[string]string
	// turn is whose ids are given out, given how many each has got.
	mu    sync.Mutex
	turn  string
	given map[string]int
}

// of says whose turn it is.
func (h *house) of(tenant string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.turn = tenant
}

func newHouse(t *testing.T, tenants ...string) *house {
	t.Helper()
	dir, work := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"agentd.yaml":       "limits: {max_result_bytes: 1024}\n",
		"agents/ask.yaml":   "profile_name: ask\nprimary_model: {provider: script, model: m, script: ask.yaml}\ntools: {builtin: [workspace, ask_user_question]}\napproval_mode: never\n",
		"agents/boss.yaml":  "profile_name: boss\nprimary_model: {provider: script, model: m, script: boss.yaml}\nsubagents: [ask]\napproval_mode: never\n",
		"agents/stuck.yaml": "profile_name: stuck\nprimary_model: {provider: script, model: m, script: stuck.yaml}\napproval_mode: never\n",
		"agents/echo.yaml":  "profile_name: echo\nprimary_model: {provider: script, model: m, script: echo.yaml}\napproval_mode: never\n",
		"ask.yaml": "turns:\n- tool_calls:\n  - {name: file_read, arguments: {file_path: large.txt}}\n- tool_calls:\n  - {name: ask_user_question, arguments: {question: 'Which colour?'}}\n" +
			"- text: 'Then it is {{.Last.Text}}.'\n",
		"boss.yaml":  "turns:\n- tool_calls:\n  - {name: create_subagent, arguments: {subagent_type: ask, prompt: 'Find out.'}}\n- text: 'They said: {{.Last.Text}}'\n",
		"stuck.yaml": "turns:\n- text: one two three\n  fault: {kind: stall, after: 1}\n  latency: {size: 4}\n",
		"echo.yaml":  "turns:\n- text: 'You said {{.User}}'\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	write(t, filepath.Join(work, "large.txt"), strings.Repeat("a line of a large file\n", 200))
	cfg := &Config{Workspace: work}
	conf, problems := profile.Load(dir, &profile.Options{Builtins: builtinNames(nil)})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	agents, err := newAgents(cfg, conf)
	if err != nil {
		t.Fatal(err)
	}
	st, err := openHouse(t)
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, keys: map[string]string{}, given: map[string]int{}}
	e, err := engine.New(engine.Config{Store: st, Agents: agents, MaxResultBytes: 1024, NewID: func() string {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.given[h.turn]++
		return fmt.Sprintf("%026d", h.given[h.turn])
	}})
	if err != nil {
		t.Fatal(err)
	}
	ring := keys.New(keys.Config{Store: st})
	ts := httptest.NewServer(server.New(e, &server.Options{Keys: ring, Memories: memories{newLearning(cfg, conf, nil, ".", st, os.LookupEnv)}, Schedules: timetable.New(timetable.Config{Store: st, Runs: e})}).Handler())
	h.url = ts.URL
	t.Cleanup(func() {
		ts.CloseClientConnections()
		ts.Close()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		_, _ = agents.close(), st.Close()
	})
	for _, tenant := range tenants {
		_, secret, err := ring.Create(t.Context(), keys.Request{Tenant: tenant, Scopes: keys.Scopes()})
		if err != nil {
			t.Fatal(err)
		}
		h.keys[tenant] = secret
	}
	return h
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (h *house) send(tenant, method, path, body, idempotency string) *http.Response {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.keys[tenant])
	if idempotency != "" {
		req.Header.Set("Idempotency-Key", idempotency)
	}
	h.of(tenant)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp
}

func (h *house) do(tenant, method, path, body, idempotency string) (int, string) {
	h.t.Helper()
	resp := h.send(tenant, method, path, body, idempotency)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

var (
	stampRE = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	keyRE   = regexp.MustCompile(`key:[a-z0-9]{16}`)
	spanRE  = regexp.MustCompile(`,?"(duration_ms|wait_seconds|run_time_seconds|last_seq|seq|created|timestamp)":[0-9.]+`)
	// The scripted model makes ids of what it is asked.
	hashRE   = regexp.MustCompile(`(call|resp)_[0-9a-f]{16}`)
	cursorRE = regexp.MustCompile(`"cursor":"[^"]+"`)
)

// both sends the same request as acme and as apex (names of one length, as models
// count what they are asked), in which TENANT stands for
// the name. Each must get what it would get alone: the same answer, but for its
// own name, and without that of the other.
func (h *house) both(status int, method, path, body, idempotency string) string {
	h.t.Helper()
	var answers []string
	for i, tenant := range []string{"acme", "apex"} {
		got, text := h.do(tenant, method, path, strings.ReplaceAll(body, "TENANT", tenant), idempotency)
		if got != status {
			h.t.Fatalf("%s: %s %s: %d %s", tenant, method, path, got, text)
		}
		if other := []string{"apex", "acme"}[i]; strings.Contains(text, other) {
			h.t.Errorf("%s: %s %s tells of %s: %s", tenant, method, path, other, text)
		}
		text = keyRE.ReplaceAllString(stampRE.ReplaceAllString(strings.ReplaceAll(text, tenant, "TENANT"), "NOW"), "key:KEY")
		text = hashRE.ReplaceAllString(text, "$1")
		answers = append(answers, cursorRE.ReplaceAllString(spanRE.ReplaceAllString(text, ""), `"cursor":"C"`))
	}
	if answers[0] != answers[1] {
		h.t.Errorf("%s %s: acme got\n%s\napex got\n%s", method, path, answers[0], answers[1])
	}
	return answers[0]
}

// until reads a run's events as a tenant until one of a type, and gives all.
func (h *house) until(tenant, run, event string) string {
	h.t.Helper()
	resp := h.send(tenant, "GET", "/runs/"+run+"/events", "", "")
	defer resp.Body.Close()
	var all strings.Builder
	for sc := bufio.NewScanner(resp.Body); sc.Scan(); {
		all.WriteString(sc.Text() + "\n")
		if sc.Text() == "event: "+event {
			return all.String()
		}
	}
	h.t.Fatalf("%s: run %s never told %s: %d\n%s", tenant, run, event, resp.StatusCode, all.String())
	return ""
}

func member(t *testing.T, text, name string) string {
	t.Helper()
	m := regexp.MustCompile(`"` + name + `":"([^"]+)"`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in %s", name, text)
	}
	return m[1]
}

// start starts a run of a profile for both and waits until it has told something,
// one after the other, as what runs by itself takes ids too.
func (h *house) start(profile, session, key, event string) string {
	h.t.Helper()
	id := ""
	for _, tenant := range []string{"acme", "apex"} {
		body := fmt.Sprintf(`{"profile":%q,"input":"the secret of %s","session_id":%q,"metadata":{"of":%q}}`, profile, tenant, session, tenant)
		if session == "" {
			body = strings.Replace(body, `"session_id":"",`, "", 1)
		}
		status, text := h.do(tenant, "POST", "/runs", body, key)
		if status != 201 || id != "" && member(h.t, text, "run_id") != id {
			h.t.Fatalf("%s: %d %s, want the id %s", tenant, status, text, id)
		}
		id = member(h.t, text, "run_id")
		h.until(tenant, id, event)
	}
	return id
}

// TestTwoTenantsWithTheSameIDs runs the API as two tenants at the same time, whose
// sessions, runs, interrupts, keys and artifacts have the same ids.
func TestTwoTenantsWithTheSameIDs(t *testing.T) {
	h := newHouse(t, "acme", "apex")
	session := member(t, h.both(201, "POST", "/sessions", `{"title":"secret of TENANT","metadata":{"of":"TENANT"}}`, "s"), "session_id")
	// The same idempotency key is two, each of which is the tenant's.
	if again := member(t, h.both(201, "POST", "/sessions", `{"title":"secret of TENANT","metadata":{"of":"TENANT"}}`, "s"), "session_id"); again != session {
		t.Errorf("%s, then %s", session, again)
	}
	h.both(409, "POST", "/sessions", `{"title":"another"}`, "s")
	run := h.start("ask", session, "r", "checkpoint_required")
	if again := h.start("ask", session, "r", "checkpoint_required"); again != run {
		t.Errorf("%s, then %s", run, again)
	}
	boss := h.start("boss", "", "", "checkpoint_required")
	stuck := h.start("stuck", "", "", "text_delta")
	interrupt := member(t, h.both(200, "GET", "/interrupts?run_id="+run, "", ""), "interrupt_id")
	artifact := ""
	for _, path := range []string{"/runs", "/runs?limit=1", "/runs?status=paused_checkpoint", "/runs?session_id=" + session, "/runs/" + run, "/runs/" + boss,
		"/runs/" + run + "/events?stream=false", "/runs/" + boss + "/events?stream=false", "/interrupts", "/interrupts?status=open&limit=1", "/interrupts/" + interrupt,
		"/sessions", "/sessions?limit=1", "/sessions/" + session, "/sessions/" + session + "/entries", "/sessions/" + session + "/tree", "/sessions/" + session + "/artifacts", "/sessions/" + session + "/cache", "/usage", "/usage?session_id=" + session, "/budgets", "/profiles", "/v1/models", "/v1/models/ask"} {
		text := h.both(200, "GET", path, "", "")
		if strings.Contains(path, run+"/events") {
			artifact = member(t, text, "artifact_id")
		}
	}
	h.both(200, "GET", "/artifacts/"+artifact, "", "")

	// What one does changes nothing for the other.
	untouched := func(what string, paths ...string) func() {
		t.Helper()
		var before []string
		for _, p := range paths {
			_, text := h.do("apex", "GET", p, "", "")
			before = append(before, spanRE.ReplaceAllString(text, ""))
		}
		return func() {
			t.Helper()
			for i, p := range paths {
				if _, text := h.do("apex", "GET", p, "", ""); spanRE.ReplaceAllString(text, "") != before[i] {
					t.Errorf("after acme %s, apex's %s was\n%s\nand is\n%s", what, p, before[i], text)
				}
			}
		}
	}
	everything := []string{"/runs", "/runs/" + run, "/runs/" + boss, "/runs/" + stuck, "/runs/" + run + "/events?stream=false", "/interrupts", "/sessions",
		"/sessions/" + session, "/sessions/" + session + "/entries", "/sessions/" + session + "/artifacts", "/usage", "/artifacts/" + artifact}
	for _, act := range []struct{ what, method, path, body, run, until string }{
		{"answered", "POST", "/interrupts/" + interrupt, `{"answer":"red for acme"}`, run, "run_completed"},
		{"answered its boss", "POST", "/runs/" + boss + "/input", `{"answer":"blue for acme"}`, boss, "run_completed"},
		{"steered", "POST", "/runs/" + stuck + "/steer", `{"input":"more for acme"}`, "", ""},
		{"followed up", "POST", "/runs/" + stuck + "/follow_up", `{"input":"more for acme"}`, "", ""},
		{"cancelled", "POST", "/runs/" + stuck + "/cancel", `{"reason":"acme is done"}`, stuck, "run_cancelled"},
		{"deleted", "DELETE", "/sessions/" + session, "", "", ""},
	} {
		check := untouched(act.what, everything...)
		if status, text := h.do("acme", act.method, act.path, act.body, ""); status/100 != 2 {
			t.Fatalf("%s: %d %s", act.what, status, text)
		}
		if act.run != "" {
			h.until("acme", act.run, act.until)
		}
		check()
	}
	if status, text := h.do("acme", "GET", "/runs/"+run, "", ""); status != 404 {
		t.Errorf("%d %s", status, text)
	}
	// The other goes on as if nothing had been.
	if status, text := h.do("apex", "POST", "/interrupts/"+interrupt, `{"answer":"green"}`, ""); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	h.until("apex", run, "run_completed")
	if _, text := h.do("apex", "GET", "/runs/"+run, "", ""); !strings.Contains(text, "Then it is green.") || strings.Contains(text, "acme") {
		t.Errorf("%s", text)
	}
}

// The chat face is under the same walls.
func TestTwoTenantsOverTheChatFace(t *testing.T) {
	h := newHouse(t, "acme", "apex")
	ask := `{"model":"echo","messages":[{"role":"user","content":"I am TENANT"}]}`
	first := h.both(200, "POST", "/v1/chat/completions", ask, "k")
	if !strings.Contains(first, "You said I am TENANT") {
		t.Errorf("%s", first)
	}
	if again := h.both(200, "POST", "/v1/chat/completions", ask, "k"); member(t, again, "id") != member(t, first, "id") {
		t.Errorf("%s\n%s", first, again)
	}
	stream := h.both(200, "POST", "/v1/chat/completions", strings.Replace(ask, "{", `{"stream":true,`, 1), "")
	if !strings.Contains(stream, "[DONE]") {
		t.Errorf("%s", stream)
	}
	for _, path := range []string{"/sessions?ephemeral=true", "/runs", "/usage"} {
		h.both(200, "GET", path, "", "")
	}
	// A model's name is not a way to another tenant's key either.
	if status, text := h.do("nobody", "POST", "/v1/chat/completions", ask, "k"); status != 401 {
		t.Errorf("%d %s", status, text)
	}
}

// TestWhatOthersHaveDoesNotExist calls every operation that the document lists with
// the ids of another tenant: the answer is that for an id that nobody has.
func TestWhatOthersHaveDoesNotExist(t *testing.T) {
	h := newHouse(t, "acme", "apex")
	_, text := h.do("acme", "POST", "/runs", `{"profile":"ask","input":"the secret of acme"}`, "key")
	run, session := member(t, text, "run_id"), member(t, text, "session_id")
	artifact := regexp.MustCompile(`"artifact_id":"(\w+)"`).FindStringSubmatch(h.until("acme", run, "checkpoint_required"))[1]
	_, text = h.do("acme", "GET", "/interrupts", "", "")
	ids := map[string]string{"runs": run, "sessions": session, "interrupts": member(t, text, "interrupt_id"), "artifacts": artifact, "keys": "", "models": "", "schedules": ""}
	_, text = h.do("acme", "POST", "/schedules", `{"name":"nightly","cron":"0 3 * * *","profile":"ask","input":"the secret of acme"}`, "")
	ids["schedules"] = member(t, text, "schedule_id")
	_, text = h.do("acme", "POST", "/memory", `{"text":"the secret of acme"}`, "")
	ids["memory"] = member(t, text, "memory_id")
	_, text = h.do("acme", "GET", "/runs/"+run, "", "")
	before := text
	bodies := map[string]string{"steer": `{"input":"x"}`, "follow_up": `{"input":"x"}`, "input": `{"answer":"x"}`, "interrupts": `{"answer":"x"}`, "apply": `{}`, "discard": `{}`, "trigger": `{}`, "compact": `{}`, "schedules": `{"paused":true}`,
		"entries": `{"kind":"mode_change","data":{"mode":"plan"}}`, "navigate": `{"entry_id":"root"}`, "fork": `{}`, "memory": `{"text":"x"}`}

	raw, err := os.ReadFile("internal/server/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for path, ops := range doc.Paths {
		parts := strings.Split(path, "/")
		if !slices.Contains(parts, "{id}") {
			continue
		}
		kind := parts[slices.Index(parts, "{id}")-1]
		id, known := ids[kind]
		if !known {
			t.Errorf("%s: the test knows no ids of %s: add one", path, kind)
		}
		if id == "" {
			continue
		}
		for method := range ops {
			seen++
			body := ""
			if method == "post" || method == "patch" {
				if body = bodies[parts[len(parts)-1]]; body == "" {
					body = bodies[kind]
				}
			}
			status, others := h.do("apex", strings.ToUpper(method), strings.Replace(path, "{id}", id, 1), body, "")
			nobody := strings.Repeat("0", len(id))
			status2, none := h.do("apex", strings.ToUpper(method), strings.Replace(path, "{id}", nobody, 1), body, "")
			if status != 404 || status2 != 404 || strings.ReplaceAll(others, id, "ID") != strings.ReplaceAll(none, nobody, "ID") {
				t.Errorf("%s %s: %d %s and for an id that nobody has %d %s", method, path, status, others, status2, none)
			}
		}
	}
	if seen < 11 {
		t.Errorf("%d operations", seen)
	}
	if status, text := h.do("apex", "POST", "/runs", fmt.Sprintf(`{"profile":"ask","input":"x","session_id":%q}`, session), ""); status != 404 {
		t.Errorf("a run in another's session: %d %s", status, text)
	}
	// Filters and cursors of another tenant find nothing of it.
	cursors := []string{""}
	for _, c := range []string{"1", "2", "3", "zz"} {
		cursors = append(cursors, "&cursor="+c)
	}
	for _, list := range []string{"/runs?limit=1", "/runs?session_id=" + session, "/interrupts?limit=1", "/interrupts?run_id=" + run, "/sessions?limit=1", "/sessions?ephemeral=true", "/schedules?limit=1", "/memory?user=",
		"/usage?session_id=" + session, "/usage?from=0"} {
		for _, c := range cursors {
			if c != "" && strings.HasPrefix(list, "/usage") {
				continue
			}
			status, text := h.do("apex", "GET", list+c, "", "")
			if status != 200 && !(status == 400 && c != "") || strings.Contains(text, run) || strings.Contains(text, session) || strings.Contains(text, "acme") ||
				strings.HasPrefix(list, "/usage") && !strings.Contains(text, `"usage":[]`) {
				t.Errorf("%s: %d %s", list+c, status, text)
			}
		}
	}
	// Nothing of that has touched it.
	if _, text := h.do("acme", "GET", "/runs/"+run, "", ""); text != before {
		t.Errorf("it was\n%s\nand is\n%s", before, text)
	}
	// The key of a request is looked up in its tenant alone.
	_, text = h.do("apex", "POST", "/runs", `{"profile":"echo","input":"mine"}`, "key")
	h.until("apex", member(t, text, "run_id"), "run_completed")
	if status, text := h.do("acme", "POST", "/runs", `{"profile":"ask","input":"the secret of acme"}`, "key"); status != 201 || member(t, text, "run_id") != run {
		t.Errorf("acme's key gives %d %s", status, text)
	}
}
