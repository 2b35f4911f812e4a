package cli

import (
	"strings"
	"testing"
	"time"

	"agentd/client"
	"agentd/event"
	"agentd/message"
)

// story is a run with everything in it, at known times.
func story() []event.Event {
	var out []event.Event
	add := func(at int64, step int, t event.Type, data any) {
		out = append(out, event.Event{RunID: "run_1", Seq: int64(len(out) + 1), Time: 1_000_000 + at, Type: t, Step: step, Data: data})
	}
	usage := &message.Usage{Input: 100, CacheRead: 300, Output: 20, TotalTokens: 420, Cost: message.Cost{Total: message.Dollar / 100}}
	add(0, 0, event.RunStarted, &event.Started{Profile: "p", Warnings: []string{"no files"}})
	add(0, 1, event.StepStarted, &event.Step{Model: "fake/m"})
	add(500, 1, event.ModelRetry, &event.Retry{Attempt: 2, Class: "rate_limit", Message: "slow down", DelayMS: 500})
	add(1200, 1, event.TextDelta, &event.Delta{Text: "I will"})
	add(2000, 1, event.StepCompleted, &event.Step{StopReason: "tool_use", Usage: usage, CacheRatio: 0.75, ToolCalls: 4})
	for _, id := range []string{"a", "b", "c", "d"} {
		add(2000, 1, event.ToolInputStarted, &event.Tool{ToolCallID: id, Name: "tool_" + id})
	}
	add(2001, 1, event.ToolFailed, &event.Tool{ToolCallID: "d", Name: "tool_d", Result: "Not executed: the policy says no.", Decision: "deny", Reason: "dangerous"})
	add(2010, 1, event.ToolStarted, &event.Tool{ToolCallID: "a", Name: "tool_a", Args: []byte(`{"x":1}`)})
	add(2010, 1, event.ToolStarted, &event.Tool{ToolCallID: "b", Name: "tool_b", Args: []byte(`{"y":"\u001b[2J"}`)})
	add(2011, 1, event.CheckpointRequired, &event.Checkpoint{InterruptID: "i1", Kind: "approval", Prompt: "May tool_c run? (write)", ToolCall: &event.Tool{ToolCallID: "c", Name: "tool_c"}})
	add(4000, 1, event.ToolCompleted, &event.Tool{ToolCallID: "a", Name: "tool_a", Result: "fine", DurationMS: 1990})
	add(5000, 1, event.ToolFailed, &event.Tool{ToolCallID: "b", Name: "tool_b", Result: "no such \x1b[2J file", DurationMS: 2990})
	add(8000, 1, event.CheckpointResolved, &event.Checkpoint{InterruptID: "i1", Decision: "approve", Reason: "go on"})
	add(8000, 1, event.ToolStarted, &event.Tool{ToolCallID: "c", Name: "tool_c", Args: []byte(`{}`)})
	add(9000, 1, event.ToolCompleted, &event.Tool{ToolCallID: "c", Name: "tool_c", Result: "done"})
	add(9000, 2, event.StepStarted, &event.Step{Model: "fake/m"})
	add(9001, 2, event.CheckpointInfo, &event.Checkpoint{Kind: "rate_limited", Prompt: "The next model call waits."})
	add(10000, 2, event.StepCompleted, &event.Step{StopReason: "stop", Usage: usage})
	add(10000, 2, event.RunCompleted, &event.Ended{StopReason: "stop"})
	return out
}

