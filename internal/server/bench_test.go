package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentd/event"
	"agentd/internal/server"
)

// BenchmarkChunk is the cost of one text chunk from the event to a client on a
// socket, the client's own part included.
func BenchmarkChunk(b *testing.B) {
	for _, c := range []struct{ name, method, path, body string }{
		{"native", "GET", "/runs/r1/events", ""},
		{"chat", "POST", "/v1/chat/completions", `{"model":"manual","stream":true,"messages":[{"role":"user","content":"x"}]}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			e := newFake()
			ts := httptest.NewServer(server.New(e, nil).Handler())
			defer ts.Close()
			if c.method == "GET" {
				resp, err := http.Post(ts.URL+"/runs", "application/json", strings.NewReader(`{"profile":"manual","input":"x"}`))
				if err != nil {
					b.Fatal(err)
				}
				_ = resp.Body.Close()
			}
			// The headers come with the first event.
			go func() { e.wait("r1").emit(event.TextDelta, &event.Delta{Text: "first"}) }()
			req, err := http.NewRequest(c.method, ts.URL+c.path, strings.NewReader(c.body))
			if err != nil {
				b.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			defer resp.Body.Close()
			run := e.wait("r1")
			buf := make([]byte, 4096)
			b.ReportAllocs()
			for b.Loop() {
				run.emit(event.TextDelta, &event.Delta{Text: "some words "})
				if _, err := resp.Body.Read(buf); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			run.end(event.RunCompleted, "stop", "", nil)
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				b.Fatal(err)
			}
		})
	}
}
