package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/keys"
	"agentd/internal/logs"
	"agentd/internal/server"
	"agentd/internal/store/sqlite"
)

// ring gives keys in memory.
func ring(t *testing.T) *keys.Keys {
	t.Helper()
	s, err := sqlite.Open(sqlite.Memory, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return keys.New(keys.Config{Store: s})
}

// key makes a key and gives its id and the header that shows it.
func key(t *testing.T, k *keys.Keys, tenant string, scopes ...keys.Scope) (id, header string) {
	t.Helper()
	made, secret, err := k.Create(t.Context(), keys.Request{Tenant: tenant, Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return made.ID, "Authorization: Bearer " + secret
}

// A key is asked for from the moment when the first one exists.
func TestKeysAreRequiredAsSoonAsOneExists(t *testing.T) {
	k := ring(t)
	a := start(t, &server.Options{Keys: k})
	for _, path := range []string{"/runs", "/v1/models", "/keys"} {
		for _, headers := range [][]string{nil, {"Authorization: Bearer sk-anything"}} {
			if r := a.do("GET", path, "", headers...); r.status != 200 {
				t.Errorf("%s: %d %s", path, r.status, r.body)
			}
		}
	}
	id, good := key(t, k, "acme")
	secret := strings.TrimPrefix(good, "Authorization: Bearer ")
	for _, path := range []string{"/runs", "/v1/models", "/runs/r1/events", "/artifacts/x"} {
		for _, header := range []string{"", "Authorization: Bearer sk-anything", "Authorization: Bearer", "Authorization: Basic " + secret, "Authorization: " + secret, "X-Api-Key: " + secret} {
			var headers []string
			if header != "" {
				headers = []string{header}
			}
			r := a.do("GET", path, "", headers...)
			if r.status != 401 || r.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s with %q: %d", path, header, r.status)
			}
			if bytes.Contains(r.body, []byte(secret[30:])) {
				t.Errorf("the answer tells the key: %s", r.body)
			}
		}
	}
	if r := a.do("POST", "/v1/chat/completions", `{"model":"echo","messages":[{"role":"user","content":"x"}]}`); r.status != 401 ||
		!strings.Contains(string(r.body), `"type":"authentication_error"`) || !strings.Contains(string(r.body), `"code":"invalid_api_key"`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	if kind, _, hint, _ := a.do("GET", "/runs", "").error(t); kind != "unauthorized" || hint == "" {
		t.Errorf("%s %s", kind, hint)
	}
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json"} {
		if r := a.do("GET", path, ""); r.status != 200 {
			t.Errorf("%s: %d", path, r.status)
		}
	}
	// The scheme is in any case, as RFC 9110 says.
	if r := a.do("GET", "/runs", "", "Authorization: bearer  "+secret); r.status != 200 {
		t.Errorf("%d", r.status)
	}
	a.do("POST", "/runs", `{"input":"x"}`, good)
	if got := a.e.lastStart().Tenant; got != "acme" {
		t.Errorf("%q", got)
	}
	if _, err := k.Revoke(t.Context(), "", id); err != nil {
		t.Fatal(err)
	}
	if r := a.do("GET", "/runs", "", good); r.status != 401 || !strings.Contains(string(r.body), "was revoked at") {
		t.Errorf("%d %s", r.status, r.body)
	}
	// Without any valid key left the server is shut, not open.
	if r := a.do("GET", "/runs", ""); r.status != 401 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestScopes calls every operation of the API with keys of every single scope:
// those that the document lists open it, the others are answered with 403.
func TestScopes(t *testing.T) {
	k := ring(t)
	a := start(t, &server.Options{Keys: k, Schedules: planned{}, Memories: remembered{}, Skills: taught{}})
	headers := map[string]string{}
	for _, s := range keys.Scopes() {
		_, headers[string(s)] = key(t, k, keys.Operator, s)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			Security    []map[string][]string
			RequestBody any `json:"requestBody"`
		}
	}
	raw, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for path, ops := range doc.Paths {
		for method, op := range ops {
			if len(op.Security) == 0 {
				continue
			}
			seen++
			opens := map[string]bool{}
			for _, alternative := range op.Security {
				for _, s := range alternative["key"] {
					opens[s] = true
				}
			}
			body := ""
			if op.RequestBody != nil {
				body = "[]" // refused by every operation, behind the door
			}
			for scope, header := range headers {
				r := a.do(strings.ToUpper(method), strings.ReplaceAll(path, "{id}", "no"), body, header)
				if opens[scope] == (r.status == 403) || r.status == 401 || r.status >= 500 {
					t.Errorf("%s %s with scope %s: %d %s", method, path, scope, r.status, r.body)
				}
				if r.status == 403 && !strings.Contains(string(r.body), scope) {
					t.Errorf("%s", r.body)
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("%d operations", seen)
	}
	if r := a.do("GET", "/v1/models", "", headers["answer"]); r.status != 403 || !strings.Contains(string(r.body), `"type":"permission_error"`) {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestKeysOverHTTP(t *testing.T) {
	k := ring(t)
	var log bytes.Buffer
	// As the server's log is: secrets are taken out of it, and ids of keys are none.
	clean, err := logs.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}), logs.Options{Level: slog.LevelDebug})
	if err != nil {
		t.Fatal(err)
	}
	a := start(t, &server.Options{Keys: k, Log: slog.New(clean)})
	// The first key is made by whoever is there.
	first := a.do("POST", "/keys", `{"name":"operator","scopes":["admin"]}`)
	if first.status != 201 || first.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s", first.status, first.body)
	}
	operator := "Authorization: Bearer " + first.json(t)["key"].(string)
	acme := a.do("POST", "/keys", `{"tenant":"acme","scopes":["admin","read"],"expires_at":"2099-01-01T00:00:00Z"}`, operator).json(t)
	header := "Authorization: Bearer " + acme["key"].(string)
	if acme["tenant"] != "acme" || acme["expires_at"] != "2099-01-01T00:00:00Z" || fmt.Sprint(acme["scopes"]) != "[admin read]" {
		t.Errorf("%v", acme)
	}
	// A tenant's admin sees and makes keys of its own.
	mine := a.do("POST", "/keys", "", header).json(t)
	if mine["tenant"] != "acme" || fmt.Sprint(mine["scopes"]) != "[answer read run]" {
		t.Errorf("%v", mine)
	}
	for _, c := range []struct {
		method, path, body, header string
		status                     int
		has                        string
	}{
		{"POST", "/keys", `{"tenant":"globex"}`, header, 403, "other tenants"},
		{"GET", "/keys?tenant=default", "", header, 403, "other tenants"},
		{"GET", "/keys?tenant=acme", "", header, 200, mine["key_id"].(string)},
		{"DELETE", "/keys/" + first.json(t)["key_id"].(string), "", header, 404, "there is no key"},
		{"POST", "/keys", `{"scopes":["root"]}`, operator, 400, `"field":"scopes"`},
		{"POST", "/keys", `{"expires_at":"tomorrow"}`, operator, 400, `"field":"expires_at"`},
		{"POST", "/keys", `{"expires_at":"2001-01-01T00:00:00Z"}`, operator, 400, `"field":"expires_at"`},
		{"POST", "/keys", `{"tenant":"a b"}`, operator, 400, `"field":"tenant"`},
		{"POST", "/keys", `{"user":"x"}`, operator, 400, "user"},
		{"GET", "/keys?cursor=!", "", operator, 400, `"field":"cursor"`},
		{"GET", "/keys?limit=2", "", operator, 200, `"cursor"`},
		{"GET", "/keys?tenant=nobody", "", operator, 200, `"keys":[]`},
		// By mistake somebody gives the secret where an id belongs.
		{"DELETE", "/keys/" + mine["key"].(string), "", operator, 404, "not by its secret"},
		{"DELETE", "/keys/" + mine["key_id"].(string), "", operator, 200, `"status":"revoked"`},
	} {
		if r := a.do(c.method, c.path, c.body, c.header); r.status != c.status || !strings.Contains(string(r.body), c.has) {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, r.status, r.body)
		}
	}
	if r := a.do("POST", "/keys", "", operator, "Idempotency-Key: x"); r.status != 400 {
		t.Errorf("%d %s", r.status, r.body)
	}
	var all struct{ Keys []map[string]any }
	if err := json.Unmarshal(a.do("GET", "/keys", "", header).body, &all); err != nil || len(all.Keys) != 2 {
		t.Errorf("%+v, %v", all, err)
	}
	if r := a.do("GET", "/keys", "", operator); len(r.json(t)["keys"].([]any)) != 3 || strings.Contains(string(r.body), "agentd_") {
		t.Errorf("%s", r.body)
	}
	a.ts.Close()
	text := log.String()
	for _, made := range []string{first.json(t)["key"].(string), acme["key"].(string), mine["key"].(string)} {
		if strings.Contains(text, made[26:]) {
			t.Errorf("the log has the secret of a key")
		}
	}
	if !strings.Contains(text, `"key_id":"`+acme["key_id"].(string)+`"`) || !strings.Contains(text, `"tenant":"acme"`) {
		t.Errorf("the log does not say who it was:\n%s", text)
	}
}

func TestNoKeys(t *testing.T) {
	a := start(t, nil)
	for _, c := range [][2]string{{"GET", "/keys"}, {"POST", "/keys"}, {"DELETE", "/keys/x"}} {
		if r := a.do(c[0], c[1], ""); r.status != 501 && r.status != 400 {
			t.Errorf("%s %s: %d %s", c[0], c[1], r.status, r.body)
		}
	}
}

// What a key has open ends when it is revoked: native streams say why, those of
// chat clients end with the protocol's error and their runs with them.
func TestRevokedKeysLoseTheirStreams(t *testing.T) {
	k := ring(t)
	a := start(t, &server.Options{Keys: k})
	id, header := key(t, k, "acme")
	a.do("POST", "/runs", `{"profile":"manual","input":"x"}`, header)
	stream := a.send("GET", "/runs/r1/events", "", header)
	defer stream.Body.Close()
	r := bufio.NewReader(stream.Body)
	for range 2 { // the retry hint and run_started
		if _, err := readFrame(r); err != nil {
			t.Fatal(err)
		}
	}
	type answer struct {
		status int
		body   string
	}
	chat := func(stream bool) <-chan answer {
		out := make(chan answer, 1)
		go func() {
			resp := a.send("POST", "/v1/chat/completions", fmt.Sprintf(`{"model":"manual","stream":%t,"messages":[{"role":"user","content":"x"}]}`, stream), header)
			defer resp.Body.Close()
			var b bytes.Buffer
			_, _ = b.ReadFrom(resp.Body)
			out <- answer{resp.StatusCode, b.String()}
		}()
		return out
	}
	streamed := chat(true)
	a.e.wait("r2").emit(event.TextDelta, &event.Delta{Text: "begun"})
	whole := chat(false)
	a.e.wait("r3")
	if _, err := k.Revoke(t.Context(), "", id); err != nil {
		t.Fatal(err)
	}
	if f, err := readFrame(r); err != nil || !strings.Contains(f.comment, "was revoked at") || !strings.Contains(f.comment, "resume with Last-Event-ID") {
		t.Errorf("%+v %v", f, err)
	}
	if got := <-streamed; got.status == 200 && !strings.Contains(got.body, `{"error":{"message":"the API key was revoked at`) || got.status != 200 && got.status != 401 {
		t.Errorf("%+v", got)
	}
	if got := <-whole; got.status != 401 || !strings.Contains(got.body, "was revoked at") || !strings.Contains(got.body, "authentication_error") {
		t.Errorf("%+v", got)
	}
	for range 2 {
		if id, _, _ := strings.Cut(<-a.e.cancelled, ":"); id != "r2" && id != "r3" {
			t.Errorf("%s was cancelled", id)
		}
	}
	if got := a.e.wait("r1").get().Status; got != "running" {
		t.Errorf("the native run is %s", got)
	}
}

// Who answered an interrupt can be told apart by key.
func TestAnswersNameTheirKey(t *testing.T) {
	k := ring(t)
	a := start(t, &server.Options{Keys: k})
	id, header := key(t, k, keys.Operator, keys.Answer)
	a.do("POST", "/interrupts/i1", `{"decision":"approve"}`, header)
	if got := a.e.answers; len(got) != 1 || got[0].By != "key "+id {
		t.Errorf("%+v", got)
	}
}

func TestListen(t *testing.T) {
	none, some := ring(t), ring(t)
	key(t, some, "acme")
	for _, c := range []struct {
		addr string
		o    server.Options
		ok   bool
	}{
		{"127.0.0.1:0", server.Options{}, true},
		{"localhost:0", server.Options{}, true},
		{"127.0.0.1:0", server.Options{Keys: some}, true},
		{"0.0.0.0:0", server.Options{}, false},
		{":0", server.Options{}, false},
		{"[::]:0", server.Options{}, false},
		{"192.0.2.1:0", server.Options{}, false},
		{"example.com:0", server.Options{}, false},
		{"127.0.0.1", server.Options{}, false},
		{"0.0.0.0:0", server.Options{Keys: none}, false},
		{"0.0.0.0:0", server.Options{Keys: some}, true},
		{":0", server.Options{Keys: some}, true},
		{"0.0.0.0:0", server.Options{AllowKeyless: true}, true},
		{"127.0.0.1:0", server.Options{CertFile: "no.pem", KeyFile: "no.pem"}, false},
		{"127.0.0.1:0", server.Options{CertFile: "no.pem"}, false},
	} {
		s := server.New(newFake(), &c.o)
		err := s.Listen(c.addr)
		if (err == nil) != c.ok {
			t.Errorf("%s %+v: %v", c.addr, c.o, err)
		}
		if err != nil && fault.HintOf(err) == "" {
			t.Errorf("%s: no hint: %v", c.addr, err)
		}
		if err == nil {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.Serve(ctx, c.addr); err != nil {
				t.Errorf("%s: %v", c.addr, err)
			}
		}
	}
}

// Beyond loopback any name is good where keys are needed, and addresses alone
// where none is: a name can be pointed at this machine by a web page's owner.
func TestHostsBeyondLoopback(t *testing.T) {
	withKeys := ring(t)
	_, header := key(t, withKeys, "acme")
	for _, c := range []struct {
		name   string
		o      server.Options
		host   string
		status int
	}{
		{"keyless by address", server.Options{AllowKeyless: true}, "192.0.2.1:7070", 200},
		{"keyless by IPv6 address", server.Options{AllowKeyless: true}, "[2001:db8::1]:7070", 200},
		{"keyless by name", server.Options{AllowKeyless: true}, "evil.example.com", 403},
		{"keyless by its name", server.Options{AllowKeyless: true, Hosts: []string{"agents.internal"}}, "agents.internal:7070", 200},
		{"keyless by address beside its name", server.Options{AllowKeyless: true, Hosts: []string{"agents.internal"}}, "192.0.2.1", 403},
		{"keys by name", server.Options{Keys: withKeys}, "agents.example.com", 200},
		{"keys by another than its name", server.Options{Keys: withKeys, Hosts: []string{"agents.internal"}}, "agents.example.com", 403},
		{"localhost", server.Options{AllowKeyless: true}, "localhost", 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := server.New(newFake(), &c.o)
			if err := s.Listen("0.0.0.0:0"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- s.Serve(ctx, "") }()
			defer func() {
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			}()
			port := regexp.MustCompile(`\d+$`).FindString(s.Addr())
			req, err := http.NewRequestWithContext(ctx, "GET", "http://127.0.0.1:"+port+"/profiles", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = c.host
			req.Header.Set("Authorization", strings.TrimPrefix(header, "Authorization: "))
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != c.status {
				t.Errorf("%d", resp.StatusCode)
			}
		})
	}
}
