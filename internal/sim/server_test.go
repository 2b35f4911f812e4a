package sim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"agentd/fault"
	"agentd/model/script"
)

func TestServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	urls, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- Serve(ctx, Options{Addr: "127.0.0.1:0"}, func(u string) { urls <- u }) }()
	url := <-urls
	res, err := http.Get(url + "/healthz")
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("healthz: %v %v", res, err)
	}
	res.Body.Close()
	// A request that stalls for ever does not keep the server from ending.
	req, _ := http.NewRequestWithContext(ctx, "POST", url+"/v1/chat/completions", strings.NewReader(streamed(oaiBody)))
	req.Header.Set("X-Sim-Fault", "stall")
	stalled, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer stalled.Body.Close()
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("Serve: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Serve did not end")
	}
	for _, addr := range []string{"0.0.0.0:0", ":8080", "example.com:80", "127.0.0.1", "192.168.1.1:80"} {
		if err := Serve(t.Context(), Options{Addr: addr}, nil); fault.KindOf(err) != fault.Invalid || fault.HintOf(err) == "" {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestScriptsByModel(t *testing.T) {
	s := New(Options{Scripts: []*script.Script{
		mustScript(t, "name: any\nturns: [{text: from any}]"),
		mustScript(t, "models: [a, b]\nturns: [{text: from ab}]"),
		mustScript(t, "models: [b, c]\nturns: [{text: from bc}]"),
	}})
	for model, want := range map[string]string{"a": "from ab", "b": "from ab", "c": "from bc", "zzz": "from any"} {
		w := post(s, "/v1/chat/completions", strings.Replace(oaiBody, `"m"`, `"`+model+`"`, 1))
		if got := gjson.Get(w.Body.String(), "choices.0.message.content").String(); got != want {
			t.Errorf("%s: %q, want %q", model, got, want)
		}
	}
	if got := strings.Join(s.models(), " "); got != "any a b c" {
		t.Errorf("models %s", got)
	}
	only := New(Options{Scripts: []*script.Script{mustScript(t, "models: [a]\nturns: [{text: x}]")}})
	if w := post(only, "/v1/messages", antBody); w.Code != 404 || gjson.Get(w.Body.String(), "error.type").String() != "not_found_error" {
		t.Errorf("unknown model: %d %s", w.Code, w.Body)
	}
	if w := post(only, "/v1/messages/count_tokens", antBody); w.Code != 404 {
		t.Errorf("count of an unknown model: %d %s", w.Code, w.Body)
	}
}

func TestRecording(t *testing.T) {
	s := New(Options{Record: 2})
	list := func() gjson.Result {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/requests", nil))
		if !gjson.Valid(w.Body.String()) {
			t.Fatalf("not JSON: %s", w.Body)
		}
		return gjson.Parse(w.Body.String())
	}
	post(s, "/v1/chat/completions", oaiBody, "Authorization", "Bearer secret")
	post(s, "/v1/messages", antBody, "X-Api-Key", "secret")
	post(s, "/v1/messages", "not \"json")
	got := list()
	if got.Get("dropped").Int() != 1 || got.Get("requests.#").Int() != 2 || got.Get("requests.0.n").Int() != 2 ||
		got.Get("requests.0.body").Raw != antBody || got.Get("requests.1.body").String() != `not "json` || got.Get("requests.1.path").String() != "/v1/messages" {
		t.Errorf("recorded %s", got)
	}
	if strings.Contains(got.Raw, "secret") {
		t.Error("a key was recorded")
	}
	if w := post(s, "/reset", ""); w.Code != 200 || list().Get("requests.#").Int() != 0 {
		t.Errorf("reset: %d %s", w.Code, list())
	}
	r := &recorder{max: 100}
	for range 5 {
		r.add("POST", "/", strings.Repeat("x", maxRecorded/2))
	}
	if len(r.kept) != 2 || r.size > maxRecorded || r.dropped != 3 {
		t.Errorf("kept %d requests of %d bytes, dropped %d", len(r.kept), r.size, r.dropped)
	}
	off := httptest.NewRecorder()
	New(Options{}).ServeHTTP(off, httptest.NewRequest("GET", "/requests", nil))
	if !strings.Contains(off.Body.String(), "recording is off") {
		t.Errorf("off: %s", off.Body)
	}
}

func TestBodyLimit(t *testing.T) {
	var log bytes.Buffer
	s := New(Options{MaxBody: 100, Log: slog.New(slog.NewTextHandler(&log, nil))})
	big := strings.Replace(oaiBody, `"x"`, `"`+strings.Repeat("x", 200)+`"`, 1)
	if w := post(s, "/v1/chat/completions", big); w.Code != 413 || gjson.Get(w.Body.String(), "error.type").String() != "invalid_request_error" {
		t.Errorf("OpenAI: %d %s", w.Code, w.Body)
	}
	if w := post(s, "/v1/messages", big); w.Code != 413 || gjson.Get(w.Body.String(), "error.type").String() != "request_too_large" {
		t.Errorf("Anthropic: %d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "status=413") {
		t.Errorf("log %s", &log)
	}
}

// The same request gets the same bytes, on any number of connections at once.
func TestDeterministic(t *testing.T) {
	srv := httptest.NewServer(New(Options{CacheRules: CacheOff, Scripts: []*script.Script{mustScript(t,
		"latency: {size: 1}\nturns: [{thinking: hm, text: 'some text of {{.User}}', tool_calls: [{name: a, arguments: {k: v}}]}]")}}))
	defer srv.Close()
	for _, req := range [][2]string{{"/v1/chat/completions", oaiBody}, {"/v1/chat/completions", streamed(oaiBody)}, {"/v1/messages", antBody}, {"/v1/messages", streamed(antBody)}} {
		_, want, err := get(t, srv.URL, req[0], req[1])
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 5 {
					res, err := http.DefaultClient.Do(newRequest(srv.URL+req[0], req[1]))
					if err != nil {
						t.Error(err)
						return
					}
					got, err := io.ReadAll(res.Body)
					res.Body.Close()
					if err != nil || string(got) != want {
						t.Errorf("%s: another answer: %v", req[0], err)
					}
				}
			})
		}
		wg.Wait()
	}
}

