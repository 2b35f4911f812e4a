package engine

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"agentd/fault"
	"agentd/internal/prompt"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// A run goes on from any entry of its session, at once or when its turn comes; what was
// said after it stays.
func TestRunFromAnEntry(t *testing.T) {
	var rec recorder
	g := newGate()
	h := newHarness(t, rec.model, gated("work", tool.Read, g))
	ses := h.ends(h.begin(StartRequest{Input: blocks("one")}), "completed").SessionID
	one := h.said(ses, "I hear one.")
	h.ends(h.begin(StartRequest{SessionID: ses, Input: blocks("two")}), "completed")
	h.ends(h.begin(StartRequest{SessionID: ses, From: one, Input: blocks("three")}), "completed")
	if rec.last() != "one|I hear one.|three" {
		t.Errorf("the model was shown %q", rec.last())
	}
	h.ends(h.begin(StartRequest{SessionID: ses, From: Root, Input: blocks("four")}), "completed")
	if rec.last() != "four" {
		t.Errorf("the model was shown %q", rec.last())
	}
	// In the queue behind another run, over a restart.
	busy := h.begin(StartRequest{SessionID: ses, Input: blocks("go")})
	<-g.entered
	queued := h.begin(StartRequest{SessionID: ses, From: one, Input: blocks("five"), History: []message.Message{
		message.User("a"), {Role: message.RoleAssistant, Content: append(blocks("b"), call("c", "look", `{}`))}, message.ToolResult("other", "look", false), message.User("d")}})
	h.restart()
	close(g.open)
	h.ends(busy, "completed")
	h.ends(queued, "completed")
	// What no provider would take was mended: a result without a call, a call without one.
	if want := "one|I hear one.|a|b|" + session.Interrupted + "|d|five"; rec.last() != want {
		t.Errorf("the model was shown %q, want %q", rec.last(), want)
	}
	want := `*1<0 messageuser one
*2<1 messageassistant I hear one.
 3<2 messageuser two
 4<3 messageassistant I hear two.
 5<2 messageuser three
 6<5 messageassistant I hear three.
 7<0 messageuser four
 8<7 messageassistant I hear four.
 9<8 messageuser go
 10<9 messageassistant → work
 11<10 messagetoolResult work: work is done
 12<11 messageassistant Done.
*13<2 messageuser a
*14<13 messageassistant b → look
*15<14 messagetoolResult look: Tool execution was interrupted.
*16<15 messageuser d
*17<16 messageuser five
*18<17 messageassistant I hear five.
leaf 18
`
	if got := h.drawn(ses); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for _, c := range []struct {
		req  StartRequest
		want string
	}{
		{StartRequest{SessionID: ses, From: "nope"}, "no way to an entry nope"}, {StartRequest{From: one}, "give session_id"},
		{StartRequest{SessionID: ses, From: one, WhenBusy: Steer}, "another when_busy"}, {StartRequest{SessionID: ses, History: []message.Message{message.User("x")}}, "its own history"},
	} {
		c.req.Input = blocks("x")
		_, err := h.engine.Start(t.Context(), c.req)
		h.refuses(err, fault.Invalid, c.want)
	}
}

