package cli

import (
	"strings"
	"testing"

	"agentd/client"
	"agentd/event"
)

// An operator who forgets --configs must not end the run that waits for a person.
func TestAnswersDoNotEndRunsOfOtherConfigurations(t *testing.T) {
	b := newBench(t)
	b.agent("ask", "x").exits(exitPaused)
	i := b.waiting()[0]
	other := t.TempDir()
	b.run("config", "init", other).exits(0)
	elsewhere := func(args ...string) *result {
		t.Helper()
		return b.run(append(args, "--data", b.data, "--configs", other)...)
	}
	elsewhere("interrupts", "answer", i.ID, "--answer", "red").exits(exitFailed).complains("is of profile ask", "--configs DIR", "stays as it is")
	elsewhere("runs", "resume", i.RunID).exits(exitFailed).complains("is of profile ask")
	elsewhere("runs", "resume").exits(exitFailed).complains("is of profile ask")
	b.here("interrupts", "answer", i.ID, "--answer", "red").exits(0).says("Then it is red.")

	// Nor must the answer to a subagent, whose parent is of another one.
	b.agent("boss", "x").exits(exitPaused)
	i = b.waiting()[0]
	b.add("../"+other[strings.LastIndexByte(other, '/')+1:]+"/agents/none.yaml", "profile_name: none\nprimary_model: {provider: script, model: m}\n")
	elsewhere("interrupts", "answer", i.ID, "--answer", "red").exits(exitFailed).complains("stays as it is")
	b.here("interrupts", "answer", i.ID, "--answer", "red").exits(0).says("Then it is red.")
}

// What a person is asked to approve is in the list: prompts of several calls are alike.
func TestApprovalsShowTheirCalls(t *testing.T) {
	b := newBench(t)
	b.proposing()
	b.agent("write", "Write it").exits(exitPaused)
	id := b.waiting()[0].ID
	b.here("interrupts", "ls").exits(0).says("EXPIRES", "never", `May it run? save {"name":"one"}`)
	b.here("interrupts", "show", id).exits(0).says("--decision approve|reject", "--args '{…}'", "--remember")
	b.here("interrupts", "answer", id, "--answer", "yes").exits(exitUsage).complains("an interrupt of kind approval needs a decision: use approve, reject")
	for i, want := range map[*client.Interrupt]string{
		{Kind: "question"}: `--answer "…"`,
		{Kind: "question", Schema: []byte(`{"type":"object"}`)}: `--answer '{"…": …}'`,
		{Kind: "uncertain"}: "--decision retry|skip|done",
	} {
		if got := answers(i); got != want || amends(i) != "" {
			t.Errorf("%s: %s, %s", i.Kind, got, amends(i))
		}
	}
	// Why it is asked about is what tells a call that nobody wanted from one that somebody did.
	told := &client.Interrupt{Kind: "approval", Prompt: "May remember run? (it may come from outputs of tools)", ToolCall: &event.Tool{Name: "remember", Args: []byte(`{"text":"x"}`)}}
	if got, want := asked(told), `May it run? remember {"text":"x"} (it may come from outputs of tools)`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if s := amends(&client.Interrupt{Kind: "plan"}); !strings.Contains(s, `{"plan": "…"}`) {
		t.Error(s)
	}
	if s := amends(&client.Interrupt{Kind: "approval", ToolCall: &event.Tool{Name: raiseBudget}}); !strings.Contains(s, "raise_by") {
		t.Error(s)
	}
}

// Who starts an autonomous run, or looks at one, is told that its proposals wait.
func TestProposalsAreToldOf(t *testing.T) {
	b := newBench(t)
	b.proposing()
	r := b.agent("write", "Write it", "--mode", "autonomous").exits(0).
		says("✎ save: not made, but proposed").
		complains("2 proposals wait for a person to decide about:\n  agentd runs proposals run_")
	if strings.Contains(r.out, "✓ save") {
		t.Errorf("a call that was not made looks made:\n%s", r.out)
	}
	id := lines[client.Run](b.here("runs", "ls", "--json").exits(0))[0].ID
	b.here("runs", "show", id).exits(0).says(`✎ save {"name":"one"}`, "2 proposals wait for a person to decide about\n  agentd runs proposals "+id)
	b.here("runs", "proposals", id, id+".p1", "--apply").exits(0)
	b.here("runs", "show", id).exits(0).says("1 proposal waits")
	b.here("runs", "proposals", id, "--discard").exits(0)
	if r := b.here("runs", "show", id).exits(0); strings.Contains(r.out, "for a person") {
		t.Errorf("nothing waits any more:\n%s", r.out)
	}
	b.here("runs", "proposals", id, "--apply").exits(0).complains("nothing was left to decide about")
}

// Why an answer was closed is in the timeline.
func TestTimelineTellsOfBudgets(t *testing.T) {
	b := newBench(t)
	b.add("agents/poor.yaml", "profile_name: poor\nprimary_model: {provider: script, model: m, script: talk.yaml}\ntools: {builtin: [workspace]}\nmax_tokens_per_run: 9000\n")
	b.agent("poor", "x").exits(0).says("completed (max_tokens)")
	id := lines[client.Run](b.here("runs", "ls", "--json").exits(0))[0].ID
	b.here("runs", "show", id).exits(0).says("max_tokens of the run and those below it is in the way: 0 of 9000 used, the next call may need", "the answer is closed, without tools")
	got := warned(&event.Budget{Pot: "session", Limit: "max_cost", Cap: "5", Used: "4.25"})
	if got != "85% of max_cost of the session is used: $4.25 of $5" {
		t.Error(got)
	}
	if got := warned(&event.Budget{Limit: "max_steps", Cap: "0", Used: "4"}); got != "much of max_steps of the run is used: 4 of 0" {
		t.Error(got)
	}
}

// The row of a step is about the model that answered, and no class of error is told twice.
func TestTimelineNamesTheModelThatAnswered(t *testing.T) {
	line, err := readTimeline(func(yield func(event.Event, error) bool) {
		for i, ev := range []event.Event{
			{Type: event.StepStarted, Data: &event.Step{Model: "a/first"}},
			{Type: event.ModelFallback, Data: &event.Retry{Class: "overloaded", Message: "a: overloaded (HTTP 529)", Model: "b/second"}},
			{Type: event.StepCompleted, Data: &event.Step{StopReason: "stop"}},
		} {
			ev.Step, ev.Time = 1, int64(1000+i)
			if !yield(ev, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	s := line.Steps[0]
	if s.Model != "b/second" || len(s.Notes) != 1 || s.Notes[0].Text != "a: overloaded (HTTP 529); falls back to b/second" {
		t.Errorf("%+v", s)
	}
}

// Errors name what people know, and no functions.
func TestErrorsNameNoFunctions(t *testing.T) {
	b := newBench(t)
	r := b.run("doctor", "--data", t.TempDir()).exits(exitFailed).complains("agentd: there is no store")
	if strings.Contains(r.err, "CheckStore") {
		t.Error(r.err)
	}
	b.add("agentd.yaml", "workspace: /nowhere\n")
	b.agent("talk", "x").exits(exitUsage).complains("agentd: /nowhere: ", "workspace in agentd.yaml")
}
