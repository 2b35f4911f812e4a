package engine

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"agentd/event"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// What users of other agents lost their sessions to must not cost one here: after
// each of these the session takes the next message.

// goesOn sends the next message, which must be answered.
func (h *harness) goesOn(sessionID string) *Run {
	h.t.Helper()
	r := h.wait(h.begin(StartRequest{SessionID: sessionID, Input: []message.Block{message.Text("go on")}}))
	if r.Status != "completed" {
		h.t.Errorf("the session is lost: %s %+v", r.Status, r.Error)
	}
	return r
}

func refusal(text string) error {
	return &model.Error{Class: model.ClassInvalid, Provider: "fake", Status: 400, Message: text}
}

// images counts the images of a request.
func images(req *model.Request) (n int) {
	for _, m := range req.Messages {
		for _, b := range m.Content {
			if b.Type == message.BlockImage {
				n++
			}
		}
	}
	return n
}

func picture() message.Block {
	return message.Image(base64.StdEncoding.EncodeToString([]byte("a picture")), "image/png")
}

// conversationOf is what a request has, in short.
func conversationOf(req *model.Request) string {
	var s []string
	for _, m := range req.Messages {
		x := string(m.Role) + ":"
		for _, b := range m.Content {
			x += " " + head(string(b.Type)+" "+b.Text+string(b.Arguments), 60)
		}
		s = append(s, x)
	}
	return strings.Join(s, "\n")
}

// A picture that the provider can not read was refused with every later message
// (goose#2951 and many others).
func TestABadPictureDoesNotBrickTheSession(t *testing.T) {
	var last *model.Request
	calls := 0
	h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		calls++
		if last = req; images(req) > 0 {
			return nil, refusal("messages.0.content.1.image.source.base64: image exceeds 5 MB maximum")
		}
		return say("fine")
	})
	r := h.wait(h.begin(StartRequest{Input: []message.Block{message.Text("look"), picture()}}))
	if r.Status != "completed" || calls != 2 {
		t.Fatalf("%s %+v after %d calls", r.Status, r.Error, calls)
	}
	if got := conversationOf(last); !strings.Contains(got, "An image is left out") {
		t.Errorf("the model is not told: %s", got)
	}
	told := ""
	for _, ev := range h.events(r) {
		if ev.Type == event.EntryQuarantined {
			told = string(ev.Data.(json.RawMessage))
		}
	}
	if !strings.Contains(told, "5 MB") || !strings.Contains(told, `"what":"images"`) {
		t.Errorf("readers are not told: %s", told)
	}
	for range 2 {
		before := calls
		h.goesOn(r.SessionID)
		if calls != before+1 || images(last) > 0 {
			t.Errorf("%d calls", calls-before)
		}
		h.restart() // it is remembered
	}
	views, err := h.engine.Entries(t.Context(), ref(r.SessionID), "", 0)
	if err != nil || !strings.Contains(views[0].LeftOut, "5 MB") || views[0].Message == nil || len(views[0].Message.Content) != 2 || views[1].LeftOut != "" {
		t.Errorf("%+v, %v", views[0], err)
	}
	// Pictures that were taken before stay.
	if r = h.goesOn(r.SessionID); r.Status != "completed" {
		t.Error(r.Status)
	}
}

func TestOneBadPictureLeavesTheGoodOnesAlone(t *testing.T) {
	bad := message.Image(base64.StdEncoding.EncodeToString([]byte("BROKEN")), "image/png")
	var last *model.Request
	h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		last = req
		for _, m := range req.Messages {
			for _, b := range m.Content {
				if b.Data == bad.Data {
					return nil, refusal("Could not process image")
				}
			}
		}
		return say("fine")
	})
	r := h.wait(h.begin(StartRequest{Input: []message.Block{message.Text("look"), picture()}}))
	h.wait(h.begin(StartRequest{SessionID: r.SessionID, Input: []message.Block{message.Text("and this"), bad}}))
	h.goesOn(r.SessionID)
	if images(last) != 1 {
		t.Errorf("%d images are left\n%s", images(last), conversationOf(last))
	}
}

