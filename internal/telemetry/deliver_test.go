package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"agentd/internal/engine"
	"agentd/internal/redact"
	"agentd/internal/run"
)

// stuck is a collector that takes requests and answers none until it is told to.
func stuck(t *testing.T) (url string, arrived <-chan struct{}, release func()) {
	t.Helper()
	in, hold := make(chan struct{}, 64), make(chan struct{})
	ts := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		in <- struct{}{}
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(ts.Close)
	return ts.URL, in, func() { close(hold) }
}

// A collector that hangs costs no run anything: what waits is bounded in number and in
// bytes, what does not fit is counted, and the end does not wait for it longer than it
// may, nor leaves anything behind.
func TestCollectorThatHangs(t *testing.T) {
	url, arrived, release := stuck(t)
	defer release()
	before := runtime.NumGoroutine()
	client := &http.Client{Transport: &http.Transport{}}
	tel, err := New(&Options{Endpoint: url, Profile: traced, Metrics: true, Client: client})
	if err != nil {
		t.Fatal(err)
	}
	var told bytes.Buffer
	tel.Tell(slog.New(slog.NewTextHandler(&told, nil)))
	o := tel.Observer()
	at := time.Unix(1_800_000_000, 0)
	call := func(n int) {
		o.Tool(&engine.ToolSeen{RunID: id(fmt.Sprint("run_", n), ""), CallID: "c", Name: "t", Known: true, Outcome: engine.ToolOK, Start: at, End: at})
	}
	for n := range batchItems {
		call(n)
	}
	<-arrived // the first batch hangs
	const more = 3 * maxWaiting
	for n := range more {
		call(batchItems + n)
	}
	log := slog.New(tel.LogHandler())
	big := strings.Repeat("x", 1<<20)
	for range 64 {
		log.Info(big)
	}
	tel.observer.close()
	tel.observer = nil
	if got := tel.sink.lost("traces").Load(); got < more-maxWaiting-batchItems || got > more {
		t.Errorf("%d spans are counted as lost", got)
	}
	tel.logs.mu.Lock()
	if tel.logs.bytes > maxWaitingBytes {
		t.Errorf("%d bytes wait", tel.logs.bytes)
	}
	tel.logs.mu.Unlock()
	if tel.sink.lost("logs").Load() == 0 {
		t.Error("no log record is counted as lost")
	}
	if got := strings.Count(told.String(), "could not be delivered"); got != 1 {
		t.Errorf("told %d times: %s", got, told.String())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := tel.Close(ctx); err != nil {
		t.Errorf("that the collector hangs is an error of the end: %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the end took %v", took)
	}
	if got, want := tel.sink.lost("traces").Load(), int64(batchItems+more); got != want {
		t.Errorf("%d of %d spans are counted as lost at the end", got, want)
	}
	client.CloseIdleConnections()
	for range 2000 { // goroutines of connections end by themselves, a little later
		if runtime.NumGoroutine() <= before+3 {
			return
		}
		runtime.Gosched()
	}
	buf := make([]byte, 1<<16)
	if text := string(buf[:runtime.Stack(buf, true)]); strings.Contains(text, "telemetry.(*buffer") || strings.Contains(text, "telemetry.(*sink") {
		t.Errorf("left behind:\n%s", text)
	}
}

// A collector that sends elsewhere does not get the headers sent there.
func TestCollectorThatRedirects(t *testing.T) {
	c := newCollector(t)
	from := httptest.NewServer(http.RedirectHandler(c.URL+"/v1/traces", http.StatusTemporaryRedirect))
	defer from.Close()
	tel, err := New(&Options{Endpoint: from.URL, Headers: map[string]string{"X-Team-Key": "k"}, Profile: traced})
	if err != nil {
		t.Fatal(err)
	}
	play(tel.Observer())
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(c.bodies) > 0 || tel.sink.lost("traces").Load() == 0 {
		t.Errorf("%d requests went on to where the collector pointed", len(c.bodies))
	}
}

// Texts of errors in spans: no half of a secret, nothing personal that the profile
// hides, none at all where logs show hashes.
func TestErrorsInSpans(t *testing.T) {
	personal, err := redact.New(&redact.Options{Personal: []string{"email"}})
	if err != nil {
		t.Fatal(err)
	}
	key := "sk-" + strings.Repeat("a", 40)
	long := strings.Repeat("x", maxError-10) + " " + key
	for name, c := range map[string]struct {
		profile   Profile
		text      string
		has, lack string
	}{
		"a secret at the cut": {Profile{}, long, "xxx", "sk-"},
		"personal data":       {Profile{Redact: personal}, "no such user jane@example.org", "no such user [redacted]", "jane"},
		"bare":                {Profile{Bare: true}, "you said: hello", `"message":"model_error"`, "hello"},
	} {
		c.profile.Trace, c.profile.Sampling = true, 1
		col := newCollector(t)
		tel, err := New(&Options{Endpoint: col.URL, Profile: func(string) Profile { return c.profile }})
		if err != nil {
			t.Fatal(err)
		}
		o, at := tel.Observer(), time.Unix(1_800_000_000, 0)
		o.Run(&engine.RunSeen{RunID: id("run_1", ""), Status: run.Failed, Started: at.UnixMilli(), Ended: at.UnixMilli(), StopReason: "model_error", Error: c.text})
		o.Model(&engine.ModelSeen{RunID: id("run_1", ""), Start: at, End: at, Class: "auth", Error: c.text})
		o.Tool(&engine.ToolSeen{RunID: id("run_1", ""), CallID: strings.Repeat("c", 1<<20), Name: strings.Repeat("n", 1<<20), Outcome: engine.ToolDenied, Reason: c.text, Start: at, End: at})
		if err := tel.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		all := string(bytes.Join(col.bodies["/v1/traces"], nil))
		if !strings.Contains(all, c.has) || strings.Contains(all, c.lack) || len(decodeSpans(t, col.bodies["/v1/traces"]...)) != 3 {
			t.Errorf("%s: %s", name, all)
		}
		if len(all) > 16<<10 {
			t.Errorf("%s: %d bytes of spans: what a model makes up is kept whole", name, len(all))
		}
	}
}

// An address that can not be used may hold a password: it is not repeated.
func TestWrongEndpointIsNotRepeated(t *testing.T) {
	for _, bad := range []string{"ftp://user:hunter2@host", "user:hunter2@host:4318", "http://user:hunter2@host:port"} {
		if _, err := New(&Options{Endpoint: bad}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v", err)
		}
	}
}

// When the store does not answer, the metrics say so; they are not gone with it.
func TestMetricsOfABrokenStore(t *testing.T) {
	tel, err := New(&Options{Metrics: true, Load: func(context.Context) (engine.Load, error) {
		return engine.Load{Broken: true, Driven: 2}, errors.New("the disk is full")
	}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := tel.WritePrometheus(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, "agentd_store_broken 1\n") || !strings.Contains(text, "agentd_runs_driven 2\n") || strings.Contains(text, "agentd_runs_active{") {
		t.Error(text)
	}
	if err := tel.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// Whoever ends does not wait for a collector that is away, and hears no error of it.
func TestTheEndDoesNotWaitForACollectorThatIsAway(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	url := gone.URL
	gone.Close()
	tel, err := New(&Options{Endpoint: url, Profile: traced, Metrics: true})
	if err != nil {
		t.Fatal(err)
	}
	play(tel.Observer())
	slog.New(tel.LogHandler()).Info("a line")
	began := time.Now()
	if err := tel.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 2500*time.Millisecond { // one pause of half a second
		t.Errorf("the end took %v", took)
	}
	for kind, n := range map[string]int64{"traces": 6, "logs": 1, "metrics": 1} {
		if got := tel.sink.lost(kind).Load(); got != n {
			t.Errorf("%d of %s are counted as lost, not %d", got, kind, n)
		}
	}
}
