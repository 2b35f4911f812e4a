package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentd"
	"agentd/client"
	"agentd/event"
)

// waiting gives the open interrupts, oldest first.
func (b *bench) waiting() []client.Interrupt {
	b.t.Helper()
	return lines[client.Interrupt](b.here("interrupts", "ls", "--json").exits(0))
}

func TestQuestion(t *testing.T) {
	b := newBench(t)
	b.agent("ask", "Paint it").exits(3).golden("ask-run")
	i := b.waiting()[0]
	b.here("interrupts", "ls").exits(0).golden("ask-interrupts-ls")
	b.here("interrupts", "show", i.ID).exits(0).golden("ask-interrupts-show")
	b.here("runs", "ls").exits(0).golden("ask-runs-ls")
	b.here("runs", "show", i.RunID).exits(0).golden("ask-runs-show-paused")
	b.here("interrupts", "answer", i.ID, "--decision", "approve").exits(2).complains("does not answer an interrupt of kind question")
	b.here("interrupts", "answer", i.ID, "--answer", "blue").exits(0).golden("ask-answer")
	b.here("interrupts", "answer", i.ID, "--answer", "red").exits(1).complains("no longer open: it is answered, answer by ", "answered once")
	b.here("runs", "show", i.RunID).exits(0).golden("ask-runs-show")
	b.here("runs", "events", i.RunID).exits(0).golden("ask-runs-events")
	b.here("sessions", "ls").exits(0).golden("ask-sessions-ls")
	b.here("interrupts", "ls").exits(0).complains("nothing waits for a person")
	b.here("interrupts", "ls", "--all").exits(0).says("answered")
	if got := lines[client.Interrupt](b.here("interrupts", "show", i.ID, "--json").exits(0)); string(got[0].Answer) != `"blue"` {
		t.Errorf("%+v", got)
	}
	if got := lines[client.Run](b.here("runs", "show", i.RunID, "--json").exits(0)); got[0].Output != "Then it is blue." {
		t.Errorf("%+v", got)
	}
	events := b.here("runs", "events", i.RunID, "--json").exits(0)
	if types := events.types(); types[0] != event.RunStarted || types[len(types)-1] != event.RunCompleted {
		t.Errorf("%v", types)
	}
	all := lines[event.Event](events)
	if rest := lines[event.Event](b.here("runs", "events", i.RunID, "--json", "--after", fmt.Sprint(all[3].Seq)).exits(0)); len(rest) != len(all)-4 {
		t.Errorf("%d of %d events after the fourth", len(rest), len(all))
	}
	b.here("runs", "events", i.RunID, "--follow").exits(2).complains("--follow needs --server")
}

// Several questions at once: after the first answer the run still waits.
func TestQuestions(t *testing.T) {
	b := newBench(t)
	b.agent("twice", "Go").exits(3)
	open := b.waiting()
	if len(open) != 2 {
		t.Fatalf("%+v", open)
	}
	b.here("interrupts", "ls", "-n", "1").exits(0).says(open[0].ID).complains("there are more interrupts: --limit 0")
	if all := b.here("interrupts", "ls", "-n", "0").exits(0).says(open[1].ID); all.err != "" {
		t.Error(all.err)
	}
	b.here("interrupts", "ls", "-n", "-1").exits(2).complains("must not be negative")
	b.here("interrupts", "answer", open[0].ID, "--answer", "one").exits(3).complains(open[1].ID)
	r := b.asJSON(func() *result { return b.here("interrupts", "answer", open[1].ID, "--answer", "two") }).exits(3).complains("waits for a person")
	if types := r.types(); types[0] != event.CheckpointResolved || !slices.Contains(types, event.CheckpointRequired) {
		t.Errorf("%v", types)
	}
	open = b.waiting()
	if len(open) != 1 || open[0].Prompt != "Third?" {
		t.Fatalf("%+v", open)
	}
	b.here("interrupts", "answer", open[0].ID, "--decision", "reject", "--reason", "no time").exits(0).says("Thanks.")
}

// A subagent's question is asked by the run that was started, and answering it
// goes on with that.
func TestQuestionOfASubagent(t *testing.T) {
	b := newBench(t)
	b.agent("boss", "Go").exits(3).says("Which colour?").complains("waits for a person", "interrupts answer run_")
	i := b.waiting()[0]
	if runs := lines[client.Run](b.here("runs", "ls", "--status", "paused_checkpoint", "--json").exits(0)); len(runs) != 2 || runs[0].ID != i.RunID || runs[1].ID != runs[0].RootID {
		t.Errorf("paused: %+v", runs)
	}
	b.here("interrupts", "answer", i.ID, "--answer", "blue").exits(0).says("My subagent: Then it is blue.")
	for _, r := range lines[client.Run](b.here("runs", "ls", "--json").exits(0)) {
		if r.Status != client.Completed {
			t.Errorf("%+v", r)
		}
	}
}

