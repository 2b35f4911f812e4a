package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentd/event"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// windowed is a model with a context window that counts tokens as they are estimated,
// answers from what it sees, and writes summaries of what is marked as a decision.
type windowed struct {
	mu     sync.Mutex
	window int
	times  int64 // how many tokens it takes one for that is estimated; 0: one
	// requests are those that went through, summaries those for summaries.
	requests, summaries []*model.Request
	refused             int
	answer              func(step int, req *model.Request) (*message.Message, error)
	noSummary           error
}

var decided = regexp.MustCompile(`DECISION-\d+`)

func summarises(req *model.Request) bool {
	return strings.Contains(req.Messages[len(req.Messages)-1].Text(), session.SummaryPrompt)
}

func (w *windowed) generate(_ context.Context, step int, req *model.Request) (*message.Message, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := model.PromptTokens(req) * max(w.times, 1)
	if w.window > 0 && n > int64(w.window) {
		w.refused++
		return nil, &model.Error{Class: model.ClassOverflow, Provider: "fake", Status: 400, Message: fmt.Sprintf("prompt is too long: %d tokens > %d maximum", n, w.window)}
	}
	reply := func(m *message.Message, err error) (*message.Message, error) {
		if m != nil {
			out := model.ReplyTokens(m) * max(w.times, 1)
			m.Usage = &message.Usage{Input: n, Output: out, TotalTokens: n + out}
		}
		return m, err
	}
	if summarises(req) {
		w.summaries = append(w.summaries, req)
		if w.noSummary != nil {
			return nil, w.noSummary
		}
		var all []string
		for i := range req.Messages {
			all = append(all, decided.FindAllString(req.Messages[i].Text(), -1)...)
		}
		slices.Sort(all)
		return reply(say("<analysis>hm</analysis>\n<summary>\n## Key Decisions\n" + strings.Join(slices.Compact(all), " ") + "\n</summary>"))
	}
	w.requests = append(w.requests, req)
	if w.answer != nil {
		return reply(w.answer(step, req))
	}
	return reply(say("fine"))
}

func (w *windowed) last() *model.Request { return w.requests[len(w.requests)-1] }

func (h *harness) windowed(w *windowed, known bool) {
	a := h.agents["test"]
	if known {
		a.Models[0].Window = w.window
	}
	a.Compaction = Compaction{Reserve: 1000, Keep: 1500, Summary: 800}
}

func (h *harness) says(sessionID, text string) *Run {
	h.t.Helper()
	return h.wait(h.begin(StartRequest{SessionID: sessionID, Input: []message.Block{message.Text(text)}}))
}

// talk fills a session with decisions, about 250 tokens each.
func (h *harness) talk(n int) (sessionID string, decisions []string) {
	h.t.Helper()
	for i := range n {
		d := fmt.Sprintf("DECISION-%d", i)
		decisions = append(decisions, d)
		r := h.says(sessionID, d+" "+strings.Repeat("word ", 200))
		if r.Status != "completed" {
			h.t.Fatalf("turn %d: %s %s %+v", i, r.Status, r.StopReason, r.Error)
		}
		sessionID = r.SessionID
	}
	return sessionID, decisions
}

func (h *harness) compactions(sessionID string) (out []session.Compaction) {
	h.t.Helper()
	rows, err := h.store.Entries(h.t.Context(), store.DefaultTenant, sessionID, "", 0)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range rows {
		if e.Kind == session.KindCompaction {
			var c session.Compaction
			if err := json.Unmarshal(e.Body, &c); err != nil {
				h.t.Fatal(err)
			}
			out = append(out, c)
		}
	}
	return out
}

// A session that grows for ever never meets the window, and loses no decision.
func TestASessionIsCompactedAheadOfItsWindow(t *testing.T) {
	w := &windowed{window: 6000}
	h := newHarness(t, w.generate)
	h.windowed(w, true)
	id, want := h.talk(60)
	if w.refused > 0 {
		t.Errorf("%d requests were too large", w.refused)
	}
	seen := conversationText(w.last())
	for _, d := range want {
		if !strings.Contains(seen, d) {
			t.Errorf("%s is lost", d)
		}
	}
	made := h.compactions(id)
	if len(made) < 3 {
		t.Fatalf("%d compactions", len(made))
	}
	for _, c := range made {
		if c.Reason != "threshold" || c.Model != "fake/m" || c.TokensBefore <= 5000 || c.TokensAfter >= c.TokensBefore/2 || c.Usage == nil || c.FirstKept == "" {
			t.Errorf("%+v", c)
		}
	}
	// The request for a summary.
	s := w.summaries[1]
	if *s.Temperature != 0 || s.MaxTokens != 750 || s.CacheLast || s.SessionID == w.last().SessionID || !strings.Contains(s.Messages[len(s.Messages)-1].Text(), "<earlier-summary>") {
		t.Errorf("%+v", s)
	}
	// What is kept is about what was asked for, and the same after a restart.
	before := w.last()
	h.restart()
	h.says(id, "again")
	after := w.last()
	if len(after.Messages) != len(before.Messages)+2 {
		t.Fatalf("%d and %d messages", len(before.Messages), len(after.Messages))
	}
	for i := range before.Messages {
		if a, b := asJSON(before.Messages[i]), asJSON(after.Messages[i]); a != b {
			t.Errorf("message %d was\n%s\nand is\n%s", i, a, b)
		}
	}
}

