package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentd/event"
	"agentd/fault"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// recording is what a reader got: deltas joined, events between them by type.
type recording struct {
	types []string
	text  map[int]string
	last  int64
}

// watch reads a run from a number on until the end, or until enough says so.
func (h *harness) watch(ctx context.Context, id string, rec *recording, enough func(event.Event) bool) error {
	for ev, err := range h.engine.Watch(ctx, ref(id), rec.last) {
		if err != nil {
			return err
		}
		first := ev.Seq
		d, isDelta := ev.Data.(*event.Delta)
		if isDelta {
			first -= int64(len(d.Text)) - 1
		}
		if first <= rec.last {
			return errors.New("what was seen came again: " + string(ev.Type))
		}
		rec.last = ev.Seq
		if isDelta {
			if rec.text == nil {
				rec.text = map[int]string{}
			}
			rec.text[ev.Step] += d.Text
		} else {
			rec.types = append(rec.types, string(ev.Type))
		}
		if enough != nil && enough(ev) {
			return nil
		}
	}
	return nil
}

// chatty says a long text in small pieces, calls a tool, and says another.
func chatty(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
	if step == 0 {
		return say(strings.Repeat("one two three ", 40), call("a", "work", `{}`))
	}
	return say(strings.Repeat("four five ", 60))
}

// Whenever a reader comes, it gets the same.
func TestWatchBeforeDuringAndAfter(t *testing.T) {
	g := newGate()
	h := newHarness(t, chatty, gated("work", tool.Read, g))
	first := h.run("go")
	<-g.entered
	queued := h.begin(StartRequest{SessionID: first.SessionID})
	const readers = 12
	recs := make([]recording, 3*readers)
	errs := make([]error, len(recs))
	var all sync.WaitGroup
	for n := range readers { // before the second run starts, and during the first
		all.Go(func() { errs[n] = h.watch(t.Context(), queued.ID, &recs[n], nil) })
		all.Go(func() { errs[readers+n] = h.watch(t.Context(), first.ID, &recs[readers+n], nil) })
	}
	h.until("everybody watches", func() bool {
		h.engine.mu.Lock()
		defer h.engine.mu.Unlock()
		a, b := h.engine.streams[ref(first.ID)], h.engine.streams[ref(queued.ID)]
		return a != nil && b != nil && a.refs >= readers && b.refs >= readers
	})
	close(g.open)
	h.ends(queued, "completed")
	for n := range readers { // after
		all.Go(func() { errs[2*readers+n] = h.watch(t.Context(), queued.ID, &recs[2*readers+n], nil) })
	}
	all.Wait()
	want := recs[len(recs)-1]
	if want.text[1] != strings.Repeat("one two three ", 40) || want.text[2] != strings.Repeat("four five ", 60) {
		t.Errorf("the stored text is %v", want.text)
	}
	for n, rec := range recs {
		// A queued run's tool_input_started is merely under way: who comes
		// early may see it where it happens.
		if errs[n] != nil || !slices.Equal(rec.types, want.types) || rec.text[1] != want.text[1] || rec.text[2] != want.text[2] {
			t.Errorf("reader %d: %v\n%v\nwant\n%v", n, errs[n], rec.types, want.types)
		}
	}
	h.gone(first)
	h.gone(queued)
}

// A reader that goes on from the middle of a delta gets exactly the rest.
func TestWatchFromTheMiddleOfADelta(t *testing.T) {
	g := newGate()
	h := newHarness(t, nil)
	h.agents["test"].Models[0].Provider = streamer{"Hello world", g}
	r := h.run("go")
	<-g.entered
	var start recording
	if err := h.watch(t.Context(), r.ID, &start, func(ev event.Event) bool { return ev.Type == event.StepStarted }); err != nil {
		t.Fatal(err)
	}
	after := start.last + 6 // behind "Hello "
	live := recording{last: after}
	if err := h.watch(t.Context(), r.ID, &live, func(ev event.Event) bool { return ev.Type.Delta() }); err != nil || live.text[1] != "world" {
		t.Errorf("live: %v, %v", live.text, err)
	}
	close(g.open)
	h.ends(r, "completed")
	stored := recording{last: after}
	if err := h.watch(t.Context(), r.ID, &stored, nil); err != nil || stored.text[1] != "world" {
		t.Errorf("stored: %v, %v", stored.text, err)
	}
	past := recording{last: 1 << 40}
	if err := h.watch(t.Context(), r.ID, &past, nil); err != nil || len(past.types) != 0 {
		t.Errorf("from behind the end: %v, %v", past.types, err)
	}
}

