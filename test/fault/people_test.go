package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd"
	"agentd/event"
	"agentd/fault"
)

// peoplePhases are what happens while a person is asked, before the answer, after
// it, or in its place.
var peoplePhases = []string{"answered", "answered twice", "restart, answered", "answered, restart", "restart, restart, answered, restart", "expires", "restart, expires",
	"rejected", "cancel", "steer", "interrupt", "rollback"}

// peopleProfile has what is asked, how it expires, and tools that need approval.
const peopleProfile = `profile_name: p
primary_model: {provider: openai, model: m, base_url: "%[1]s/v1", api_key_env: KEY}
tools: {builtin: [ask_user_question, propose_plan], mcp_servers: [s]}
retry: {max_retries: 1, base_delay: 5ms, max_delay: 200ms}
model_idle_timeout_seconds: %[2]d
model_total_timeout_seconds: %[3]d
tool_timeout_seconds: 2
max_run_time_seconds: 20
interrupts: {%[4]s default_answer: "whatever", on_expiry: %[5]s}
`

// newPeople is a world in which people are asked.
func newPeople(t *testing.T, turns, mode, effect, phase string) *world {
	t.Helper()
	expiry := ""
	if phase == "expires" || phase == "restart, expires" {
		expiry = "expire_after: 300ms,"
	}
	// A model that is well is not to be late because the machine is busy.
	idle, total := 1, 3
	if !strings.Contains(turns, "fault:") {
		idle, total = 10, 15
	}
	word := []string{"approve", "reject"}[len(mode+effect)%2]
	return makeWorld(t, turns, func(base, exe string) map[string]string {
		return map[string]string{"agents/p.yaml": fmt.Sprintf(peopleProfile, base, idle, total, expiry, word),
			"mcp/servers.yaml": fmt.Sprintf(serversYAML, exe, modeVar, mode, effect) + "    requires_approval: {always: [act]}\n"}
	})
}