func TestTimeline(t *testing.T) {
	line, err := readTimeline(func(yield func(event.Event, error) bool) {
		for _, ev := range story() {
			if !yield(ev, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	(&result{t: t, out: "|" + line.draw(120, true)}).golden("timeline-wide")
	(&result{t: t, out: "|" + line.draw(60, false)}).golden("timeline-narrow")
	for _, width := range []int{0, 40, 60, 100, 200} {
		for _, fancy := range []bool{true, false} {
			out := line.draw(width, fancy)
			for l := range strings.Lines(out) {
				if n := cellsOf(strings.TrimSuffix(l, "\n")); n > max(width, 40) {
					t.Errorf("width %d: %d characters in %q", width, n, l)
				}
			}
			if strings.ContainsRune(out, '\x1b') {
				t.Errorf("control characters in %q", out)
			}
		}
	}
	if c := line.Steps[0].Calls[2]; c.Name != "tool_c" || c.Waits[0].ToMS-c.Waits[0].FromMS != 5989 || c.Outcome != "ok" || line.Steps[0].Calls[3].Outcome != "refused" {
		t.Errorf("%+v", c)
	}
	if line.TotalMS != 10000 || line.Status != "completed" || line.Steps[0].FirstMS != 1200 {
		t.Errorf("%+v", line)
	}
}

// What took a night must not leave the rest without room, and what is told of a step is
// told on narrow terminals too.
func TestTimelineWithALongWait(t *testing.T) {
	const night = 12 * 3600 * 1000
	line, err := readTimeline(func(yield func(event.Event, error) bool) {
		for _, ev := range story() {
			if ev.Time >= 1_000_000+8000 {
				ev.Time += night
			}
			if !yield(ev, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	out := line.draw(80, true)
	rows := strings.Split(out, "\n")
	if !strings.Contains(rows[0], "12h00m  (waits are drawn shorter") {
		t.Errorf("the ruler is %q", rows[0])
	}
	var steps []string
	for _, row := range rows {
		if strings.Contains(row, "fake/m") {
			steps = append(steps, row)
		}
	}
	if len(steps) != 2 || strings.Count(steps[0], "█") < 3 || strings.Count(steps[1], "█") < 2 {
		t.Errorf("steps:\n%s", strings.Join(steps, "\n"))
	}
	out = strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"75% cached", "$0.01", "answered after 12h00m: approve (go on)", "dangerous"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	a := newAxis(line)
	for ms, last := int64(0), int64(0); ms <= line.TotalMS; ms += 997 {
		at := a.place(ms)
		if at < last || at > a.total {
			t.Fatalf("%d ms is drawn at %d, after %d, of %d", ms, at, last, a.total)
		}
		last = at
	}
}

// Wide characters take two places, marks on others none.
func TestTimelineOfWideTexts(t *testing.T) {
	if got := cellsOf("言葉 e\u0301 🙂"); got != 9 {
		t.Errorf("%d", got)
	}
	for _, row := range wrap("label", []string{"a fact", strings.Repeat("言葉 word ", 20) + strings.Repeat("葉", 60), "another", strings.Repeat("x", 31)}, 31) {
		if n := cellsOf(row); n > 31 {
			t.Errorf("%d cells in %q", n, row)
		}
	}
}

// What people wanted of a run is in its trace, and what subagents used in its events.
func TestTimelineTellsOfPeopleAndSubagents(t *testing.T) {
	b := newBench(t)
	b.agent("boss", "x").exits(exitPaused)
	id := lines[client.Run](b.here("runs", "ls", "--json").exits(0))[1].ID
	b.here("interrupts", "answer", b.waiting()[0].ID, "--answer", "red").exits(0)
	b.here("runs", "show", id).exits(0).says(".c1 completed", "a subagent asks (question): Which colour?", "allow: ")
	b.agent("ask", "x").exits(exitPaused)
	id = b.waiting()[0].RunID
	b.here("runs", "cancel", id, "--reason", "never mind").exits(0)
	b.here("runs", "show", id).exits(0).says("asked to stop: never mind")
}

// A run that goes on is drawn as far as it came.
func TestTimelineUnderWay(t *testing.T) {
	all := story()
	for n := range all {
		line, err := readTimeline(func(yield func(event.Event, error) bool) {
			for _, ev := range all[:n] {
				if !yield(ev, nil) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		_ = line.draw(80, true)
	}
}

func TestTimelineAndTraceOfARun(t *testing.T) {
	b := newBench(t)
	b.agent("talk", "x").exits(0)
	id := lines[client.Run](b.here("runs", "ls", "--json").exits(0))[0].ID
	b.here("runs", "show", id, "--width", "120").exits(0).says("timeline", "1 script/m", "✓ glob", "✗ file_read", "75% cached", "allow: no rule asks for approval")
	got := lines[timeline](b.here("runs", "show", id, "--json", "--timeline").exits(0))[0]
	if got.RunID != id || len(got.Steps) != 2 || len(got.Steps[0].Calls) != 2 || got.Steps[0].Calls[1].Outcome != "error" {
		t.Errorf("%+v", got)
	}
	b.here("runs", "trace", id).exits(0).says("Started", "ModelDone", "→ CallModel", "→ CallTool", "ToolDone")
	all := lines[client.Trace](b.here("runs", "trace", id, "--json").exits(0))
	if len(all) != 7 || all[0].N != 1 || all[0].Input != "Started" {
		t.Errorf("%+v", all)
	}
	for _, row := range all {
		if _, err := time.Parse(time.RFC3339, row.Time); err != nil {
			t.Error(err)
		}
	}
	some := lines[client.Trace](b.here("runs", "trace", id, "--json", "--after", "2", "-n", "3").exits(0))
	if len(some) != 3 || some[0].N != 3 || some[0].Input != all[2].Input || some[2].N != 5 {
		t.Errorf("%+v", some)
	}
	b.here("runs", "trace", "run_x").exits(1).complains("there is no run run_x")
	b.here("runs", "trace", id, "-n", "-1").exits(2).complains("must not be negative")
}
