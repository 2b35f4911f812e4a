package client_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"agentd/client"
	"agentd/event"
	"agentd/fault"
)

// asked waits until a run asks somebody.
func asked(t *testing.T, c *client.Client, runID string) *event.Checkpoint {
	t.Helper()
	for ev, err := range c.Watch(timeout(t), runID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := ev.Data.(*event.Checkpoint); ok {
			return d
		}
	}
	t.Fatal("the run ended without asking")
	return nil
}

// A form that is not filled in is refused with everything that is wrong, and can
// be answered again.
func TestFormsAreChecked(t *testing.T) {
	c, _, _ := serve(t)
	ctx := timeout(t)
	r := start(t, c, "form")
	id := asked(t, c, r.ID).InterruptID
	for _, req := range []client.AnswerRequest{{Run: r.ID}, {Interrupt: id}} {
		req.Answer = json.RawMessage(`{"n":99}`)
		_, err := c.Answer(ctx, req)
		f := isKind(t, err, fault.Invalid)
		if f.Field != "answer" || f.Hint == "" || !strings.Contains(f.Err.Error(), "\n- n: ") || !strings.Contains(f.Err.Error(), "\n- to: is missing") {
			t.Errorf("%+v", f)
		}
		if i, err := c.Interrupt(ctx, id); err != nil || i.Status != "open" {
			t.Fatalf("%+v, %v", i, err)
		}
	}
	if _, err := c.Answer(ctx, client.AnswerRequest{Run: r.ID, Answer: json.RawMessage(`{"n":1,"to":"you"}`)}); err != nil {
		t.Fatal(err)
	}
	watch(t, c, r.ID, 0)
	if r, err := c.Run(ctx, r.ID); err != nil || r.Output != `Then it is {"n":1,"to":"you"}.` {
		t.Errorf("%+v, %v", r, err)
	}
}

// Interrupts are listed page by page.
func TestInterruptPages(t *testing.T) {
	c, _, _ := serve(t)
	ctx := timeout(t)
	var want, got []string
	for range 3 {
		want = append(want, asked(t, c, start(t, c, "ask").ID).InterruptID)
	}
	for cursor := ""; ; {
		page, next, err := c.Interrupts(ctx, "open", cursor, 2)
		if err != nil || len(page) == 0 || len(page) > 2 {
			t.Fatalf("%+v, %v", page, err)
		}
		for _, i := range page {
			got = append(got, i.ID)
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %v, not %v", got, want)
	}
	_, _, err := c.Interrupts(ctx, "", "?", 0)
	if f := isKind(t, err, fault.Invalid); f.Field != "cursor" || f.Hint == "" {
		t.Errorf("%+v", f)
	}
}
