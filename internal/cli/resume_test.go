package cli

import (
	"context"
	"strings"
	"testing"

	"agentd"
	"agentd/event"
)

// leave starts a run in a process that ends in the middle of it.
func (b *bench) leave(profile string) *agentd.Run {
	b.t.Helper()
	rt, err := agentd.Open(b.t.Context(), agentd.Config{Configs: b.configs, Data: b.data, Dormant: true})
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := rt.Start(b.t.Context(), agentd.StartRequest{Profile: profile, Input: agentd.Text("go")})
	if err != nil {
		b.t.Fatal(err)
	}
	for ev, err := range rt.Watch(b.t.Context(), r.ID, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		if ev.Type == event.StepStarted {
			break
		}
	}
	if err := rt.Close(); err != nil {
		b.t.Fatal(err)
	}
	return r
}

// resumptions is how often a run was gone on with.
func (b *bench) resumptions(id string) (n int, status string) {
	b.t.Helper()
	rt, err := agentd.Open(context.Background(), agentd.Config{Configs: b.configs, Data: b.data, ReadOnly: true})
	if err != nil {
		b.t.Fatal(err)
	}
	defer rt.Close()
	for ev, err := range rt.Replay(context.Background(), id, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		if ev.Type == event.RunResumed {
			n++
		}
	}
	r, err := rt.Get(context.Background(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return n, r.Status
}

// Commands that make a run, or answer one, leave alone what another process left:
// they would pay for its model calls, and leave it again in the middle.
func TestCommandsLeaveOtherRunsAlone(t *testing.T) {
	b := newBench(t)
	left := b.leave("talk")
	for range 2 {
		r := b.agent("talk", "look")
		if r.code != 0 || !strings.Contains(r.err, "1 of the runs here were left unfinished; `agentd runs resume") {
			t.Errorf("exit %d: %s", r.code, r.err)
		}
	}
	if n, status := b.resumptions(left.ID); n != 0 || status != "running" {
		t.Errorf("the run that was left was gone on with %d times and is %s", n, status)
	}
	// A run in its session is behind it, and so it goes on first.
	if r := b.here("run", "--profile", "talk", "--session", left.SessionID, "look again"); r.code != 0 {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if n, status := b.resumptions(left.ID); n != 1 || status != "completed" {
		t.Errorf("ahead of a run in its session it was gone on with %d times and is %s", n, status)
	}
}

// A compaction is behind what was left in its session, as a run is.
func TestACompactionIsBehindWhatWasLeft(t *testing.T) {
	b := newBench(t)
	left := b.leave("talk")
	if r := b.here("sessions", "compact", left.SessionID); r.code != 0 {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	if n, status := b.resumptions(left.ID); n != 1 || status != "completed" {
		t.Errorf("the run that was left was gone on with %d times and is %s", n, status)
	}
}

func TestResume(t *testing.T) {
	b := newBench(t)
	one, two := b.leave("talk"), b.leave("talk")
	if r := b.here("runs", "resume", one.ID); r.code != 0 || !strings.Contains(r.out, "of an answer.") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	if n, status := b.resumptions(one.ID); n != 1 || status != "completed" {
		t.Errorf("the run that was named was gone on with %d times and is %s", n, status)
	}
	if n, status := b.resumptions(two.ID); n != 0 || status != "running" {
		t.Errorf("the other one was gone on with %d times and is %s", n, status)
	}
	if r := b.here("runs", "resume"); r.code != 0 || !strings.Contains(r.out, "of an answer.") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	if n, status := b.resumptions(two.ID); n != 1 || status != "completed" {
		t.Errorf("it was gone on with %d times and is %s", n, status)
	}
	if r := b.here("runs", "resume"); r.code != 0 || !strings.Contains(r.out, "no runs are unfinished") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	if r := b.here("runs", "resume", one.ID); r.code != 1 || !strings.Contains(r.err, "has ended") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}
