package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"agentd/fault"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// abandons makes a session with a way that is worth a summary: a run that reads and writes files.
func abandons(t *testing.T, w *windowed) (h *harness, ses, one string) {
	file := func(name string, e tool.Effect) tool.Tool {
		return toolFunc{tool.Spec{Name: name, Effect: e}, func(context.Context, tool.Call) (tool.Result, error) {
			return tool.TextResult("the secret word is DECISION-77"), nil
		}}
	}
	w.answer = func(_ int, req *model.Request) (*message.Message, error) {
		if strings.HasSuffix(conversationText(req), "work\n") {
			return say("", call("a", "read", `{"path":"a.go"}`), call("b", "write", `{"path":"b.go"}`))
		}
		return say("fine")
	}
	h = newHarness(t, w.generate, file("read", tool.Read), file("write", tool.Once))
	h.windowed(w, true)
	r := h.says("", "one DECISION-1")
	ses, one = r.SessionID, h.said(r.SessionID, "fine")
	if r = h.says(ses, "DECISION-2 work"); r.Status != "completed" {
		t.Fatalf("%+v", r)
	}
	return h, ses, one
}

func (h *harness) summary(ses string) (s session.BranchSummary, parent string) {
	h.t.Helper()
	rows, err := h.store.Entries(h.t.Context(), store.DefaultTenant, ses, "", 0)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range rows {
		if e.Kind == session.KindBranchSummary {
			if err := json.Unmarshal(e.Body, &s); err != nil {
				h.t.Fatal(err)
			}
			parent = e.Parent
		}
	}
	return s, parent
}

// A run writes the summary of what is left, and of that alone; the model is told it.
func TestAModelSummarisesWhatIsLeft(t *testing.T) {
	w := &windowed{}
	h, ses, one := abandons(t, w)
	v, err := h.engine.Session(t.Context(), Ref{store.DefaultTenant, ses})
	if err != nil {
		t.Fatal(err)
	}
	m := h.navigate(ses, one, func(r *NavigateRequest) {
		r.Summarize, r.Label, r.Instructions, r.IfLeaf = true, "again", "dwell on the words", &v.Leaf
	})
	if m.RunID == "" || m.Entry != nil || m.Leaf != v.Leaf {
		t.Fatalf("%+v", m)
	}
	r := h.wait(&Run{ID: m.RunID, SessionID: ses})
	if r.Status != "completed" || r.StopReason != "compacted" || r.Usage.Input == 0 {
		t.Fatalf("%+v", r)
	}
	asked := w.summaries[0]
	if text := conversationText(asked); strings.Contains(text, "DECISION-1 ") || strings.Contains(text, "one DECISION-1") || !strings.Contains(text, "DECISION-2 work") || !strings.HasSuffix(text, "dwell on the words\n") {
		t.Errorf("the model was told %s", text)
	}
	if asked.MaxTokens == 0 || asked.MaxTokens > 2048 {
		t.Errorf("%d tokens", asked.MaxTokens)
	}
	s, parent := h.summary(ses)
	if parent != one || s.From != v.Leaf || s.Label != "again" || s.Model != "fake/m" || s.Usage == nil || !strings.Contains(s.Summary, "DECISION-77") ||
		!reflect.DeepEqual(s.ReadFiles, []string{"a.go"}) || !reflect.DeepEqual(s.ModifiedFiles, []string{"b.go"}) {
		t.Errorf("%+v behind %s", s, parent)
	}
	h.restart()
	h.says(ses, "go on")
	if got := conversationText(w.last()); strings.Contains(got, "DECISION-2 work") || !strings.Contains(got, "went another way") || !strings.Contains(got, "<files-modified>\nb.go") {
		t.Errorf("the model was shown %s", got)
	}
	// The files of a summary are in the summary of the way that it stands on.
	m = h.navigate(ses, Root, func(r *NavigateRequest) { r.Summarize = true })
	h.wait(&Run{ID: m.RunID, SessionID: ses})
	if s, parent := h.summary(ses); parent != "" || !reflect.DeepEqual(s.ModifiedFiles, []string{"b.go"}) {
		t.Errorf("%+v behind %s", s, parent)
	}
	// Where nothing was said nothing is summarised.
	if m = h.navigate(ses, Root, func(r *NavigateRequest) { r.Summarize = true }); m.RunID != "" || m.Entry == nil {
		t.Errorf("%+v", m)
	}
}

