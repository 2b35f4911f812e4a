package cli

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
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

// Blank input is no directive: nothing starts, and nothing is said but that.
func TestRunRefusesBlankInput(t *testing.T) {
	b := newBench(t)
	b.stdin = " \n"
	for _, directive := range []string{"", "  \n\t", "-"} {
		r := b.run("run", "--data", b.data, directive).exits(2).complains("agentd: the directive is empty")
		if r.out != "" || strings.Contains(r.err, "script") {
			t.Errorf("%q: %s%s", directive, r.out, r.err)
		}
	}
	if _, err := os.Stat(b.data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was stored: %v", err)
	}
}

// What a run is answered by is said only if there is a run.
func TestNoNoticeBeforeAnError(t *testing.T) {
	b := newBench(t)
	for _, args := range [][]string{{"run", "--session", "ses_none", "x"}, {"run", "--mode", "sideways", "x"}} {
		if r := b.run(append(args, "--data", b.data)...); r.code == 0 || strings.Contains(r.err, "no model is configured") {
			t.Errorf("agentd %v: exit %d\n%s", args, r.code, r.err)
		}
	}
}

func TestShellCompletion(t *testing.T) {
	b := newBench(t)
	b.run("__complete", "run", "--configs", b.configs, "--profile", "").exits(0).says("ask\n", "talk\n", ":4")
	b.run("__complete", "runs", "show", "--data", b.data, "").exits(0)
	r := lines[event.Event](b.asJSON(func() *result { return b.agent("talk", "One") }).exits(0))
	for _, cmd := range []string{"show", "events", "cancel"} {
		b.run("__complete", "runs", cmd, "--data", b.data, "--configs", b.configs, "").exits(0).says(r[0].RunID + "\ttalk, completed\n")
	}
}