// What was stored before agentd looked at images, or by somebody else.
func TestOldPicturesThatNobodyTakesAreLeftOut(t *testing.T) {
	var last *model.Request
	h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		last = req
		return say("fine")
	})
	r := h.wait(h.run("hi"))
	h.append(r.SessionID, `{"role":"user","content":[{"type":"image","data":"***","mimeType":"image/tiff"},{"type":"text","text":"an old one"}]}`)
	h.goesOn(r.SessionID)
	if images(last) != 0 || !strings.Contains(conversationOf(last), "An image is left out") {
		t.Errorf("%s", conversationOf(last))
	}
}

// append writes an entry as another program, or an older agentd, might have.
func (h *harness) append(sessionID string, bodies ...string) {
	h.t.Helper()
	for _, body := range bodies {
		h.appendKind(sessionID, session.KindMessage, body)
	}
}

func (h *harness) appendKind(sessionID, kind, body string) string {
	h.t.Helper()
	s, err := h.store.Session(context.Background(), store.DefaultTenant, sessionID)
	if err != nil {
		h.t.Fatal(err)
	}
	id := s.Leaf + "~"
	h.commit(&store.Tx{Entries: []*store.Entry{{SessionID: sessionID, ID: id, Parent: s.Leaf, Kind: kind, Created: 1, Body: json.RawMessage(body)}},
		Leaves: []store.Leaf{{SessionID: sessionID, EntryID: id, Updated: s.Updated}}})
	return id
}

func (h *harness) commit(tx *store.Tx) {
	h.t.Helper()
	tx.Tenant = store.DefaultTenant
	if err := h.store.Commit(context.Background(), tx); err != nil {
		h.t.Fatal(err)
	}
}

// A message that the provider refuses fails its run, and is left out of the next.
func TestAPoisonedMessageDoesNotBrickTheSession(t *testing.T) {
	var last *model.Request
	h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		last = req
		if strings.Contains(conversationOf(req), "poison") {
			return nil, refusal("messages.2: something about it is wrong")
		}
		return say("fine")
	})
	r := h.wait(h.run("hi"))
	if bad := h.wait(h.begin(StartRequest{SessionID: r.SessionID, Input: []message.Block{message.Text("poison")}})); bad.Status != "failed" || bad.Error.Kind != "invalid" {
		t.Fatalf("%s %+v", bad.Status, bad.Error)
	}
	h.goesOn(r.SessionID)
	if got := conversationOf(last); !strings.Contains(got, "What stood here is left out") || !strings.Contains(got, "user: text hi") {
		t.Errorf("%s", got)
	}
	h.restart()
	h.goesOn(r.SessionID)
}

// A result that poisons its own run goes with the run.
func TestAPoisonedResultDoesNotBrickTheSession(t *testing.T) {
	var last *model.Request
	h := newHarness(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		last = req
		if strings.Contains(conversationOf(req), "poison") {
			return nil, refusal("no")
		}
		if step == 0 && len(req.Messages) == 1 {
			return say("", call("c1", "bad", `{}`))
		}
		return say("fine")
	}, toolFunc{tool.Spec{Name: "bad", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.TextResult("poison"), nil
	}})
	r := h.wait(h.run("hi"))
	if r.Status != "failed" {
		t.Fatal(r.Status)
	}
	h.goesOn(r.SessionID)
	h.goesOn(r.SessionID)
	if got := conversationOf(last); strings.Contains(got, "poison") {
		t.Errorf("%s", got)
	}
}

// A wrong setting makes providers refuse everything: nothing is left out for it.
func TestAWrongSettingQuarantinesNothing(t *testing.T) {
	broken, calls := true, 0
	h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		if calls++; broken {
			return nil, refusal("temperature: range: 0..1")
		}
		return say(conversationOf(req))
	})
	r := h.wait(h.run("precious"))
	h.wait(h.begin(StartRequest{SessionID: r.SessionID, Input: []message.Block{message.Text("again")}}))
	broken = false
	if out := h.goesOn(r.SessionID).Output; !strings.Contains(out, "precious") || strings.Contains(out, "left out") {
		t.Errorf("%s", out)
	}
	if calls != 4 {
		t.Errorf("%d calls", calls)
	}
}

// crush#3733: one uncapped result of 1.7 MB deadlocked a session for good.
func TestOneHugeResultDoesNotBrickTheSession(t *testing.T) {
	huge := strings.Repeat("0123456789", 170_000)
	var last *model.Request
	h := newHarness(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		last = req
		if step == 0 && len(req.Messages) == 1 {
			return say("", call("c1", "huge", `{}`))
		}
		return say("fine")
	}, toolFunc{tool.Spec{Name: "huge", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.TextResult(huge), nil
	}})
	r := h.wait(h.run("hi"))
	h.goesOn(r.SessionID)
	n := 0
	for _, m := range last.Messages {
		n += len(m.Text())
	}
	if n > 4096 {
		t.Errorf("the request has %d bytes", n)
	}
}

