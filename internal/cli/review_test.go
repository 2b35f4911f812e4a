package cli

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"agentd/client"
	"agentd/event"
)

// add writes a file into the bench's configuration.
func (b *bench) add(name, text string) {
	b.t.Helper()
	path := filepath.Join(b.configs, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// Who waits for a server that does not answer is told so.
func TestRunTellsWhatItWaitsFor(t *testing.T) {
	b := newBench(t)
	b.add("mcp/servers.yaml", "servers:\n  mute: {transport: stdio, command: sleep, args: ['60'], timeouts: {connect: 1500ms}}\n")
	b.add("agents/patient.yaml", "profile_name: patient\nprimary_model: {provider: script, model: m}\ntools: {mcp_servers: [mute]}\n")
	b.agent("patient", "Go").exits(0).complains("agentd: waiting for MCP server mute\n").says(`MCP server "mute" can not be reached`)
}

// slowCancel is a run that ends as soon as it is cancelled; the answer to the
// cancel itself takes longer.
type slowCancel struct {
	runs
	cancelled chan struct{}
}

func (s slowCancel) Watch(context.Context, string, int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		<-s.cancelled
		yield(event.Event{Seq: 1, Type: event.RunCancelled, Data: &event.Ended{StopReason: "cancelled"}}, nil)
	}
}

func (s slowCancel) Cancel(ctx context.Context, _, _ string) (*client.Run, error) {
	close(s.cancelled)
	<-ctx.Done()
	return nil, ctx.Err()
}

// Nothing is said after the end of a run that the keyboard ended.
func TestNothingIsSaidAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		var out, complaints buffer
		a := &app{Streams: Streams{Out: &out, Err: &complaints}}
		end()
		err := a.follow(ctx, slowCancel{cancelled: make(chan struct{})}, following{run: "r"}, a.printer())
		synctest.Wait()
		var exit *exitError
		if !errors.As(err, &exit) || exit.code != exitCancelled || complaints.String() != "" {
			t.Errorf("%v, and then: %s", err, complaints.String())
		}
	})
}