func conversationText(req *model.Request) string {
	var b strings.Builder
	for i := range req.Messages {
		b.WriteString(req.Messages[i].Text() + "\n")
	}
	return b.String()
}

// Nobody knows the window: the provider says it, once per compaction, and the run goes on.
func TestAnOverflowIsCompactedAndTheRunGoesOn(t *testing.T) {
	w := &windowed{window: 6000}
	h := newHarness(t, w.generate)
	h.windowed(w, false)
	id, want := h.talk(40)
	made := h.compactions(id)
	if len(made) == 0 || w.refused != len(made) || made[0].Reason != "overflow" {
		t.Errorf("%d refusals, %d compactions: %+v", w.refused, len(made), made)
	}
	seen := conversationText(w.last())
	for _, d := range want {
		if !strings.Contains(seen, d) {
			t.Errorf("%s is lost", d)
		}
	}
}

// What is too large also after it was compacted ends the run, and says what to do.
func TestASecondOverflowSaysWhatToDo(t *testing.T) {
	w := &windowed{window: 6000}
	h := newHarness(t, w.generate)
	h.windowed(w, true)
	id, _ := h.talk(8)
	w.answer = func(int, *model.Request) (*message.Message, error) {
		return nil, &model.Error{Class: model.ClassOverflow, Provider: "fake", Status: 400, Message: "prompt is too long"}
	}
	r := h.says(id, "go on")
	if r.Status != "failed" || r.StopReason != "model_error" || r.Error.Kind != "overflow" || len(h.compactions(id)) != 1 {
		t.Fatalf("%s %s %+v", r.Status, r.StopReason, r.Error)
	}
	for _, want := range []string{"larger context window", "max_context_tokens", "compaction.reserve_tokens"} {
		if !strings.Contains(r.Error.Hint, want) {
			t.Errorf("the hint %q does not name %s", r.Error.Hint, want)
		}
	}
}

// A turn with many calls is compacted in its middle: no call loses its result, the
// files are carried along, what was asked is known, and the turn ends as it would have.
func TestATurnIsCompactedInItsMiddle(t *testing.T) {
	w := &windowed{window: 6000}
	steps := 0
	w.answer = func(_ int, req *model.Request) (*message.Message, error) {
		if !strings.Contains(conversationText(req), "DECISION-7") {
			return nil, &model.Error{Class: model.ClassInvalid, Message: "it forgot what it does"}
		}
		if steps++; steps > 30 {
			return say("done")
		}
		name := "read"
		if steps%3 == 0 {
			name = "write"
		}
		return say("", call(fmt.Sprint("c", steps), name, fmt.Sprintf(`{"path":"dir/file%d.go"}`, steps)))
	}
	text := func(context.Context, tool.Call) (tool.Result, error) {
		return tool.TextResult(strings.Repeat("line ", 300)), nil
	}
	h := newHarness(t, w.generate, toolFunc{tool.Spec{Name: "read", Effect: tool.Read}, text}, toolFunc{tool.Spec{Name: "write", Effect: tool.Once}, text})
	h.windowed(w, true)
	r := h.wait(h.run("do DECISION-7"))
	if r.Status != "completed" || r.Output != "done" || w.refused > 0 {
		t.Fatalf("%s %+v, %d refused", r.Status, r.Error, w.refused)
	}
	for _, req := range w.requests {
		open := map[string]bool{}
		for i := range req.Messages {
			m := &req.Messages[i]
			for _, c := range m.ToolCalls() {
				open[c.ID] = true
			}
			if m.Role == message.RoleToolResult && !open[m.ToolCallID] {
				t.Fatalf("a result without its call:\n%s", conversationOf(req))
			}
			delete(open, m.ToolCallID)
		}
		if len(open) > 0 {
			t.Fatalf("calls without results: %v", open)
		}
	}
	made := h.compactions(r.SessionID)
	if len(made) < 2 {
		t.Fatalf("%d compactions", len(made))
	}
	last := w.last().Messages
	seen := conversationText(w.last())
	for i := 1; i <= 30; i++ {
		path := fmt.Sprintf("dir/file%d.go", i)
		kept := slices.ContainsFunc(last, func(m message.Message) bool {
			return slices.ContainsFunc(m.ToolCalls(), func(c message.Block) bool { return strings.Contains(string(c.Arguments), path) })
		})
		if !kept && !strings.Contains(seen, path+"\n") {
			t.Errorf("%s is lost", path)
		}
	}
	if !strings.Contains(made[0].Summary, "The turn under way") {
		t.Errorf("%s", made[0].Summary)
	}
	if c := made[len(made)-1]; slices.Contains(c.ReadFiles, "dir/file3.go") || !slices.Contains(c.ModifiedFiles, "dir/file3.go") || !slices.Contains(c.ReadFiles, "dir/file1.go") {
		t.Errorf("%+v", c)
	}
	events := 0
	for _, ev := range h.events(r) {
		if c, ok := ev.Data.(*event.Compaction); ok {
			events++
			if c.TokensBefore == 0 || c.TokensAfter == 0 || c.Kept == 0 || c.Summarised == 0 || c.Model != "fake/m" || c.Usage == nil {
				t.Errorf("%+v", c)
			}
		}
	}
	if events != len(made) {
		t.Errorf("%d events of %d compactions", events, len(made))
	}
	if full := h.transcript(r.SessionID); strings.Count(full, "dir/file") < 30 {
		t.Error("history was lost")
	}
}

