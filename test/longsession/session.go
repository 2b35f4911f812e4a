package longsession

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"agentd/internal/engine"
	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/internal/store/sqlite"
	"agentd/message"
	"agentd/tool"
)

// Options say what is played.
type Options struct {
	// Tokens is how large the session is, all in all.
	Tokens int
	// Window is the model's, which everybody knows.
	Window int
	// Summariser is the window of another model that writes the summaries; 0: there is
	// none.
	Summariser int
}

// Report is what came of it.
type Report struct {
	// Tokens is how large the session was, Turns and Requests how many it had.
	Tokens, Turns, Requests int
	// Compactions is how many were made, Summaries how many requests they took, of which
	// Cut were answered with less than all; Largest is the largest of those requests in
	// tokens, Refused how many requests were too large.
	Compactions, Summaries, Cut, Refused int
	Largest                              int64
	// InTurns is how many of the compactions cut a turn in two.
	InTurns int
	// Planted is all there was to be kept, Lost what the last request does not have.
	Planted int
	Lost    []Fact
	// LastTokens is how large the last summary is, and LastBytes of its lists of files.
	LastTokens, LastBytes int
}

// agents is the one agent that there is.
type agents struct{ agent *engine.Agent }

func (a agents) Agent(context.Context, string, string) (*engine.Agent, error)   { return a.agent, nil }
func (a agents) Outline(context.Context, string, string) (*engine.Agent, error) { return a.agent, nil }
func (agents) Redactor(string, string) (engine.Redact, error)                   { return nil, nil }
func (agents) Profiles(context.Context, string) ([]engine.ProfileView, error)   { return nil, nil }

// planned is a tool whose results are in the plan.
type planned struct {
	name    string
	effect  tool.Effect
	results map[string]string
}

func (p planned) Spec() tool.Spec {
	return tool.Spec{Name: p.name, Description: "Works on files.", Effect: p.effect, Schema: json.RawMessage(`{"type":"object"}`)}
}

func (p planned) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	text, ok := p.results[c.ID]
	if !ok {
		return tool.Result{}, fmt.Errorf("call %q is not in the plan", c.ID)
	}
	return tool.TextResult(text), nil
}

// Play plays the session from its beginning to its end, in memory.
func Play(ctx context.Context, o Options) (*Report, error) {
	p := newPlan(o.Tokens)
	set, err := tool.NewSet(planned{"read", tool.Read, p.results}, planned{"edit", tool.Once, p.results}, planned{"shell", tool.Once, p.results})
	if err != nil {
		return nil, err
	}
	w := &writer{window: o.Window}
	other := &writer{window: o.Summariser}
	a := &engine.Agent{Profile: "long", Version: "1.0.0", Tools: set, Settings: run.Settings{MaxSteps: 50}, ModelIdle: time.Minute, ToolTimeout: time.Minute,
		Models: []engine.Model{{Provider: w, ID: "m", Name: "sim/m", Window: o.Window}}}
	if o.Summariser > 0 {
		a.Compaction.Model = &engine.Model{Provider: other, ID: "s", Name: "sim/s", Window: o.Summariser}
	}
	st, err := sqlite.Open(sqlite.Memory, nil)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	e, err := engine.New(engine.Config{Store: st, Agents: agents{a}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	r := &Report{Tokens: p.bytes / 4, Turns: len(p.turns), Planted: len(p.facts)}
	id := ""
	for i := range p.turns {
		w.replies = p.turns[i].replies
		started, err := e.Start(ctx, engine.StartRequest{Tenant: store.DefaultTenant, SessionID: id, Input: []message.Block{message.Text(p.turns[i].input)}})
		if err != nil {
			return nil, err
		}
		ended, err := e.Wait(ctx, engine.Ref{Tenant: store.DefaultTenant, ID: started.ID})
		switch {
		case err != nil:
			return nil, err
		case ended.Status != string(run.Completed):
			return nil, fmt.Errorf("turn %d is %s: %s %+v", i, ended.Status, ended.StopReason, ended.Error)
		}
		id = ended.SessionID
	}
	// What a next request would hold, is asked with one.
	w.replies = []*message.Message{{Role: message.RoleAssistant, StopReason: message.StopEnd, Content: []message.Block{message.Text("That is all.")}}}
	started, err := e.Start(ctx, engine.StartRequest{Tenant: store.DefaultTenant, SessionID: id, Input: []message.Block{message.Text("What did we decide?")}})
	if err != nil {
		return nil, err
	}
	if _, err := e.Wait(ctx, engine.Ref{Tenant: store.DefaultTenant, ID: started.ID}); err != nil {
		return nil, err
	}
	if w.last == nil {
		return nil, errors.New("no request was made")
	}
	has := text(w.last)
	for _, f := range p.facts {
		if !strings.Contains(has, f.Text) {
			r.Lost = append(r.Lost, f)
		}
	}
	r.Requests, r.Refused = w.requests, w.refused+other.refused
	r.Summaries, r.Cut, r.Largest = w.summaries+other.summaries, w.cut+other.cut, max(w.largest, other.largest)
	return r, r.compactions(ctx, st, id)
}

// compactions reads how many there were, and what the last one left.
func (r *Report) compactions(ctx context.Context, st store.Store, id string) error {
	rows, err := st.Entries(ctx, store.DefaultTenant, id, "", 0)
	if err != nil {
		return err
	}
	for _, en := range rows {
		if en.Kind != session.KindCompaction {
			continue
		}
		var c session.Compaction
		if err := json.Unmarshal(en.Body, &c); err != nil {
			return err
		}
		if r.Compactions++; strings.Contains(c.Summary, "# The turn under way") {
			r.InTurns++
		}
		r.LastTokens = len(c.Summary) / 4
		r.LastBytes = len(strings.Join(c.ReadFiles, "\n")) + len(strings.Join(c.ModifiedFiles, "\n"))
	}
	return nil
}
