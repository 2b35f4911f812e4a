package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"agentd/client"
	"agentd/event"
)

func TestRunDemo(t *testing.T) {
	b := newBench(t)
	b.run("run", "--data", b.data, "Have a look around").exits(0).
		says(`You asked: "Have a look around"`, `"The example"`, "main.go:1:", "→ glob", "✓ file_read", "completed after 3 steps").
		complains("a script plays the model")
	r := b.asJSON(func() *result { return b.run("run", "--data", b.data, "Have a look around") }).exits(0)
	types := r.types()
	if n := len(types); types[0] != event.RunStarted || types[n-1] != event.RunCompleted || !slices.Contains(types, event.ToolCompleted) {
		t.Errorf("events %v", types)
	}
	if runs := lines[client.Run](b.json("runs", "ls")); len(runs) != 2 { // the user's data folder is the default
		t.Errorf("%+v", runs)
	}
}

// json runs a command with --json.
func (b *bench) json(args ...string) *result {
	b.t.Helper()
	return b.run(append(args, "--json")...).exits(0)
}

func TestRunForPeople(t *testing.T) {
	b := newBench(t)
	b.agent("talk", "Say something").exits(0).golden("run")
}

func TestRunReadsStandardInput(t *testing.T) {
	b := newBench(t)
	b.agent("demo", "-").exits(0).says(`You asked: "from standard input"`)
}

func TestSessionGoesOn(t *testing.T) {
	b := newBench(t)
	first := lines[event.Event](b.asJSON(func() *result { return b.agent("talk", "One") }).exits(0))
	session := first[0].Data.(*event.Started).SessionID
	b.agent("talk", "Two", "--session", session).exits(0)
	show := b.here("sessions", "show", session).exits(0).golden("sessions-show")
	if strings.Index(show.out, "One") > strings.Index(show.out, "Two") {
		t.Error("the conversation is out of order")
	}
	if runs := lines[client.Run](b.here("runs", "ls", "--session", session, "--json").exits(0)); len(runs) != 2 || runs[0].SessionID != session {
		t.Errorf("%+v", runs)
	}
	b.agent("talk", "Three", "--session", "ses_none").exits(1).complains("there is no session ses_none")
}

func TestExitCodes(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct {
		args string
		code int
		says string
	}{
		{"run -p fail x", 1, ""},
		{"run -p nobody x", 2, "no profile is named"},
		{"run -p talk --session ses_none x", 1, "no session"},
		{"run", 2, "one directive"},
		{"run a b", 2, "one directive"},
		{"run --mode sideways x", 2, "sideways"},
		{"run --mode sideways x", 2, "ask, plan, edit"},
		{"run --mode plan,autonomous,edit x", 2, "exclude each other"},
		{"run --nonsense x", 2, "unknown flag: --nonsense"},
		{"run --configs /none x", 2, "there is no such folder"},
		{"runs ls --limit many", 2, "invalid argument"},
		{"runs ls --limit -1", 2, "negative"},
		{"runs ls --status odd", 2, "use queued, running"},
		{"runs show", 2, "the id of a run"},
		{"runs show a b", 2, "the id of a run"},
		{"runs events x --after -1", 2, "negative"},
		{"runs frobnicate", 2, "ls, show, events, trace, cancel, steer, resume or proposals"},
		{"runs ls --server http://127.0.0.1:1 --data x", 2, "not both"},
		{"runs ls --server nowhere", 2, "http://127.0.0.1:7070"},
		{"runs ls --server http://127.0.0.1:1", 1, "can not be reached"},
		{"runs ls --data :memory:", 2, "name a folder"},
		{"runs ls --data /none/such", 1, "no such file"},
		{"sessions frobnicate", 2, "ls, show, tree, navigate, branch, label, mode, model, thinking, fork, export, import, compact, rm, artifacts, cache, rules or revoke"},
		{"sessions ls --limit -1", 2, "negative"},
		{"interrupts frobnicate", 2, "ls, show or answer"},
		{"interrupts answer x", 2, "--decision"},
		{"interrupts answer x --decision perhaps", 2, "approve, reject"},
		{"interrupts answer x --decision approve --args [1]", 2, "not a JSON object"},
		{"interrupts answer x --decision approve --args {", 2, "not a JSON object"},
		{"config frobnicate", 2, "check or init"},
		{"config check a b", 2, "one folder"},
		{"config init a b", 2, "one folder"},
		{"serve x", 2, "no arguments"},
		{"serve --addr 0.0.0.0:0", 2, "reachable from other machines"},
		{"serve --addr nonsense", 2, "host and port"},
		{"sim --script /none.yaml", 2, "/none.yaml"},
		{"completion foo", 2, "bash, fish, powershell or zsh"},
		{"completion bash foo", 2, "no arguments"},
		{"help bogus", 2, "there is no command \"bogus\""},
		{"help runs bogus", 2, "there is no command \"runs bogus\""},
		{"rum", 2, "did you mean run"},
		{"--nonsense", 2, "unknown flag"},
	} {
		args := strings.Fields(tt.args)
		if args[0] == "run" && (tt.code < 2 || strings.Contains(tt.says, "no profile")) {
			args = append(args, "--configs", b.configs)
		}
		b.run(args...).exits(tt.code).complains(tt.says)
	}
	for _, args := range []string{"", "--help", "runs", "sessions", "interrupts", "config", "runs ls --help", "help", "help run", "help runs ls", "completion", "completion --help", "--version"} {
		if r := b.run(strings.Fields(args)...).exits(0); r.out == "" {
			t.Errorf("agentd %s prints nothing", args)
		}
	}
	b.run("completion", "bash").exits(0).says("complete -", "__agentd")
}