func newRequest(url, body string) *http.Request {
	r, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Anthropic-Version", "2023-06-01")
	return r
}

// steps is a request in the middle of a loop of tool calls.
func steps(n int) string {
	var b strings.Builder
	b.WriteString(`{"model":"m","stream":true,"tools":[{"type":"function","function":{"name":"echo","parameters":{"type":"object"}}}],"messages":[{"role":"user","content":"go"}`)
	for i := range n {
		fmt.Fprintf(&b, `,{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"echo","arguments":"{\"text\":\"hello\"}"}}]},{"role":"tool","tool_call_id":"call_%d","content":"hello"}`, i, i)
	}
	return b.String() + "]}"
}

type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Flush()                      {}

func BenchmarkStep(b *testing.B) {
	sc, err := script.Parse("b.yaml", []byte("turns:\n- tool_calls: [{name: echo, arguments: {text: hello}}]\n  repeat: 20\n- text: done\n"))
	if err != nil {
		b.Fatal(err)
	}
	for _, rules := range []CacheRules{CacheOff, CacheOn} {
		b.Run("cache="+string(rules), func(b *testing.B) {
			s := New(Options{Scripts: []*script.Script{sc}, CacheRules: rules})
			body := steps(10)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				s.ServeHTTP(&discard{http.Header{}}, newRequest("/v1/chat/completions", body))
			}
		})
	}
}

func BenchmarkChunk(b *testing.B) {
	sc, err := script.Parse("b.yaml", []byte("latency: {size: 4}\nturns: [{text: '"+strings.Repeat("word", 2000)+"'}]\n"))
	if err != nil {
		b.Fatal(err)
	}
	s := New(Options{Scripts: []*script.Script{sc}})
	for b.Loop() {
		s.ServeHTTP(&discard{http.Header{}}, newRequest("/v1/chat/completions", streamed(oaiBody)))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2000, "ns/chunk")
}