func TestUnknownIDs(t *testing.T) {
	b := newBench(t)
	b.agent("talk", "x").exits(0)
	for args, says := range map[string]string{
		"runs show run_x":                    "there is no run run_x",
		"runs events run_x":                  "there is no run run_x",
		"runs cancel run_x":                  "there is no run run_x",
		"sessions show ses_x":                "there is no session ses_x",
		"sessions rm ses_x":                  "there is no session ses_x",
		"interrupts show i_x":                "there is no interrupt i_x",
		"interrupts answer i_x --answer yes": "there is no interrupt i_x",
	} {
		b.here(strings.Fields(args)...).exits(1).complains(says)
	}
	b.here("runs", "ls", "--session", "ses_x").exits(0).complains("no runs")
}

func TestLimits(t *testing.T) {
	b := newBench(t)
	rt := b.open()
	for range 5 {
		if _, err := rt.CreateSession(t.Context(), agentd.SessionRequest{Title: "A\x1b[2J title"}); err != nil {
			t.Fatal(err)
		}
	}
	r := b.here("sessions", "ls", "-n", "3").exits(0).complains("there are more sessions: --limit 0")
	if n := strings.Count(r.out, "ses_"); n != 3 || strings.Contains(r.out, "\x1b") {
		t.Errorf("%d sessions: %q", n, r.out)
	}
	if r := b.here("sessions", "ls", "-n", "0").exits(0); strings.Count(r.out, "ses_") != 5 || r.err != "" {
		t.Errorf("%s%s", r.out, r.err)
	}
	if r := b.here("sessions", "ls", "-n", "5").exits(0); strings.Count(r.out, "ses_") != 5 || r.err != "" {
		t.Errorf("%s%s", r.out, r.err)
	}
}

