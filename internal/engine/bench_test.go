package engine

import (
	"context"
	"path/filepath"
	"testing"

	"agentd/internal/store"
	"agentd/internal/store/sqlite"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// benchSteps is how many steps with a tool call a benchmark's run has.
const benchSteps = 20

func benchmarkRun(b *testing.B, path string, caps Caps) {
	st, err := sqlite.Open(path, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	script := modelFunc(func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
		if step < benchSteps {
			return say("", call("c", "echo", `{"n":1}`))
		}
		return say("done")
	})
	set, err := tool.NewSet(echoTool(tool.Read))
	if err != nil {
		b.Fatal(err)
	}
	agent := &Agent{Profile: "test", Version: "1", Tools: set, Models: []Model{{Provider: script, ID: "m", Name: "fake/m"}}, Caps: caps}
	e, err := New(Config{Store: st, Agents: agents{"test": agent}})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		r, err := e.Start(ctx, StartRequest{Input: []message.Block{message.Text("go")}})
		if err != nil {
			b.Fatal(err)
		}
		if r, err = e.Wait(ctx, Ref{store.DefaultTenant, r.ID}); err != nil || r.Status != "completed" {
			b.Fatal(r, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*benchSteps), "µs/step")
}

// BenchmarkRunMemory is a run of 20 steps with one tool call each, model and tool
// taking no time, kept in memory.
func BenchmarkRunMemory(b *testing.B) { benchmarkRun(b, ":memory:", Caps{}) }

// BenchmarkRunFile is the same on a file with full durability.
func BenchmarkRunFile(b *testing.B) { benchmarkRun(b, filepath.Join(b.TempDir(), "agentd.db"), Caps{}) }

// BenchmarkRunFileCapped is the same with a cap: each step also reserves.
func BenchmarkRunFileCapped(b *testing.B) {
	benchmarkRun(b, filepath.Join(b.TempDir(), "agentd.db"), Caps{MaxTokens: 1 << 40})
}

// BenchmarkRunMemoryCapped is that in memory.
func BenchmarkRunMemoryCapped(b *testing.B) { benchmarkRun(b, ":memory:", Caps{MaxTokens: 1 << 40}) }