// One message that alone is larger than the window is shortened, and said to be.
func TestOneHugeMessageDoesNotBrickTheSession(t *testing.T) {
	calls := 0
	var last *model.Request
	h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		calls, last = calls+1, req
		if summarises(req) {
			return say("<summary>\nA greeting.\n</summary>")
		}
		return say("fine")
	})
	h.agents["test"].Models[0].Window = 1000
	r := h.wait(h.run("hi"))
	bad := h.wait(h.begin(StartRequest{SessionID: r.SessionID, Input: []message.Block{message.Text(strings.Repeat("word ", 5000))}}))
	if bad.Status != "completed" || calls != 3 {
		t.Fatalf("%s %s after %d calls: %+v", bad.Status, bad.StopReason, calls, bad.Error)
	}
	if got := last.Messages[len(last.Messages)-1].Text(); !strings.Contains(got, "word word") || !strings.Contains(got, "bytes are left out here") || len(got) > 3000 {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	h.goesOn(r.SessionID)
	h.restart()
	h.goesOn(r.SessionID)
}

// The provider knows windows that the catalogue does not.
func TestAnOverflowDoesNotBrickTheSession(t *testing.T) {
	h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		n := 0
		for _, m := range req.Messages {
			n += len(m.Text())
		}
		if n > 10_000 {
			return nil, &model.Error{Class: model.ClassOverflow, Provider: "fake", Status: 400, Message: "prompt is too long"}
		}
		return say("fine")
	})
	r := h.wait(h.run("hi"))
	bad := h.wait(h.begin(StartRequest{SessionID: r.SessionID, Input: []message.Block{message.Text(strings.Repeat("word ", 5000))}}))
	if bad.Status != "completed" {
		t.Fatalf("%s %+v", bad.Status, bad.Error)
	}
	h.goesOn(r.SessionID)
	h.restart()
	h.goesOn(r.SessionID)
}

// Entries that can not be read, are of a newer agentd, or are gone.
func TestDamagedEntriesDoNotBrickTheSession(t *testing.T) {
	var last *model.Request
	h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		last = req
		return say("fine")
	})
	r := h.wait(h.run("hi"))
	damaged := h.appendKind(r.SessionID, session.KindMessage, "\x02junk")
	h.append(r.SessionID, `{"role":"user","content":[{"type":"text","text":"still here"}]}`, `null`, `{"role":"user","content":[{"type":"hologram","hologram":1}]}`)
	unknown := h.appendKind(r.SessionID, "hologram", `{"x":1}`)
	next := h.goesOn(r.SessionID)
	if got := conversationOf(last); !strings.Contains(got, "user: text hi") || !strings.Contains(got, "still here") {
		t.Errorf("%s", got)
	}
	var warnings []string
	for _, ev := range h.events(next) {
		if s, ok := ev.Data.(*event.Started); ok {
			warnings = s.Warnings
		}
	}
	if all := strings.Join(warnings, "\n"); !strings.Contains(all, damaged) || !strings.Contains(all, unknown+" of the conversation is left out: it is of a kind") {
		t.Errorf("warnings: %s", all)
	}
	views, err := h.engine.Entries(t.Context(), ref(r.SessionID), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	notes := map[string]string{}
	for _, v := range views {
		notes[v.ID] = v.LeftOut
	}
	if notes[damaged] != "it is damaged" || !strings.Contains(notes[unknown], "hologram") {
		t.Errorf("%v", notes)
	}
	if _, err := json.Marshal(views); err != nil {
		t.Error(err)
	}
}

func TestAHoleInTheConversationDoesNotBrickTheSession(t *testing.T) {
	var last *model.Request
	h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		last = req
		return say("fine")
	})
	r := h.wait(h.run("hi"))
	h.commit(&store.Tx{Entries: []*store.Entry{{SessionID: r.SessionID, ID: "zz", Parent: "gone", Kind: session.KindMessage, Body: json.RawMessage(`{"role":"user","content":[{"type":"text","text":"behind"}]}`)}},
		Leaves: []store.Leaf{{SessionID: r.SessionID, EntryID: "zz", Updated: 1}}})
	h.goesOn(r.SessionID)
	if got := conversationOf(last); got != "user: text behind\nuser: text go on" {
		t.Errorf("%s", got)
	}
	h.restart()
	h.goesOn(r.SessionID)
	views, err := h.engine.Entries(t.Context(), ref(r.SessionID), "", 0)
	if err != nil || len(views) != 5 || !strings.Contains(views[0].LeftOut, "entry gone is gone") {
		t.Errorf("%d views, %v", len(views), err)
	}
}