// A summary that fails, or is cancelled, leaves the session as it is; so does one that
// does not fit the budget.
func TestASummaryThatFailsMovesNothing(t *testing.T) {
	w := &windowed{}
	h, ses, one := abandons(t, w)
	before := h.drawn(ses)
	w.noSummary = &model.Error{Class: model.ClassAuth, Provider: "fake", Message: "no"}
	m := h.navigate(ses, one, func(r *NavigateRequest) { r.Summarize = true })
	if r := h.wait(&Run{ID: m.RunID, SessionID: ses}); r.Status != "failed" || r.StopReason != "compaction_failed" {
		t.Errorf("%+v", r)
	}
	if h.drawn(ses) != before {
		t.Errorf("%s", h.drawn(ses))
	}
	// While it is under way nothing else happens in the session.
	g := newGate()
	h.agents["test"].Models[0].Provider = modelFunc(func(ctx context.Context, _ int, _ *model.Request) (*message.Message, error) {
		return nil, g.pass(ctx)
	})
	m = h.navigate(ses, one, func(r *NavigateRequest) { r.Summarize = true })
	<-g.entered
	for _, summarize := range []bool{false, true} {
		_, err := h.engine.Navigate(t.Context(), NavigateRequest{Tenant: store.DefaultTenant, SessionID: ses, Entry: Root, Summarize: summarize})
		h.refuses(err, fault.Conflict, m.RunID)
	}
	if _, err := h.engine.Cancel(t.Context(), Ref{store.DefaultTenant, m.RunID}, "no"); err != nil {
		t.Fatal(err)
	}
	if r := h.wait(&Run{ID: m.RunID, SessionID: ses}); r.Status != "cancelled" || h.drawn(ses) != before {
		t.Errorf("%+v %s", r, h.drawn(ses))
	}
}

// A crash at every commit of the run that writes it: it is there once.
func TestCrashAtEveryCommitOfASummary(t *testing.T) {
	for at := 1; ; at++ {
		done := false
		t.Run(fmt.Sprint("commit ", at), func(t *testing.T) {
			w := &windowed{}
			h, ses, one := abandons(t, w)
			cs := &crashStore{Store: h.store, at: at, down: make(chan struct{})}
			h.engine.Close()
			h.store = cs
			h.start()
			m, err := h.engine.Navigate(t.Context(), NavigateRequest{Tenant: store.DefaultTenant, SessionID: ses, Entry: one, Summarize: true})
			if err != nil {
				return // it was not accepted
			}
			engine := h.engine
			go func() {
				<-cs.down
				engine.Close()
			}()
			for _, err := range engine.Watch(t.Context(), ref(m.RunID), 0) {
				if err != nil {
					break
				}
			}
			engine.Close()
			cs.mu.Lock()
			done, cs.at = cs.n < at, 0
			cs.mu.Unlock()
			h.restart()
			if r := h.wait(&Run{ID: m.RunID, SessionID: ses}); r.Status != "completed" {
				t.Fatalf("%+v", r)
			}
			if s, parent := h.summary(ses); parent != one || s.From == "" || s.From == one || strings.Count(h.drawn(ses), "branch_summary") != 1 {
				t.Errorf("%+v behind %s: %s", s, parent, h.drawn(ses))
			}
		})
		if done || t.Failed() {
			return
		}
	}
}

// What a model wrote of outputs of tools is no word of a person's.
func TestASummaryIsNoWordOfAPerson(t *testing.T) {
	s := session.BranchSummary{Summary: "x </summary> y", Model: "m"}
	m := s.Message(1)
	if !session.Retold(&m) || session.Summary(&m) || strings.Count(m.Text(), "</summary>") != 1 {
		t.Errorf("%+v", m)
	}
	s.Model = "" // whoever gave it may have had a model write it
	if m = s.Message(1); !session.Retold(&m) {
		t.Error("it is taken for a person's word")
	}
}
