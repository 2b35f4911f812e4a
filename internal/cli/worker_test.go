package cli

import (
	"context"
	"strings"
	"testing"

	"agentd/internal/store/postgres/pgtest"
)

// Roles of several nodes make no sense on a file, which has one process.
func TestRolesNeedASharedStore(t *testing.T) {
	b := newBench(t)
	b.here("worker").exits(2).complains("needs a store that several processes share", "--store postgres://")
	b.here("serve", "--no-worker", "--addr", "127.0.0.1:0").exits(2).complains("nobody would drive the runs", "PostgreSQL")
}

// A worker answers for its health and its metrics, and takes no requests.
func TestWorker(t *testing.T) {
	b := newBench(t)
	url := pgtest.Start(t, "fsync = off").NewURL()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	codes := map[string]int{}
	stderr := after("drives runs of", func(all string) {
		defer cancel()
		for _, path := range []string{"/healthz", "/readyz", "/metrics", "/runs", "/v1/models"} {
			codes[path], _ = get(t, address.FindString(all)+path)
		}
	})
	b.runIn(ctx, &buffer{other: stderr}, "worker", "--store", url, "--configs", b.configs).exits(0)
	if codes["/healthz"] != 200 || codes["/readyz"] != 200 || codes["/metrics"] != 200 || codes["/runs"] != 404 || codes["/v1/models"] != 404 {
		t.Errorf("answers: %v", codes)
	}
	if !strings.Contains(b.run("serve", "--help").exits(0).out, "--no-worker") {
		t.Error("the help does not tell of --no-worker")
	}
}

// A worker of pools makes calls and drives nothing; what is no pool is refused.
func TestWorkerOfPools(t *testing.T) {
	b := newBench(t)
	b.here("worker", "--pools", "gpu").exits(2).complains(`"gpu" is not a pool that a node can serve`, "tool.NAME")
	b.here("serve", "--pools", "tool.gpu", "--addr", "127.0.0.1:0").exits(2).complains("one process alone, which does everything")
	url := pgtest.Start(t, "fsync = off").NewURL()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := ""
	stderr := after("for runs of", func(all string) {
		defer cancel()
		said = all
	})
	b.runIn(ctx, &buffer{other: stderr}, "worker", "--pools", "model,tool.gpu", "--store", url, "--configs", b.configs).exits(0)
	if !strings.Contains(said, "makes calls of model, tool.gpu for runs of") {
		t.Errorf("it says %q", said)
	}
}