// Results of calls that a client performed come behind those calls.
func TestHistoryBehindCalls(t *testing.T) {
	assistant := message.Message{Role: message.RoleAssistant, StopReason: message.StopToolUse, Content: []message.Block{call("a", "x", `{}`), call("b", "x", `{}`)}}
	entries := func(msgs ...message.Message) (out []*store.Entry) {
		for _, m := range msgs {
			body, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, &store.Entry{ID: "e", Kind: session.KindMessage, Body: body})
		}
		return out
	}
	result := func(id string) message.Message { return message.ToolResult(id, "x", false, message.Text(id)) }
	for _, c := range []struct {
		name string
		path []*store.Entry
		add  []message.Message
		want string
	}{
		{"all results", entries(message.User("u"), assistant), []message.Message{result("a"), result("b")}, "a b"},
		{"one of them", entries(message.User("u"), assistant), []message.Message{result("b")}, "b a!"},
		{"none", entries(message.User("u"), assistant), []message.Message{message.User("next")}, "a! b! user"},
		{"one is there", entries(message.User("u"), assistant, result("a")), []message.Message{result("b"), message.User("next")}, "b user"},
		{"all are there", entries(message.User("u"), assistant, result("a"), result("b")), []message.Message{result("b"), message.User("next")}, "user"},
		{"no calls", entries(message.User("u")), []message.Message{result("b"), message.User("next")}, "user"},
		{"nothing ahead", nil, []message.Message{message.User("next"), assistant}, "user assistant a! b!"},
		{"a failed reply", entries(message.User("u"), message.Message{Role: message.RoleAssistant, StopReason: message.StopError, Content: assistant.Content}), []message.Message{result("a"), message.User("next")}, "user"},
		{"nothing to add", entries(message.User("u"), assistant), nil, ""},
	} {
		var got []string
		for _, m := range behind(c.path, c.add) {
			s := string(m.Role)
			if m.Role == message.RoleToolResult {
				if s = m.ToolCallID; m.IsError {
					s += "!"
				}
			}
			got = append(got, s)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
	}
}

// A run that started elsewhere and is rolled back leaves the session where it stood.
func TestRollbackOfARunFromAnEntry(t *testing.T) {
	var rec recorder
	g := newGate()
	h := newHarness(t, rec.model, gated("work", tool.Read, g))
	ses := h.ends(h.begin(StartRequest{Input: blocks("one")}), "completed").SessionID
	one := h.said(ses, "I hear one.")
	h.ends(h.begin(StartRequest{SessionID: ses, Input: blocks("two")}), "completed")
	r := h.begin(StartRequest{SessionID: ses, From: one, Input: blocks("go")})
	<-g.entered
	next := h.rollBack(ses, "three")
	h.ends(r, "cancelled")
	h.ends(next, "completed")
	if want := "one|I hear one.|two|I hear two.|three"; rec.last() != want {
		t.Errorf("the model was shown %q, want %q", rec.last(), want)
	}
}

// What is known of the world goes with what is said now, not with the history that a
// client brings; and a message that is said otherwise does not bring it back as words.
func TestContextGoesWithTheNewestMessage(t *testing.T) {
	var last *model.Request
	h := newHarness(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
		last = req
		return listener(ctx, step, req)
	})
	var asked []string
	h.agents["test"].Context = []ContextSource{func(_ context.Context, of *ContextRequest) ([]prompt.Block, error) {
		asked = append(asked, of.Words)
		return []prompt.Block{block("world", "w")}, nil
	}}
	ses, err := h.engine.CreateSession(t.Context(), SessionRequest{Tenant: store.DefaultTenant})
	if err != nil {
		t.Fatal(err)
	}
	h.ends(h.begin(StartRequest{SessionID: ses.ID, From: Root, Input: blocks("now"), ContextBlocks: []ContextBlock{block("tree", "t")}, History: []message.Message{
		message.User("then"), {Role: message.RoleAssistant, Content: blocks("So it was.")}}}), "completed")
	var got [][]string
	for i := range last.Messages {
		got = append(got, beside(&last.Messages[i]))
	}
	if want := [][]string{nil, nil, {"world=w", "tree=t"}}; !reflect.DeepEqual(got, want) || !reflect.DeepEqual(asked, []string{"now"}) {
		t.Errorf("%v, asked with %v", got, asked)
	}
	m := h.navigate(ses.ID, h.said(ses.ID, "now"), func(r *NavigateRequest) { r.Before = true })
	if !reflect.DeepEqual(m.Input, blocks("now")) {
		t.Errorf("%+v", m.Input)
	}
	h.ends(h.begin(StartRequest{SessionID: ses.ID, Input: m.Input}), "completed")
}
