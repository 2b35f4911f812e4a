package fault

import (
	"context"
	"fmt"
	"testing"
	"time"

	"agentd"
	"agentd/event"
	"agentd/fault"
	"agentd/internal/engine"
)

// deepProfile names itself, the provider, the address and what it has besides.
const deepProfile = `profile_name: %s
primary_model: {provider: %s, model: m, base_url: "%s", api_key_env: KEY}
approval_mode: %s
retry: {max_retries: 1, base_delay: 5ms, max_delay: 200ms}
model_idle_timeout_seconds: 1
model_total_timeout_seconds: 3
tool_timeout_seconds: 2
max_run_time_seconds: 20
%s
`

// deepTurns are those of the two runs above the one that works.
const deepTurns = `  - {when: {user: "^go$"}, tool_calls: [{name: create_subagent, arguments: {subagent_type: q, prompt: down}}]}
  - {when: {user: "^go$"}, text: "It came back up."}
  - {when: {user: "^down$"}, tool_calls: [{name: create_subagent, arguments: {subagent_type: z, prompt: work}}]}
  - {when: {user: "^down$"}, text: "It went down."}
`

// newDeep is a world in which p starts q, and q starts z, which works.
func newDeep(t *testing.T, approval, turns, server, leaf string) *world {
	t.Helper()
	return makeWorld(t, deepTurns+turns, func(base, exe string) map[string]string {
		return map[string]string{
			"agents/p.yaml":    fmt.Sprintf(deepProfile, "p", "openai", base+"/v1", approval, "subagents: [q]"),
			"agents/q.yaml":    fmt.Sprintf(deepProfile, "q", "anthropic", base, approval, "subagents: [z]"),
			"agents/z.yaml":    fmt.Sprintf(deepProfile, "z", "openai", base+"/v1", approval, leaf),
			"mcp/servers.yaml": fmt.Sprintf(serversYAML, exe, modeVar, server, "once"),
		}
	})
}

// deepPhases are what happens when the lowest run begins to work: to the one at the
// top, or to the lowest itself.
var deepPhases = []string{"alone", "cancel", "cancel the lowest", "cancel the middle", "steer", "interrupt", "rollback", "restart"}

// A fault two levels below ends in all three runs, or in a question at the top.
func TestFaultsBelow(t *testing.T) {
	cases := map[string]func(t *testing.T){}
	n := 0
	for _, phase := range deepPhases {
		for _, f := range modelFaults {
			n++
			times := n % 2 // once, or for good
			cases[fmt.Sprintf("model/%s/times %d/%s", f, times, phase)] = func(t *testing.T) {
				if times > 0 {
					f += ", times: 1"
				}
				w := newDeep(t, "never", fmt.Sprintf("  - {when: {user: \"^work$\"}, text: \"I act.\", tool_calls: [{name: act, arguments: {}}]}\n  - {when: {user: \"^work$\"}, text: \"Done, all of it.\", fault: {%s}}\n", f),
					"works", "tools: {mcp_servers: [s]}")
				defer w.close()
				w.playBelow(phase, event.ToolCompleted)
			}
		}
		for _, mode := range hostileModes {
			cases["tool/"+mode+"/"+phase] = func(t *testing.T) {
				w := newDeep(t, "never", "  - {when: {user: \"^work$\"}, text: \"I act.\", tool_calls: [{name: act, arguments: {}}]}\n  - {when: {user: \"^work$\"}, text: \"Done.\"}\n", mode, "tools: {mcp_servers: [s]}")
				defer w.close()
				w.playBelow(phase, event.ToolStarted)
			}
		}
	}
	all(t, cases)
}

// playBelow drives three runs through a phase.
func (w *world) playBelow(phase string, when event.Type) {
	t := w.t
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := w.rt.Start(ctx, agentd.StartRequest{Profile: "p", Input: agentd.Text("go")})
	if err != nil {
		t.Fatal(err)
	}
	middle := w.child(ctx, r.ID)
	lowest := w.child(ctx, middle)
	if lowest != "" && phase != "alone" {
		for ev, err := range w.rt.Watch(ctx, lowest, 0) {
			if err != nil || ev.Type == when {
				break
			}
		}
	}
	w.meanwhile(ctx, phase, r, middle, lowest)
	w.settled(ctx, r, enough)
	w.nothingGoesOn(ctx)
	w.takesNext(ctx, r.SessionID)
}

// child waits for the child of a run; "" if the run ends without.
func (w *world) child(ctx context.Context, id string) string {
	if id == "" {
		return ""
	}
	for ev, err := range w.rt.Watch(ctx, id, 0) {
		if err != nil {
			w.t.Fatalf("run %s: %v", id, err)
		}
		if s, ok := ev.Data.(*event.Subagent); ok && ev.Type == event.SubagentStarted {
			return w.there(ctx, s.RunID)
		}
	}
	return ""
}

// there waits until a run that was announced is there.
func (w *world) there(ctx context.Context, id string) string {
	for {
		_, err := w.rt.Get(ctx, id)
		if err == nil {
			return id
		}
		if fault.KindOf(err) != fault.NotFound {
			w.t.Fatal(err)
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			w.t.Fatalf("run %s does not start", id)
		}
	}
}

// meanwhile does to the runs what the phase says. A run may have ended first: that
// is the other order of the race.
func (w *world) meanwhile(ctx context.Context, phase string, r *agentd.Run, middle, lowest string) {
	t := w.t
	t.Helper()
	var err error
	switch phase {
	case "cancel":
		_, err = w.rt.Cancel(ctx, r.ID, "enough")
	case "cancel the middle":
		if middle != "" {
			_, err = w.rt.Cancel(ctx, middle, "enough")
		}
	case "cancel the lowest":
		if lowest != "" {
			_, err = w.rt.Cancel(ctx, lowest, "enough")
		}
	case "steer":
		err = w.rt.Steer(ctx, r.ID, agentd.Text("next"))
	case "interrupt", "rollback":
		_, err = w.rt.Start(ctx, agentd.StartRequest{Profile: "p", SessionID: r.SessionID, Input: agentd.Text("next"), WhenBusy: engine.WhenBusy(phase)})
	case "restart":
		if err := w.rt.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		w.open()
	}
	if err != nil && fault.KindOf(err) != fault.Conflict {
		t.Errorf("%s: %v", phase, err)
	}
}

// nothingGoesOn waits until every run has ended: a run whose parent failed ends a
// moment after it.
func (w *world) nothingGoesOn(ctx context.Context) {
	for {
		left := ""
		for _, status := range []string{"queued", "running", "paused_checkpoint"} {
			runs, _, err := w.rt.Runs(ctx, "", status, "", 0)
			if err != nil {
				w.t.Fatal(err)
			}
			for _, r := range runs {
				left += " " + r.ID + " " + r.Status
			}
		}
		if left == "" {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			w.t.Fatalf("the top has ended, and below it goes on:%s", left)
		}
	}
}