// Without a model for it, what does not fit is replaced by excerpts, and what only
// nearly does not fit stays.
func TestACompactionWithoutAModel(t *testing.T) {
	w := &windowed{window: 6000, noSummary: &model.Error{Class: model.ClassAuth, Provider: "fake", Message: "no"}}
	h := newHarness(t, w.generate)
	h.windowed(w, true)
	id, _ := h.talk(30)
	made := h.compactions(id)
	if len(made) == 0 || w.refused == 0 {
		t.Fatalf("%d compactions, %d refused", len(made), w.refused)
	}
	for _, c := range made {
		if c.Reason != "overflow" || c.Model != "" || !strings.Contains(c.Summary, "excerpts") {
			t.Errorf("%+v", c)
		}
	}
}

func TestACompactionTriesAgainAndElsewhere(t *testing.T) {
	w := &windowed{window: 6000}
	h := newHarness(t, w.generate)
	h.windowed(w, true)
	busy, cheap := 0, &windowed{}
	h.agents["test"].Compaction.Model = &Model{ID: "cheap", Name: "fake/cheap", Window: 5000,
		Provider: modelFunc(func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
			if busy++; busy == 1 {
				return nil, &model.Error{Class: model.ClassOverloaded, Provider: "fake", Message: "busy"}
			}
			return cheap.generate(ctx, step, req)
		})}
	id, _ := h.talk(30)
	for _, c := range h.compactions(id) {
		if c.Model != "fake/cheap" {
			t.Errorf("%+v", c)
		}
	}
	if busy < 2 || len(cheap.summaries) == 0 || len(w.summaries) > 0 {
		t.Errorf("%d calls, %d of the cheap model's summaries, %d of the other's", busy, len(cheap.summaries), len(w.summaries))
	}
	if n := model.PromptTokens(cheap.summaries[0]); n > 5000 {
		t.Errorf("the request for a summary has %d tokens", n)
	}
	cheap.noSummary = &model.Error{Class: model.ClassAuth, Provider: "fake", Message: "no"}
	id, _ = h.talk(30)
	if made := h.compactions(id); len(made) == 0 || made[0].Model != "fake/m" {
		t.Errorf("%+v", made)
	}
}

// A provider that cuts the reply to nothing in place of refusing the request.
func TestASilentOverflowIsCompacted(t *testing.T) {
	w := &windowed{}
	var h *harness
	silent := 0
	w.answer = func(_ int, req *model.Request) (*message.Message, error) {
		if model.PromptTokens(req) > 5500 && !summarises(req) {
			silent++
			return &message.Message{Role: message.RoleAssistant, StopReason: message.StopLength, Usage: &message.Usage{}}, nil
		}
		return say("fine")
	}
	h = newHarness(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
		m, err := w.generate(ctx, step, req)
		if m != nil && m.StopReason == message.StopLength {
			m.Usage = &message.Usage{Input: 6000}
		}
		return m, err
	})
	h.windowed(w, true)
	h.agents["test"].Models[0].Window = 6000
	h.agents["test"].Compaction.Reserve = 1
	id, want := h.talk(30)
	seen := conversationText(w.last())
	for _, d := range want {
		if !strings.Contains(seen, d) {
			t.Errorf("%s is lost", d)
		}
	}
	if made := h.compactions(id); silent == 0 || len(made) == 0 || made[0].Reason != "overflow" {
		t.Errorf("%d silent, %+v", silent, made)
	}
}