func TestBudgetIsShown(t *testing.T) {
	b := newBench(t)
	rt := b.open()
	r, err := rt.Start(t.Context(), agentd.StartRequest{Profile: "talk", Input: agentd.Text("x"), Overrides: agentd.Overrides{MaxSteps: 9, MaxOutputTokens: 70}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Wait(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	b.here("runs", "show", r.ID).exits(0).says("budget   2 of 9 steps, at most 70 output tokens a reply\n")
	if got := lines[client.Run](b.here("runs", "show", r.ID, "--json").exits(0))[0].Budget; got == nil || got.Limits.MaxSteps != 9 || got.Used.Steps != 2 {
		t.Errorf("%+v", got)
	}
}

// What runs share is shown with the run, and by itself.
func TestSharedBudgetsAreShown(t *testing.T) {
	b := newBench(t)
	b.here("budgets").exits(1)
	rt := b.open()
	r, err := rt.Start(t.Context(), agentd.StartRequest{Profile: "talk", Input: agentd.Text("x"), Overrides: agentd.Overrides{MaxTokens: 100_000}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err = rt.Wait(t.Context(), r.ID); err != nil || r.Status != "completed" {
		t.Fatalf("%+v, %v", r, err)
	}
	b.here("runs", "show", r.ID).exits(0).says("budget   100000 tokens\n", "shares   run "+r.ID+": ", " of 100000 tokens\n")
	b.here("budgets").exits(0).says("KIND", "run   "+r.ID, " of 100000 tokens")
	b.here("budgets", "--kind", "session").exits(0).complains("no run has a budget")
	p := lines[client.Pot](b.here("budgets", "--json", "--id", r.ID).exits(0))
	if len(p) != 1 || p[0].Used.Tokens != r.Usage.Prompt()+r.Usage.Output || p[0].Limits.Tokens != 100_000 || p[0].Held.Tokens != 0 {
		t.Errorf("%+v", p)
	}
}

// stuck leaves a run in the store that was under way when its process ended.
func (b *bench) stuck() *agentd.Run {
	b.t.Helper()
	rt := b.open()
	ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
	defer cancel()
	r, err := rt.Start(ctx, agentd.StartRequest{Profile: "stuck", Input: agentd.Text("Go")})
	if err != nil {
		b.t.Fatal(err)
	}
	for ev, err := range rt.Watch(ctx, r.ID, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		if ev.Type == event.TextDelta {
			break
		}
	}
	if err := rt.Close(); err != nil {
		b.t.Fatal(err)
	}
	return r
}

func TestCancelHere(t *testing.T) {
	b := newBench(t)
	first, other := b.stuck(), b.stuck()
	b.agent("ask", "Paint it").exits(3) // this leaves both alone
	before := b.here("runs", "events", other.ID, "--json").exits(0).out
	b.here("runs", "cancel", first.ID, "--reason", "enough").exits(0).says("run " + first.ID + ": cancelled")
	b.here("runs", "show", first.ID).exits(0).says("status   cancelled\n")
	if now := b.here("runs", "events", other.ID, "--json").exits(0).out; now != before {
		t.Errorf("cancelling one run went on with another:\n%s", now)
	}
	b.here("runs", "cancel", first.ID).exits(0).says("cancelled") // once is as good as twice
	asked := b.waiting()[0].RunID
	if got := lines[client.Run](b.here("runs", "cancel", asked, "--json").exits(0)); got[0].Status != client.Cancelled {
		t.Errorf("%+v", got)
	}
	if open := b.waiting(); len(open) != 0 {
		t.Errorf("a cancelled run waits: %+v", open)
	}
	b.agent("talk", "x").exits(0)
	done := lines[client.Run](b.here("runs", "ls", "--status", "completed", "--json").exits(0))[0].ID
	b.here("runs", "cancel", done).exits(1).complains("has ended: completed")
}

func TestDeleteHere(t *testing.T) {
	b := newBench(t)
	r := b.stuck()
	b.here("sessions", "rm", r.SessionID).exits(1).complains("has not ended: it is running", "agentd runs cancel "+r.ID)
	b.here("runs", "cancel", r.ID).exits(0)
	b.here("sessions", "rm", r.SessionID).exits(0).says("is deleted")
	b.here("runs", "show", r.ID).exits(1).complains("there is no run")
	b.agent("talk", "x").exits(0)
	id := lines[client.Session](b.here("sessions", "ls", "--json").exits(0))[0].ID
	if got := lines[map[string]any](b.here("sessions", "rm", id, "--json").exits(0)); got[0]["deleted"] != true {
		t.Errorf("%v", got)
	}
}

// Beside a server a folder can be looked at and not changed.
func TestBesideAServer(t *testing.T) {
	b := newBench(t)
	b.agent("ask", "Paint it").exits(3)
	i := b.waiting()[0]
	b.open()
	b.here("runs", "ls").exits(0).says(i.RunID)
	b.here("runs", "show", i.RunID).exits(0).says("Which colour?")
	b.here("sessions", "show", i.SessionID).exits(0).says("Paint it")
	for _, args := range [][]string{
		{"interrupts", "answer", i.ID, "--answer", "blue"}, {"runs", "cancel", i.RunID}, {"sessions", "rm", i.SessionID},
	} {
		b.here(args...).exits(1).complains("a server is using this data folder", "Use --server URL")
	}
	if open := b.waiting(); len(open) != 1 {
		t.Errorf("%+v", open)
	}
}

// What is stored can be looked at whatever the configuration is like; only what
// must be known of it is asked for.
func TestBrokenConfiguration(t *testing.T) {
	b := newBench(t)
	b.agent("talk", "x").exits(0)
	r := lines[client.Run](b.here("runs", "ls", "--json").exits(0))[0]
	name := filepath.Join(b.configs, "agents", "talk.yaml")
	if err := os.WriteFile(name, []byte("profile_name: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.here("runs", "ls").exits(0).says(r.ID).complains("without the configuration", "talk.yaml")
	b.here("runs", "show", r.ID).exits(0).says("of an answer").says("hidden")
	b.here("sessions", "show", r.SessionID).exits(0).says("of an answer")
	b.here("interrupts", "ls").exits(0)
	b.run("runs", "ls", "--configs", b.configs).exits(0).says(r.ID) // the usual data folder
	b.agent("talk", "x").exits(2).complains("talk.yaml")
	// Which folder it is about is in agentd.yaml.
	if err := os.WriteFile(filepath.Join(b.configs, "agentd.yaml"), []byte("data: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.here("runs", "ls").exits(0).says(r.ID)
	b.run("runs", "ls", "--configs", b.configs).exits(2).complains("agentd.yaml")
	b.run("runs", "ls", "--configs", filepath.Join(b.configs, "none")).exits(2).complains("no such folder")
}
