package peers

import (
	"context"
	"encoding/json"
	"testing"

	"agentd"
	"agentd/client"
	"agentd/event"
	"agentd/fault"
	"agentd/internal/keys"
	"agentd/tool"
)

// deed is a tool that needs a person's word, and counts.
type deed struct{ done chan string }

func (deed) Spec() tool.Spec {
	return tool.Spec{Name: "deed", Description: "Does it.", Effect: tool.Once, Schema: json.RawMessage(`{"type":"object"}`), Classes: []string{"dangerous"}}
}

func (d deed) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	d.done <- c.RunID
	return tool.Result{Content: text("It is done.")}, nil
}

// 2. An approval two levels below is an object with an id: seen at the top, kept
// through restarts, answered once, over any client, by nobody of another tenant; and
// where nobody is, nothing hangs and nothing is approved.
func TestPeers02ApprovalsAreDurableObjects(t *testing.T) {
	ctx := deadline(t)
	done := make(chan string, 10)
	const profile = "primary_model: {provider: script, model: m, script: s.yaml}\n"
	w := newWorld(t, map[string]string{
		"agents/top.yaml":   "profile_name: top\nsubagents: [mid]\n" + profile,
		"agents/mid.yaml":   "profile_name: mid\nsubagents: [low]\n" + profile,
		"agents/low.yaml":   "profile_name: low\ntools: {builtin: [extra]}\n" + profile,
		"agents/brief.yaml": "profile_name: brief\ntools: {builtin: [extra]}\ninterrupts: {expire_after: 100ms, on_expiry: approve}\n" + profile,
		"s.yaml": "turns:\n- {when: {user: '^top$'}, tool_calls: [{name: create_subagent, arguments: {subagent_type: mid, prompt: mid}}]}\n" +
			"- {when: {user: '^mid$'}, tool_calls: [{name: create_subagent, arguments: {subagent_type: low, prompt: low}}]}\n" +
			"- {when: {user: '^low$'}, tool_calls: [{name: deed, arguments: {}}]}\n- text: 'So it is: {{.Last.Text}}'\n",
	}, deed{done})
	secret := func(tenant string) string {
		_, s, err := w.rt.CreateKey(ctx, agentd.KeyRequest{Tenant: tenant, Scopes: []keys.Scope{keys.Run, keys.Read, keys.Answer}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	ours, theirs := secret("acme"), secret("other")
	c := w.client(ours)
	r, err := c.Start(ctx, client.StartRequest{Profile: "top", Input: text("top")})
	if err != nil {
		t.Fatal(err)
	}
	asked := until(ctx, t, c, r.ID, event.CheckpointRequired).Data.(*event.Checkpoint)
	if asked.Kind != "approval" || asked.RunID == r.ID || asked.RunID == "" || asked.ToolCall.Name != "deed" {
		t.Fatalf("at the top: %+v", asked)
	}
	w.restart()
	c = w.client(ours)
	v, err := c.Run(ctx, r.ID)
	if err != nil || v.Status != client.Paused || len(v.Interrupts) != 1 || v.Interrupts[0].ID != asked.InterruptID {
		t.Fatalf("after a restart: %+v, %v", v, err)
	}
	yes := client.AnswerRequest{Interrupt: asked.InterruptID, Decision: "approve"}
	if _, err := w.client(theirs).Answer(ctx, yes); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another tenant's answer: %v", err)
	}
	if list, _, err := w.client(theirs).Interrupts(ctx, "", "", 0); err != nil || len(list) != 0 {
		t.Errorf("another tenant sees %v, %v", list, err)
	}
	if len(done) != 0 {
		t.Fatal("it happened before anybody agreed")
	}
	if _, err := c.Answer(ctx, yes); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Answer(ctx, client.AnswerRequest{Interrupt: asked.InterruptID, Decision: "reject"}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a second answer: %v", err)
	}
	if end := until(ctx, t, c, r.ID, event.RunCompleted).Data.(*event.Ended); end.Output != "So it is: So it is: So it is: It is done." {
		t.Errorf("%q", end.Output)
	}
	if len(done) != 1 {
		t.Errorf("it happened %d times", len(done))
	}
	// Nobody answers: it expires, and silence approves nothing dangerous.
	if r, err = c.Start(ctx, client.StartRequest{Profile: "brief", Input: text("low")}); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, c, r.ID, event.RunCompleted)
	// Nobody is there: it is recorded, and the run goes on.
	if r, err = c.Start(ctx, client.StartRequest{Profile: "low", Mode: "autonomous", Input: text("low")}); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, c, r.ID, event.RunCompleted)
	if list, err := c.Proposals(ctx, r.ID); err != nil || len(list) != 1 || list[0].Status != "proposed" {
		t.Errorf("proposals %+v, %v", list, err)
	}
	if len(done) != 1 {
		t.Errorf("it happened %d times although one person agreed once", len(done))
	}
}