// A window that becomes known while the model is used counts from then on, also where the
// model is the one that writes the summary.
func TestCompactLearnedWindow(t *testing.T) {
	w := &windowed{}
	h := newHarness(t, w.generate)
	h.windowed(w, false)
	var learned atomic.Int64
	h.agents["test"].Models[0].Learned = func() int { return int(learned.Load()) }
	id, _ := h.talk(8)
	if made := h.compactions(id); len(made) != 0 {
		t.Fatalf("%+v", made)
	}
	learned.Store(1600)
	if r := h.says(id, "go on"); r.Status != "completed" {
		t.Fatalf("%+v", r)
	}
	if made := h.compactions(id); len(made) != 1 || made[0].Reason != "threshold" {
		t.Errorf("%+v", made)
	}
}

func TestCompactByHand(t *testing.T) {
	w := &windowed{}
	h := newHarness(t, w.generate)
	h.windowed(w, true)
	id, want := h.talk(6)
	r, err := h.engine.Compact(t.Context(), StartRequest{SessionID: id, Compact: &CompactRequest{Instructions: "dwell on the words"}})
	if err != nil {
		t.Fatal(err)
	}
	if r = h.wait(r); r.Status != "completed" || r.StopReason != "compacted" || r.Usage.Input == 0 || r.Profile != "test" {
		t.Fatalf("%+v", r)
	}
	if s := w.summaries[0]; !strings.HasSuffix(s.Messages[len(s.Messages)-1].Text(), "dwell on the words") {
		t.Error("the instructions are not there")
	}
	totals, err := h.store.Usage(t.Context(), store.DefaultTenant, store.UsageFilter{RunID: r.ID})
	if err != nil || len(totals) != 1 || totals[0].Input != r.Usage.Input {
		t.Errorf("%v %+v", err, totals)
	}
	h.says(id, "go on")
	seen := conversationText(w.last())
	for _, d := range want {
		if !strings.Contains(seen, d) {
			t.Errorf("%s is lost", d)
		}
	}
	if n := model.PromptTokens(w.last()); n > 1000 {
		t.Errorf("%d tokens", n)
	}
	for _, bad := range []StartRequest{{SessionID: id, Input: []message.Block{message.Text("x")}}, {}, {SessionID: "ses_none"}, {SessionID: id, WhenBusy: Steer},
		{SessionID: id, Compact: &CompactRequest{Instructions: strings.Repeat("x", 5000)}}} {
		if _, err := h.engine.Compact(t.Context(), bad); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
	for _, bad := range []StartRequest{{Compact: &CompactRequest{}, WhenBusy: Steer}, {Compact: &CompactRequest{}, WhenBusy: Rollback},
		{Compact: &CompactRequest{Instructions: strings.Repeat("x", 5000)}}} {
		bad.SessionID, bad.Profile = id, "test"
		if _, err := h.engine.Start(t.Context(), bad); err == nil {
			t.Errorf("%+v was started", bad)
		}
	}
	ses, err := h.engine.CreateSession(t.Context(), SessionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.engine.Compact(t.Context(), StartRequest{SessionID: ses.ID}); err == nil || !strings.Contains(err.Error(), "no run") {
		t.Errorf("a session without a run: %v", err)
	}
	empty := h.wait(h.run("hi"))
	r, err = h.engine.Compact(t.Context(), StartRequest{SessionID: empty.SessionID})
	if err != nil {
		t.Fatal(err)
	}
	if r = h.wait(r); r.Status != "completed" {
		t.Errorf("%+v", r)
	}
}

// What was compacted before is compacted on, and nothing of it is lost.
func TestACompactionThatIsOff(t *testing.T) {
	w := &windowed{window: 3000}
	h := newHarness(t, w.generate)
	h.windowed(w, true)
	h.agents["test"].Compaction.Off = true
	var r *Run
	for i := 0; i < 20 && (r == nil || r.Status == "completed"); i++ {
		id := ""
		if r != nil {
			id = r.SessionID
		}
		r = h.says(id, strings.Repeat("word ", 200))
	}
	if r.Status != "failed" || !strings.Contains(r.Error.Message, "compaction is off") {
		t.Errorf("%s %+v", r.Status, r.Error)
	}
}