// An approval whose server fails in every way when the approved call starts, also by
// having died while the person was thinking.
func TestApprovalsAndToolFaults(t *testing.T) {
	const turns = "  - {text: \"I act.\", tool_calls: [{name: act, arguments: {}}]}\n  - text: \"Done.\"\n"
	cases := map[string]func(t *testing.T){}
	n := 0
	for _, mode := range append([]string{"gone"}, hostileModes...) {
		if mode == "refuses to start" || mode == "mute" {
			continue // without tools nobody is asked; "gone" is what they are like later
		}
		for _, phase := range peoplePhases {
			n++
			effect := []string{"read", "once"}[n%2]
			cases[mode+"/"+phase+"/"+effect] = func(t *testing.T) {
				server, mark := mode, filepath.Join(t.TempDir(), "gone")
				if mode == "gone" {
					server = "gone " + mark
				}
				w := newPeople(t, turns, server, effect, phase)
				defer w.close()
				w.ask(phase, func() {
					if mode == "gone" {
						if err := os.WriteFile(mark, nil, 0o600); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
	}
	all(t, cases)
}

// A question, a plan and an approval side by side, and a model that fails when it
// is told the answers.
func TestQuestionsAndModelFaults(t *testing.T) {
	const asks = "  - text: \"I ask.\"\n    tool_calls:\n      - {name: ask_user_question, arguments: {question: \"Which?\"}}\n" +
		"      - {name: act, arguments: {}}\n      - {name: propose_plan, arguments: {plan: \"First this, then that.\"}}\n"
	cases := map[string]func(t *testing.T){}
	n := 0
	for _, f := range modelFaults {
		for _, phase := range peoplePhases {
			if n++; n%2 == 0 {
				continue // every other one: each fault and each phase come, and the suite stays short
			}
			times := ""
			if n%4 == 1 {
				times = ", times: 1"
			}
			cases[f+times+"/"+phase] = func(t *testing.T) {
				w := newPeople(t, asks+"  - {text: \"That is it, then.\", fault: {"+f+times+"}}\n", "works", "once", phase)
				defer w.close()
				w.ask(phase, func() {})
			}
		}
	}
	all(t, cases)
}

// The same two levels below: what is asked there is answered at the top.
func TestQuestionsBelow(t *testing.T) {
	const turns = "  - when: {user: \"^work$\"}\n    tool_calls:\n      - {name: act, arguments: {}}\n      - {name: ask_user_question, arguments: {question: \"Which?\"}}\n  - {when: {user: \"^work$\"}, text: \"Done.\"%s}\n"
	cases := map[string]func(t *testing.T){}
	for _, c := range [][2]string{{"works", ", fault: {kind: server}"}, {"works", ", fault: {kind: cut, times: 1}"}, {"works", ", fault: {kind: stall}"}, {"dies", ""}, {"never answers", ""}, {"garbage", ""}, {"gone", ""}} {
		for _, phase := range append([]string{"cancel the lowest", "cancel the middle"}, peoplePhases...) {
			cases[c[0]+c[1]+"/"+phase] = func(t *testing.T) {
				server, mark := c[0], filepath.Join(t.TempDir(), "gone")
				if server == "gone" {
					server = "gone " + mark
				}
				leaf := "tools: {builtin: [ask_user_question], mcp_servers: [s]}"
				if phase == "expires" || phase == "restart, expires" {
					leaf += "\ninterrupts: {expire_after: 300ms}"
				}
				w := newDeep(t, "always", fmt.Sprintf(turns, c[1]), server, leaf)
				defer w.close()
				w.ask(phase, func() {
					if c[0] == "gone" {
						if err := os.WriteFile(mark, nil, 0o600); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
	}
	all(t, cases)
}

// ask drives a run to its first question and through a phase. asked is called when
// it is open.
func (w *world) ask(phase string, asked func()) {
	t := w.t
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := w.rt.Start(ctx, agentd.StartRequest{Profile: "p", Input: agentd.Text("go")})
	if err != nil {
		t.Fatal(err)
	}
	person := agrees
	lowest := ""
	for ev, err := range w.rt.Watch(ctx, r.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		c, ok := ev.Data.(*event.Checkpoint)
		if !ok || ev.Type != event.CheckpointRequired {
			continue
		}
		i, err := w.rt.Interrupt(ctx, c.InterruptID)
		if err != nil {
			t.Fatal(err)
		}
		// The runs above ask about starting those below, first.
		if i.ToolCall != nil && i.ToolCall.Name == createSubagent {
			answer, _ := agrees(i)
			if _, err := w.rt.Answer(ctx, answer); err != nil {
				t.Error(err)
			}
			continue
		}
		lowest = i.RunID
		break
	}
	if lowest == "" {
		t.Fatal("the run ended and asked nobody")
	}
	asked()
	middle := ""
	if v, err := w.rt.Get(ctx, lowest); err != nil {
		t.Fatal(err)
	} else {
		middle = v.ParentID
	}
	restart := func() { w.meanwhile(ctx, "restart", r, "", "") }
	one := func() {
		v, err := w.rt.Get(ctx, r.ID)
		if err != nil {
			t.Fatal(err)
		}
		if len(v.Interrupts) > 0 {
			answer, _ := person(v.Interrupts[0])
			if _, err := w.rt.Answer(ctx, answer); err != nil && fault.KindOf(err) != fault.Conflict {
				t.Error(err)
			}
		}
	}
	switch phase {
	case "answered twice":
		w.twice(ctx, r.ID)
	case "restart, answered":
		restart()
	case "answered, restart":
		one()
		restart()
	case "restart, restart, answered, restart":
		restart()
		restart()
		one()
		restart()
	case "rejected":
		person = refuses
	case "expires", "restart, expires":
		if phase != "expires" {
			restart()
		}
		person = silent
	case "cancel", "cancel the middle", "cancel the lowest", "steer", "interrupt", "rollback":
		w.meanwhile(ctx, phase, r, middle, lowest)
	}
	w.settled(ctx, r, person)
	w.nothingGoesOn(ctx)
	w.takesNext(ctx, r.SessionID)
}

const createSubagent = "create_subagent"

// agrees answers everything with yes, but repeats nothing that may have happened.
func agrees(i *agentd.Interrupt) (req agentd.AnswerRequest, expected bool) {
	req.Interrupt, req.Decision = i.ID, "approve"
	switch i.Kind {
	case "question":
		req.Decision, req.Answer = "", json.RawMessage(`"this one"`)
	case "uncertain":
		req.Decision = "skip"
	}
	return req, true
}

func refuses(i *agentd.Interrupt) (req agentd.AnswerRequest, expected bool) {
	req, expected = agrees(i)
	if req.Decision == "approve" {
		req.Decision = "reject"
	}
	return req, expected
}

// silent lets everything expire but what may have happened: that does not expire
// by itself while nobody knows that it is asked.
func silent(i *agentd.Interrupt) (req agentd.AnswerRequest, expected bool) {
	if req, expected = agrees(i); i.Kind != "uncertain" && (i.ToolCall == nil || i.ToolCall.Name != createSubagent) {
		req.Interrupt = ""
	}
	return req, expected
}

// twice has two people answer everything that is open at the same moment: one of
// them is heard, and the other is told so.
func (w *world) twice(ctx context.Context, run string) {
	t := w.t
	t.Helper()
	v, err := w.rt.Get(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range v.Interrupts {
		var both sync.WaitGroup
		errs := make([]error, 2)
		for n := range errs {
			both.Go(func() {
				answer, _ := agrees(i)
				_, errs[n] = w.rt.Answer(ctx, answer)
			})
		}
		both.Wait()
		heard := 0
		for _, err := range errs {
			if err == nil {
				heard++
			} else if fault.KindOf(err) != fault.Conflict {
				t.Error(err)
			}
		}
		if heard != 1 {
			t.Errorf("%d of two answers to interrupt %s were accepted: %v", heard, i.ID, errs)
		}
	}
}

// Proposals that are applied against servers that fail in every way, with restarts
// in between: each is decided in the end, and a call that was made is never made
// again without a person's word.
func TestProposalsAndToolFaults(t *testing.T) {
	const turns = "  - {text: \"I act.\", tool_calls: [{name: act, arguments: {}}, {name: act, arguments: {n: 2}}]}\n  - text: \"Done.\"\n"
	cases := map[string]func(t *testing.T){}
	for _, mode := range append([]string{"gone"}, hostileModes...) {
		if mode == "refuses to start" || mode == "mute" {
			continue // without tools there are no proposals
		}
		for _, phase := range []string{"applied", "restart, applied", "applied, restart", "applied twice", "discarded"} {
			for _, effect := range []string{"read", "once"} {
				cases[mode+"/"+phase+"/"+effect] = func(t *testing.T) {
					server, mark := mode, filepath.Join(t.TempDir(), "gone")
					if mode == "gone" {
						server = "gone " + mark
					}
					w := newPeople(t, turns, server, effect, "")
					defer w.close()
					w.propose(phase, func() {
						if mode == "gone" {
							if err := os.WriteFile(mark, nil, 0o600); err != nil {
								t.Error(err)
							}
						}
					})
				}
			}
		}
	}
	all(t, cases)
}

// propose has an autonomous run make proposals, and decides about them.
func (w *world) propose(phase string, proposed func()) {
	t := w.t
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := w.rt.Start(ctx, agentd.StartRequest{Profile: "p", Mode: "autonomous", Input: agentd.Text("go")})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := w.rt.Wait(ctx, r.ID); err != nil || v.Status != "completed" || len(v.Proposals) != 2 {
		t.Fatalf("%+v, %v", v, err)
	}
	proposed()
	apply := func(uncertain string) {
		t.Helper()
		_, err := w.rt.ApplyProposals(ctx, agentd.DecideRequest{Run: r.ID, Uncertain: uncertain})
		if err != nil && fault.KindOf(err) != fault.Conflict && fault.KindOf(err) != fault.Unavailable {
			t.Errorf("apply: %v", err)
		}
	}
	restart := func() { w.meanwhile(ctx, "restart", r, "", "") }
	switch phase {
	case "applied":
		apply("")
	case "restart, applied":
		restart()
		apply("")
	case "applied, restart":
		// The restart falls into the call, where that takes long enough.
		var applying sync.WaitGroup
		rt := w.rt
		applying.Go(func() {
			_, _ = rt.ApplyProposals(ctx, agentd.DecideRequest{Run: r.ID}) // it may be cut off
		})
		<-time.After(30 * time.Millisecond)
		restart()
		applying.Wait()
	case "applied twice":
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { apply("") })
		}
		both.Wait()
	}
	list, err := w.rt.Proposals(ctx, r.ID)
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, p := range list {
		if p.Status != "applying" {
			continue
		}
		// A person finds out, and says so.
		if _, err := w.rt.ApplyProposals(ctx, agentd.DecideRequest{Run: r.ID, Proposal: p.ID, Uncertain: "done", RealID: "7"}); err != nil && fault.KindOf(err) != fault.Conflict {
			t.Errorf("a call that may have happened: %v", err)
		}
	}
	if _, err := w.rt.DiscardProposals(ctx, agentd.DecideRequest{Run: r.ID}); err != nil {
		t.Errorf("discard: %v", err)
	}
	list, err = w.rt.Proposals(ctx, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		if p.Status != "applied" && p.Status != "discarded" {
			t.Errorf("a proposal is left: %+v", p)
		}
	}
	w.takesNext(ctx, r.SessionID)
}
