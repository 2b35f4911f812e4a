package engine

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"agentd/event"
	"agentd/internal/prompt"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

func TestUnfitAnswers(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	for _, tt := range []struct {
		options prompt.Options
		answer  string
		want    string // "": it fits
	}{
		{prompt.Options{}, "words", ""},
		{prompt.Options{JSON: true}, ` {"a":1} `, ""},
		{prompt.Options{JSON: true}, `"text"`, ""},
		{prompt.Options{JSON: true}, "```json\n{}\n```", "not one JSON value"},
		{prompt.Options{JSON: true}, `{} {}`, "not one JSON value"},
		{prompt.Options{JSON: true}, `{"a":`, "not one JSON value"},
		{prompt.Options{JSON: true}, " ", "empty"},
		{prompt.Options{Schema: schema}, `{"n":1}`, ""},
		{prompt.Options{Schema: schema}, `{"n":12345678901234567890}`, ""},
		{prompt.Options{Schema: schema}, `{}`, "does not fit the schema"},
		{prompt.Options{Schema: schema}, `{"n":"1"}`, "not of the type"},
	} {
		m, _ := say(tt.answer)
		got := formOf(&tt.options).unfit(tool.NewValidator(), m)
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%+v, %q: %q", tt.options, tt.answer, got)
		}
	}
	m, _ := say("", call("a", "x", "{}"))
	if got := formOf(&prompt.Options{JSON: true}).unfit(tool.NewValidator(), m); got != "" {
		t.Errorf("a call: %q", got)
	}
}

// An answer that is no JSON where JSON was asked for is asked for once more; what comes
// then is the answer.
func TestAnswersInAnotherFormAreMended(t *testing.T) {
	for _, tt := range []struct {
		name   string
		second string
		events []string
	}{
		{"mended", `{"a":1}`, []string{"format_asked"}},
		{"not mended", "still words", []string{"format_asked", "format_missed"}},
	} {
		calls := 0
		h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
			if !req.JSON {
				t.Error("the model was not asked for JSON")
			}
			if calls++; calls == 1 {
				return say("words")
			}
			last := req.Messages[len(req.Messages)-1]
			if calls > 2 || !strings.Contains(last.Text(), "it is not one JSON value") {
				t.Errorf("call %d: %q", calls, last.Text())
			}
			return say(tt.second)
		})
		h.agents["test"].Options.JSON = true
		r := h.begin(StartRequest{})
		if !r.JSON {
			t.Error("who asks is not told that the answer is JSON")
		}
		if r = h.ends(r, "completed"); r.Output != tt.second || calls != 2 {
			t.Errorf("%s: %q after %d calls", tt.name, r.Output, calls)
		}
		var got []string
		for _, ev := range h.events(r) {
			if c, ok := ev.Data.(*event.Checkpoint); ok && ev.Type == event.CheckpointInfo {
				got = append(got, c.Kind)
			}
		}
		if !reflect.DeepEqual(got, tt.events) {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
