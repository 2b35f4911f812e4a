package engine

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"agentd/internal/run"
	"agentd/message"
	"agentd/model"
)

// The bound of a request comes from what the last reply told, where that holds, and
// from bytes where it does not.
func TestInputBound(t *testing.T) {
	said := func(role message.Role, text string, at int64, u *message.Usage) message.Message {
		return message.Message{Role: role, Content: []message.Block{message.Text(text)}, Timestamp: at, Usage: u, Provider: "p", Model: "m-2026"}
	}
	long := strings.Repeat("long ", 2000)
	used := &message.Usage{Input: 900, CacheRead: 1100, Output: 50}
	req := &model.Request{System: []model.SystemPart{{Text: strings.Repeat("s", 500)}}, Messages: []message.Message{
		said(message.RoleUser, "example", 0, nil), said(message.RoleUser, long, 1, nil), said(message.RoleAssistant, "short", 2, used), said(message.RoleUser, "and?", 3, nil)}}
	bytes := inputBound(req)
	if bytes < 10_500 || bytes > 11_000 {
		t.Errorf("by bytes %d", bytes)
	}
	from := []origin{{own: true}, {run: "r"}, {own: true}}
	if got := remembered(req, "p/m", 1, from, 0); got < 2050+500+4 || got > 3000 {
		t.Errorf("remembered %d", got)
	}
	for what, name := range map[string]string{"another model": "p/n", "another provider": "q/m"} {
		if got := remembered(req, name, 1, from, 0); got != 0 {
			t.Errorf("%s: %d", what, got)
		}
	}
	// A client's history, a guess, and the reply to a request that was cut tell nothing.
	if got := remembered(req, "p/m", 1, make([]origin, 3), 0); got != 0 {
		t.Errorf("of a client's history %d", got)
	}
	for what, change := range map[string]func(m *message.Message){
		"a guess": func(m *message.Message) { u := *used; u.Estimated = true; m.Usage = &u },
		"a cut":   func(m *message.Message) { m.Details = json.RawMessage(readCut) },
	} {
		r := *req
		r.Messages = slices.Clone(req.Messages)
		if change(&r.Messages[2]); remembered(&r, "p/m", 1, from, 0) != 0 {
			t.Errorf("%s is believed", what)
		}
	}
	for _, tt := range []struct {
		u   *message.Usage
		g   *grant
		has bool
	}{{used, &grant{}, true}, {used, &grant{cut: true}, false}, {&message.Usage{Input: 9, Estimated: true}, &grant{}, false}} {
		d := &driver{grant: tt.g, state: run.State{Model: &run.ModelCall{}}}
		if d.measure(tt.u); (d.measured.tokens > 0) != tt.has {
			t.Errorf("%+v, cut %v: measured %+v", tt.u, tt.g.cut, d.measured)
		}
	}
	k := measured{index: 1, upto: 2, tokens: 2050}
	if got := k.bound(req, 1, 1); got < 2054 || got > 2200 {
		t.Errorf("measured %d", got)
	}
	for what, got := range map[string]int64{"another model": k.bound(req, 0, 1), "a shorter conversation": (&measured{index: 1, upto: 9, tokens: 1}).bound(req, 1, 1), "nothing": (&measured{}).bound(req, 0, 1)} {
		if got != bytes {
			t.Errorf("%s: %d", what, got)
		}
	}
	// Nor does what was said ahead of a compaction, whatever the clocks of other nodes say.
	if got := remembered(req, "p/m", 1, []origin{{own: true}, {run: "r", kept: true}, {own: true}}, 0); got != 0 {
		t.Errorf("ahead of a compaction %d", got)
	}
	// A summary that came later is not in what the reply read.
	req.Messages[1].Timestamp = 9
	if got := remembered(req, "p/m", 1, from, 0); got != 0 {
		t.Errorf("with a summary %d", got)
	}
	req.Messages[3].Content = append(req.Messages[3].Content, message.Image("AA", "image/png"))
	if got := inputBound(req) - bytes; got < boundImage {
		t.Errorf("an image is %d", got)
	}
}

// Results are shortened from the longest on, at characters, by what is asked for.
func TestShorten(t *testing.T) {
	result := func(text string) message.Message { return message.ToolResult("c", "t", false, message.Text(text)) }
	msgs := []message.Message{result(strings.Repeat("old", 900)), {Role: message.RoleAssistant}, result(strings.Repeat("é", 1000)), result("short")}
	for _, n := range []int64{1, 100, 555, 1500, 1 << 40} {
		got := shorten(msgs, n)
		if saved := messagesBound(msgs) - messagesBound(got); saved < min(n, 1900) || saved > n+4 && n < 1900 {
			t.Errorf("%d: %d were saved", n, saved)
		}
		if !utf8.ValidString(got[2].Text()) || got[0].Text() != msgs[0].Text() || len(msgs[2].Text()) != 2000 {
			t.Errorf("%d: %q", n, got[2].Text())
		}
	}
}
