package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd/internal/run"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// witness writes down what it is told.
type witness struct {
	mu      sync.Mutex
	runs    []RunSeen
	models  []ModelSeen
	tools   []ToolSeen
	commits int
}

func (w *witness) Run(s *RunSeen) { w.mu.Lock(); defer w.mu.Unlock(); w.runs = append(w.runs, *s) }
func (w *witness) Model(s *ModelSeen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.models = append(w.models, *s)
}
func (w *witness) Tool(s *ToolSeen) { w.mu.Lock(); defer w.mu.Unlock(); w.tools = append(w.tools, *s) }
func (w *witness) Commit(took time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits++
}

// told is what was told, in words.
func (w *witness) told() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, r := range w.runs {
		out = append(out, fmt.Sprintf("run %s→%s %s", r.Before, r.Status, r.StopReason))
	}
	for _, m := range w.models {
		out = append(out, fmt.Sprintf("model %s/%s step %d try %d %s reply=%v first=%v", m.Provider, m.Model, m.Step, m.Attempt, m.Class, m.Reply != nil, !m.First.IsZero()))
	}
	for _, c := range w.tools {
		out = append(out, fmt.Sprintf("tool %s %s known=%v %s", c.Name, c.Outcome, c.Known, c.Args))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func TestObserver(t *testing.T) {
	tries := 0
	h := newHarness(t, func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
		if tries++; tries == 1 {
			return nil, &model.Error{Class: model.ClassRateLimited, Message: "slow down"}
		}
		if step == 0 {
			return say("", call("c1", "echo", `{"a":1}`), call("c2", "made_up", `{}`), call("c3", "broken", `{}`))
		}
		return say("done")
	}, echoTool(tool.Once), toolFunc{tool.Spec{Name: "broken", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{}, errors.New("no")
	}})
	h.agents["test"].Rules.AutoApprove = true
	w := &witness{}
	h.engine.cfg.Observer = w
	var parents []string
	h.engine.cfg.Traceparent = func(id *RunID, callID string) string {
		w.mu.Lock()
		defer w.mu.Unlock()
		parents = append(parents, id.ID+"/"+callID)
		return "00-x"
	}
	r := h.run("go")
	h.wait(r)
	if err := h.engine.Close(); err != nil { // what was told late is told by now
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"model fake/m step 1 try 1 rate_limited reply=false first=false",
		"model fake/m step 1 try 2  reply=true first=true",
		"model fake/m step 2 try 1  reply=true first=true",
		"run queued→running ",
		"run running→completed stop",
		`tool broken error known=true {}`,
		`tool echo ok known=true {"a":1}`,
		"tool made_up denied known=false {}",
	}, "\n")
	if got := w.told(); got != want {
		t.Errorf("told\n%s\nnot\n%s", got, want)
	}
	end := w.runs[len(w.runs)-1]
	if end.ID != r.ID || end.Root != r.ID || end.Parent != "" || end.Steps != 2 || end.Usage.TotalTokens != 30 || end.Started == 0 || end.Ended < end.Started || w.commits == 0 {
		t.Errorf("%+v, %d commits", end, w.commits)
	}
	if len(parents) != 2 {
		t.Errorf("trace contexts for %v", parents)
	}
}

// A subagent's run and the call that waits for it are told, with their relation;
// what there is to do is counted.
func TestObserverOfSubagents(t *testing.T) {
	h := newHarness(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		if step == 0 && len(req.Messages) == 1 && req.Messages[0].Text() == "go" {
			return say("", call("c1", CreateSubagent, `{"subagent_type":"child","prompt":"look"}`))
		}
		return say("done")
	})
	child := *h.agents["test"]
	child.Profile = "child"
	h.agents["child"] = &child
	h.agents["test"].Subagents = []string{"child"}
	w := &witness{}
	h.engine.cfg.Observer = w
	r := h.run("go")
	h.wait(r)
	load, err := h.engine.Load(context.Background())
	if err != nil || load.Runs[run.Running] != 0 || load.Broken {
		t.Errorf("%+v %v", load, err)
	}
	if err := h.engine.Close(); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, s := range w.runs {
		if s.Profile == "child" && s.Status == run.Completed {
			found = s.Parent == r.ID && s.Root == r.ID && s.ParentCall == "c1"
		}
	}
	if !found || len(w.tools) != 1 || w.tools[0].Name != CreateSubagent || w.tools[0].Outcome != ToolOK {
		t.Errorf("%+v\n%+v", w.runs, w.tools)
	}
}
