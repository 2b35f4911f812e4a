package cli

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"agentd/internal/store/postgres/pgtest"
)

// The exit status says whether a server or a worker is ready.
func TestHealth(t *testing.T) {
	b := newBench(t)
	b.run("health", "--server", "http://127.0.0.1:1").exits(1).complains("nobody answers", "Is it running")
	for _, bad := range [][]string{{"--server", "127.0.0.1:7070"}, {"--timeout", "0s"}, {"--wait", "-1s"}, {"now"}} {
		b.run(append([]string{"health"}, bad...)...).exits(2)
	}
	url := pgtest.Start(t, "fsync = off").NewURL()
	for _, args := range [][]string{
		{"serve", "--data", b.data, "--addr", "127.0.0.1:0"}, {"serve", "--no-worker", "--store", url, "--addr", "127.0.0.1:0"}, {"worker", "--store", url},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		stderr := after("127.0.0.1:", func(all string) {
			defer cancel()
			at := address.FindString(all)
			b.run("health", "--server", at, "--wait", "10s").exits(0).says(at + " is ready")
			b.run("health", "--server", at, "--live").exits(0).says(at + " is ok")
			b.run("health", "--server", at+"/runs").exits(1).complains("answers 404")
		})
		b.runIn(ctx, &buffer{other: stderr}, append(args, "--configs", b.configs)...).exits(0)
		cancel()
	}
}

// What is wrong is said in the server's own words; what is no agentd is not believed.
func TestHealthOfOthers(t *testing.T) {
	b := newBench(t)
	asked := 0
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		switch {
		case r.URL.Path == "/healthz":
			_, _ = w.Write([]byte("<html>"))
		case asked == 1:
			w.WriteHeader(503)
			_, _ = w.Write([]byte(`{"error":{"kind":"unavailable","message":"no lease","hint":"It joins again."}}`))
		default:
			_, _ = w.Write([]byte(`{"status":"ready"}`))
		}
	}))
	defer s.Close()
	// Where the server of this machine listens is in agentd.yaml; nobody signed its
	// certificate for that address.
	text := "addr: 0.0.0.0" + s.Listener.Addr().String()[len("127.0.0.1"):] + "\ntls: {cert: c, key: k}\n"
	if err := os.WriteFile(filepath.Join(b.configs, "agentd.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b.run("health", "--configs", b.configs).exits(1).complains("answers 503: no lease", "It joins again.")
	b.run("health", "--configs", b.configs, "--wait", "10s").exits(0).says("is ready")
	b.run("health", "--configs", b.configs, "--live").exits(1).complains("no agentd's answer")
	b.run("health", "--server", s.URL).exits(1).complains("nobody answers", "certificate")
}