// A reader that falls behind is disconnected, does not slow the run, and loses
// nothing when it goes on.
func TestASlowReaderGoesOnWithoutLoss(t *testing.T) {
	g, tools := newGate(), newGate()
	h := newHarness(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
		if step == 0 {
			if err := g.pass(ctx); err != nil {
				return nil, err
			}
		}
		return chatty(ctx, step, req)
	}, gated("work", tool.Read, tools))
	h.engine.cfg.ReaderBuffer = 8
	r := h.run("go")
	<-g.entered
	var slow recording
	wait := make(chan struct{})
	errs := make(chan error)
	go func() {
		errs <- h.watch(t.Context(), r.ID, &slow, func(ev event.Event) bool {
			if ev.Type == event.StepStarted {
				wait <- struct{}{} // the reader is here …
				<-wait             // … and does not move
			}
			return false
		})
	}()
	<-wait
	close(g.open)
	<-tools.entered // the whole reply has streamed by
	close(wait)
	if err := <-errs; !errors.Is(err, ErrSlowReader) {
		t.Fatalf("the slow reader got %v", err)
	}
	close(tools.open)
	h.ends(r, "completed")
	if err := h.watch(t.Context(), r.ID, &slow, nil); err != nil {
		t.Fatal(err)
	}
	var whole recording
	if err := h.watch(t.Context(), r.ID, &whole, nil); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(slow.types, whole.types) || slow.text[1] != whole.text[1] || slow.text[2] != whole.text[2] {
		t.Errorf("the slow reader has\n%v\n%v\nwant\n%v\n%v", slow.types, slow.text, whole.types, whole.text)
	}
}

func TestWatchEndsWithItsReader(t *testing.T) {
	g := newGate()
	h := newHarness(t, twoTools, gated("echo", tool.Read, g))
	r := h.run("go")
	<-g.entered
	ctx, cancel := context.WithCancel(t.Context())
	var rec recording
	err := h.watch(ctx, r.ID, &rec, func(ev event.Event) bool {
		if ev.Type == event.ToolStarted {
			cancel()
		}
		return false
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a reader that left: %v", err)
	}
	close(g.open)
	h.ends(r, "completed") // which nobody watched
	if err := h.watch(t.Context(), "run_x", &rec, nil); fault.KindOf(err) != fault.NotFound {
		t.Errorf("no run: %v", err)
	}
	for _, err := range h.engine.Watch(t.Context(), Ref{"other", r.ID}, 0) {
		if fault.KindOf(err) != fault.NotFound {
			t.Errorf("another tenant's run: %v", err)
		}
	}
}

// Readers of an engine that closes are told, and go on at the next one without
// seeing anything twice. The partial text of the step that was broken off is void.
func TestWatchGoesOnAtTheNextEngine(t *testing.T) {
	g := newGate()
	h := newHarness(t, nil)
	h.agents["test"].Models[0].Provider = streamer{"Half a sentence", g}
	r := h.run("go")
	<-g.entered
	var rec recording
	errs := make(chan error)
	seen := make(chan struct{})
	go func() {
		errs <- h.watch(t.Context(), r.ID, &rec, func(ev event.Event) bool {
			if ev.Type.Delta() {
				close(seen)
			}
			return false
		})
	}()
	<-seen
	h.engine.Close()
	if err := <-errs; fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a reader of a closed engine: %v", err)
	}
	if rec.text[1] != "Half a sentence" {
		t.Errorf("it has %v", rec.text)
	}
	rec.text = nil // as run_resumed says
	close(g.open)
	h.start()
	if err := h.watch(t.Context(), r.ID, &rec, nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(rec.types, " "); got != "run_started step_started run_resumed step_completed final_text run_completed" || rec.text[1] != "Half a sentence" {
		t.Errorf("%s, %v", got, rec.text)
	}
}

// What a tool tells while it works is seen live and kept.
func TestProgressOfTools(t *testing.T) {
	late := make(chan func(tool.Progress), 1)
	h := newHarness(t, oneCall("work", `{}`), toolFunc{tool.Spec{Name: "work", Effect: tool.Read}, func(_ context.Context, c tool.Call) (tool.Result, error) {
		c.Progress(tool.Progress{Stdout: "out"})
		c.Progress(tool.Progress{Stderr: "err"})
		c.Progress(tool.Progress{Message: "half", Done: 1, Total: 2})
		late <- c.Progress
		return tool.TextResult("done"), nil
	}})
	r := h.ends(h.run("go"), "completed")
	(<-late)(tool.Progress{Stdout: "after the end"})
	got := kinds(h.events(r))
	if want := "tool_started tool_stdout tool_stderr tool_progress tool_completed"; !strings.Contains(got, want) {
		t.Errorf("events: %s", got)
	}
	if stored := h.stored(r); stored != got {
		t.Errorf("stored: %s", stored)
	}
}