// Calls that nobody answered: of a crash of another program, an older version, a
// client that went away (agent-kit#276).
func TestOrphanedCallsDoNotBrickTheSession(t *testing.T) {
	var last *model.Request
	h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		last = req
		return say("fine")
	})
	r := h.wait(h.run("hi"))
	h.append(r.SessionID, `{"role":"assistant","content":[{"type":"toolCall","id":"a","name":"x","arguments":{}},{"type":"toolCall","id":"b","name":"y","arguments":{}}],"stopReason":"toolUse"}`,
		`{"role":"toolResult","toolCallId":"b","content":[{"type":"text","text":"of b"}]}`, `{"role":"toolResult","toolCallId":"nobody","content":[{"type":"text","text":"of nobody"}]}`)
	h.goesOn(r.SessionID)
	first := conversationOf(last)
	if !strings.Contains(first, "text of b") || !strings.Contains(first, session.Interrupted) || strings.Contains(first, "nobody") {
		t.Errorf("%s", first)
	}
	h.restart()
	h.goesOn(r.SessionID)
	if got := conversationOf(last); !strings.HasPrefix(got, first) {
		t.Errorf("the same conversation was\n%s\nand is\n%s", first, got)
	}
}

// A client that was handed calls and never came back with results.
func TestAClientThatGoesAwayDoesNotBrickTheSession(t *testing.T) {
	var last *model.Request
	h := newHarness(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		if last = req; step == 0 && len(req.Messages) == 1 {
			return say("", call("c1", "theirs", `{}`), call("c2", "theirs", `{}`))
		}
		return say("fine")
	})
	r := h.wait(h.begin(StartRequest{Overrides: Overrides{ClientTools: []ClientTool{{Name: "theirs"}}}}))
	if r.StopReason != "client_tool_calls" {
		t.Fatal(r.StopReason)
	}
	h.goesOn(r.SessionID)
	if got := conversationOf(last); strings.Count(got, session.Interrupted) != 2 {
		t.Errorf("%s", got)
	}
}

// Halves of surrogate pairs and bytes that are no text, wherever they come from.
func TestBrokenTextDoesNotBrickTheSession(t *testing.T) {
	const bad = "a\xed\xa0\x80b\xffc"
	var requests []string
	h := newHarness(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		for _, m := range req.Messages {
			b, err := m.AppendJSON(nil)
			if err != nil || !utf8.Valid(b) {
				t.Errorf("%v in %q", err, b)
			}
			if got := *message.Clean(&m); fmt.Sprint(got) != fmt.Sprint(m) {
				t.Errorf("a request has %q", b)
			}
		}
		requests = append(requests, fmt.Sprint(Texts(req)))
		if step == 0 && len(req.Messages) == 1 {
			return say(bad, call("c"+bad, "tool", `{"x":1}`))
		}
		return say("fine " + bad)
	}, toolFunc{tool.Spec{Name: "tool", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.TextResult("result " + bad), nil
	}})
	r := h.wait(h.begin(StartRequest{Input: []message.Block{message.Text("input " + bad)}, Page: json.RawMessage(`"page \ud800"`),
		References: []json.RawMessage{json.RawMessage(`{"kind":"file","id":"\ud800 x"}`)}, Context: json.RawMessage(`{"x":"\udc00"}`)}))
	h.goesOn(r.SessionID)
	h.restart()
	h.goesOn(r.SessionID)
	for i := 1; i < len(requests); i++ {
		was, is := strings.TrimSuffix(requests[i-1], "]"), requests[i]
		if !strings.HasPrefix(is, was) {
			t.Errorf("request %d does not go on from the one before:\n%s\n%s", i, was, is)
		}
	}
}

// Texts gives the texts of a request.
func Texts(req *model.Request) (out []string) {
	for _, m := range req.Messages {
		out = append(out, string(m.Role)+m.ToolCallID+m.Text())
	}
	return out
}