func TestFailedRun(t *testing.T) {
	b := newBench(t)
	b.agent("fail", "Try").exits(1).says("failed (model_error) after 1 step,")
	id := lines[client.Run](b.here("runs", "ls", "--status", "failed", "--json").exits(0))[0].ID
	b.here("runs", "show", id).exits(0).says("failed (model_error)", "error")
}

func TestCancelledRun(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		t.Run(fmt.Sprint("terminal ", terminal), func(t *testing.T) {
			b := newBench(t)
			b.terminal = terminal
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := b.runIn(ctx, after("one", func(string) { cancel() }), "run", "--data", b.data, "--configs", b.configs, "-p", "stuck", "Go").exits(130)
			if terminal {
				r.says("cancelled after 1 step,")
			} else if types := r.types(); types[len(types)-1] != event.RunCancelled {
				t.Errorf("events %v", types)
			}
			if runs := lines[client.Run](b.here("runs", "ls", "--json").exits(0)); len(runs) != 1 || runs[0].Status != client.Cancelled {
				t.Errorf("%+v", runs)
			}
		})
	}
}

// What tools and models say must not drive the terminal.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":          "plain\ttext\n",
		"\x1b[31mred\x1b[0m":     "[31mred[0m",
		"bell\a and \x00 and \r": "bell and  and ",
		"c1 \u009b2J":            "c1 2J",
		"wide 言葉 é":              "wide 言葉 é",
	} {
		if got := printable(in); got != want {
			t.Errorf("%q became %q, not %q", in, got, want)
		}
	}
	if got := shorten("a\x1b]0;title\a  b\nc", 80); got != "a]0;title b c" {
		t.Errorf("%q", got)
	}
}

// A limit that is used up is said plainly, also by the next process.
func TestRunOverALimit(t *testing.T) {
	b := newBench(t)
	b.add("agents/slow.yaml", "profile_name: slow\nprimary_model: {provider: script, model: m, script: talk.yaml}\nrate_limits: {per_user: {requests_per_minute: 1}}\n")
	b.agent("slow", "Look").exits(0)
	b.agent("slow", "Look again").exits(1).complains("this user used up its limit of 1 requests per minute (rate_limits.per_user.requests_per_minute); there is room again in",
		"Try again later, or raise rate_limits.per_user in the profile.")
	b.agent("talk", "Look elsewhere").exits(0)
}

// Why a run waits is shown, and what no person is to answer is no question.
func TestWaitsAreShown(t *testing.T) {
	var out bytes.Buffer
	p := &printer{out: &out, err: io.Discard}
	p.event(event.Event{Type: event.CheckpointInfo, Data: &event.Checkpoint{Kind: "rate_limited", Prompt: "The next model call waits."}})
	p.event(event.Event{Type: event.CheckpointInfo, Data: &event.Checkpoint{Kind: "waiting"}})
	if out.String() != "… The next model call waits.\n" {
		t.Errorf("%q", out.String())
	}
}
