package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentd/fault"
	"agentd/internal/policy"
	"agentd/internal/prompt"
	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// Settings of a session are its mode, which model is asked first, and how much it thinks.
// They are what the entries on its path amount to, so they go where the conversation goes:
// over runs, forks and compactions, and back when it goes back. A run takes them when it
// starts, and has them in its state from then on: whoever goes on with it decides the same,
// and only the approval of a plan changes one of them, the mode, while it lasts.

// Modes of a session.
const (
	ModeAsk  = policy.Ask
	ModePlan = policy.Plan
	ModeEdit = policy.Edit
)

// modeContext is the kind of context that says in which mode the session is.
const modeContext = prompt.ModeKind

// Modes are what an agent does by its session's mode. The zero value begins sessions in
// mode edit.
type Modes struct {
	// First is the mode of a session in which nobody chose one; "" is edit.
	First string
	// Texts are what the model is told of a mode, in place of what agentd says of it.
	Texts map[string]string
	// Allows is what the modes allow besides reading.
	Allows policy.Modes
}

// text is what the model is told of a mode; "" of edit, unless it is configured.
func (m *Modes) text(mode string) string {
	if t := m.Texts[mode]; t != "" {
		return t
	}
	switch mode {
	case ModeAsk:
		return "Mode: ask. You may only look: every call of a tool that is not known to only read is refused. Answer from what you know and what you can read. " +
			"If something has to be changed for it, say what; the person switches to mode edit when you are to do it."
	case ModePlan:
		return "Mode: plan. Nothing may be changed yet: every call of a tool that is not known to only read is refused, and of commands those are run that only look. " +
			"Look around, ask what is open, and make a plan that somebody else could follow: what is to be changed where, in which order, and how it is verified. " +
			"Have it approved with propose_plan if you have that tool; else end with the plan."
	}
	return ""
}

// edits tells a model, once, that a stricter mode of which it was told is over.
const edits = "Mode: edit. What an earlier mode forbade is allowed again."

// modeBlock is what the model has to be told of the mode; false: nothing. What it was told
// is not said again.
func (d *driver) modeBlock() (message.Block, bool) {
	block := ContextBlock{Kind: modeContext, Text: d.agent.Modes.text(d.mode())}
	if block.Text == "" {
		if _, told := d.conv.told[modeContext]; !told {
			return message.Block{}, false
		}
		block.Text = edits
	}
	b := block.Content()
	return b, d.conv.told.News(&b)
}

// carriedMode has what goes over a compaction say the mode that the run has: the approval
// of a plan may have changed it since the model was told of it.
func (d *driver) carriedMode(blocks []message.Block) []message.Block {
	i := slices.IndexFunc(blocks, func(b message.Block) bool { return b.Context == modeContext })
	if i < 0 {
		return blocks
	}
	if b, news := d.modeBlock(); news {
		blocks = slices.Clone(blocks)
		blocks[i] = b
	}
	return blocks
}

// mode is the run's. It has none before it starts.
func (d *driver) mode() string {
	if d.state.Mode == "" {
		return ModeEdit
	}
	return d.state.Mode
}

// settings takes the settings that a run starts with from the session's path, its request
// and its agent, and gives what of them the path does not have. What can not be obeyed is
// left to the agent, and said in the run's first event.
func (d *driver) settings(s *run.Settings) (mode string, set []run.Setting) {
	have, agent := d.conv.settings, d.agent
	d.conv.unheeded = nil
	unheeded := func(what, value, why string) {
		d.conv.unheeded = append(d.conv.unheeded, fmt.Sprintf("the session's %s %q is not obeyed: %s", what, clipped(value), why))
	}
	if mode = have.Mode; mode != "" && !policy.IsMode(mode) {
		unheeded("mode", mode, "the modes are "+strings.Join(policy.ModeNames(), ", "))
		mode = ""
	}
	if want := d.spec.SessionMode; want != "" && want != have.Mode {
		mode, set = want, append(set, run.Setting{Name: run.SettingMode, Value: want})
	}
	if mode == "" {
		mode = agent.Modes.First
	}
	mode = policy.Stricter(mode, d.spec.MaxMode)
	if have.Model != "" {
		if m := agent.find(have.Model); m != nil {
			s.Model = m.Name
		} else {
			unheeded("model", have.Model, "profile "+agent.Profile+" can use "+strings.Join(agent.modelNames(), ", "))
		}
	}
	if have.Thinking != "" {
		if known(have.Thinking) {
			s.Thinking = have.Thinking
		} else {
			unheeded("thinking", have.Thinking, "the levels are "+strings.Join(levels(), ", "))
		}
	}
	return mode, set
}

// lead has the run go on with an agent as its settings have it.
func (d *driver) lead(a *Agent) *Agent {
	return a.led(d.state.Settings.Model, d.state.Settings.Thinking)
}

// led is the agent with another model first, and asking it to think so much.
func (a *Agent) led(name, thinking string) *Agent {
	if name == "" && thinking == "" {
		return a
	}
	out := *a
	if m := a.find(name); m != nil {
		out.Models = []Model{*m}
		for i := range a.Models {
			if &a.Models[i] != m {
				out.Models = append(out.Models, a.Models[i])
			}
		}
		if out.Routing != "single" {
			out.Routing = "fallback" // somebody has chosen
		}
	}
	if thinking != "" {
		out.Options.Thinking = model.ThinkingLevel(thinking)
	}
	return &out
}

// find gives the model of the agent that is called so: "provider/model", or the model's
// own name; nil for none.
func (a *Agent) find(name string) *Model {
	if name == "" {
		return nil
	}
	for _, models := range [][]Model{a.Models, a.Choices} {
		for i := range models {
			if models[i].Name == name {
				return &models[i]
			}
		}
	}
	for _, models := range [][]Model{a.Models, a.Choices} {
		for i := range models {
			if models[i].ID == name {
				return &models[i]
			}
		}
	}
	return nil
}

func (a *Agent) modelNames() (names []string) {
	for _, models := range [][]Model{a.Models, a.Choices} {
		for i := range models {
			if !slices.Contains(names, models[i].Name) {
				names = append(names, models[i].Name)
			}
		}
	}
	return names
}

// levels are how much a session can ask models to think.
func levels() []string {
	return []string{string(model.ThinkingOff), string(model.ThinkingAdaptive), string(model.ThinkingMinimal), string(model.ThinkingLow), string(model.ThinkingMedium), string(model.ThinkingHigh), string(model.ThinkingXHigh), string(model.ThinkingMax)}
}

func known(level string) bool { return slices.Contains(levels(), level) }

// writeSetting writes the entry of a setting.
func (d *driver) writeSetting(tx *store.Tx, w run.AppendSetting, now int64) {
	var body any = session.ModeChange{Mode: w.Value}
	raw, _ := json.Marshal(body) // a text is always JSON
	tx.Entries = append(tx.Entries, &store.Entry{SessionID: d.row.SessionID, ID: w.Entry, Parent: w.Parent, Kind: session.KindModeChange, RunID: d.ref.ID, Created: now, Body: raw})
	d.conv.skip(w.Entry, w.Parent)
}

// checkSetting refuses a setting that no run would obey. The profile is the one that the
// request names, else that of the session's last run; without either nobody can say which
// models there are, and runs say so if they do not have it.
func (e *Engine) checkSetting(ctx context.Context, req *AppendRequest, body json.RawMessage) error {
	refuse := func(field, value, what string, names []string) error {
		return &fault.Error{Kind: fault.Invalid, Field: "data." + field, Err: fmt.Errorf("%q is not a %s", clipped(value), what), Hint: "Use " + strings.Join(names, ", ") + "."}
	}
	switch req.Kind {
	case session.KindModeChange:
		var b session.ModeChange
		if err := json.Unmarshal(body, &b); err == nil && !policy.IsMode(b.Mode) {
			return refuse("mode", b.Mode, "mode", policy.ModeNames())
		}
	case session.KindThinkingChange:
		var b session.ThinkingChange
		if err := json.Unmarshal(body, &b); err == nil && !known(b.Level) {
			return refuse("level", b.Level, "level of thinking", levels())
		}
	case session.KindModelChange:
		var b session.ModelChange
		if err := json.Unmarshal(body, &b); err != nil {
			return nil
		}
		name := b.Name()
		profile := req.Profile
		if profile == "" {
			rows, _, err := e.store.Runs(ctx, req.Tenant, store.RunFilter{SessionID: req.SessionID, Limit: 1})
			if err != nil {
				return internal("engine.AppendEntry", err)
			}
			if len(rows) == 0 {
				return nil
			}
			profile = rows[0].Profile
		}
		agent, err := e.cfg.Agents.Outline(ctx, req.Tenant, profile)
		if err != nil {
			return err
		}
		if agent.find(name) == nil {
			f := &fault.Error{Kind: fault.Invalid, Field: "data.model", Err: fmt.Errorf("profile %s can not use the model %q", agent.Profile, clipped(name))}
			f.Hint = "Use " + strings.Join(agent.modelNames(), ", ") + ", or add it to the profile's models, and its key to the environment."
			return f
		}
	}
	return nil
}

// planMode checks the mode to which the answer to an interrupt switches.
func (e *Engine) planMode(ctx context.Context, row *store.Interrupt, req *AnswerRequest) error {
	switch {
	case req.SessionMode == "":
		return nil
	case row.Kind != "plan" || req.Decision != "approve":
		return &fault.Error{Kind: fault.Invalid, Field: "session_mode", Err: errors.New("only the approval of a plan switches the mode"),
			Hint: "Answer without it: the interrupt is still open. agentd sessions mode " + row.SessionID + " " + ModeEdit + " switches when the run has ended."}
	case !policy.IsMode(req.SessionMode):
		return noMode(req.SessionMode)
	}
	r, err := e.store.Run(ctx, req.Tenant, row.RunID)
	if err != nil {
		return notFound("run", row.RunID, err)
	}
	var sp spec
	if err := json.Unmarshal(r.Spec, &sp); err != nil {
		return internal("engine.Answer", err)
	}
	if policy.Stricter(req.SessionMode, sp.MaxMode) != req.SessionMode {
		return &fault.Error{Kind: fault.Invalid, Field: "session_mode", Err: fmt.Errorf("the run that started this one is in mode %s, which holds for it, too", sp.MaxMode),
			Hint: "Answer without it: the interrupt is still open. What is to be done in mode " + req.SessionMode + " is done from the session above."}
	}
	return nil
}

func noMode(mode string) error {
	return &fault.Error{Kind: fault.Invalid, Field: "session_mode", Err: fmt.Errorf("%q is not a mode of a session", clipped(mode)), Hint: "Use " + strings.Join(policy.ModeNames(), ", ") + "."}
}

// modeOf is the mode that a run's row has; "" for a run that did not start yet, unless its
// request sets one.
func modeOf(row *store.Run) string {
	st, err := run.Decode(row.State)
	if err == nil && st.Status == run.Queued {
		var sp spec
		if json.Unmarshal(row.Spec, &sp) != nil || sp.SessionMode == "" {
			return ""
		}
		return policy.Stricter(sp.SessionMode, sp.MaxMode)
	}
	if err == nil && st.Mode != "" {
		return st.Mode
	}
	return ModeEdit
}

// judgeAgain looks once more at what an answer lets happen, in the mode of now: calls may
// have been judged, and what a person made of them checked, before a plan switched it. The
// approval of a plan that switches it gets to know what the new mode forbids of its batch.
// What the mode forbids is refused, and its interrupt stays open.
func (d *driver) judgeAgain(in run.Input) (run.Input, error) {
	w, amended := in.(withArgs)
	pure := in
	if amended {
		pure = w.Input
	}
	a, ok := pure.(run.Answered)
	i := slices.IndexFunc(d.state.Calls, func(c run.Call) bool { return c.Phase == run.CallAsked && c.Interrupt == a.Interrupt })
	if !ok || i < 0 {
		return in, nil
	}
	switch c := &d.state.Calls[i]; a.Decision {
	case "retry", "approve":
		if c.InterruptKind != "plan" {
			if why := d.forbids(c, d.mode(), w.args); why != "" {
				return nil, &fault.Error{Kind: fault.Conflict, Err: errors.New(why), Hint: "The interrupt is still open: decide otherwise, or cancel the run."}
			}
			return in, nil
		}
	}
	if a.Mode == "" || a.Mode == d.mode() {
		return in, nil
	}
	a.Forbidden = map[string]string{}
	for j := range d.state.Calls {
		c := &d.state.Calls[j]
		if c.Phase != run.CallReady && c.Phase != run.CallAsked {
			continue
		}
		if why := d.forbids(c, a.Mode, nil); why != "" {
			a.Forbidden[c.ID] = why
		}
	}
	if amended {
		return withArgs{a, w.call, w.args}, nil
	}
	return a, nil
}

// forbids says why a mode forbids a call of the open batch, with its arguments or others.
func (d *driver) forbids(c *run.Call, mode string, args json.RawMessage) string {
	_, spec, ok := d.tools.set.Lookup(c.Name)
	if !ok { // its server may be away
		spec = tool.Spec{Name: c.Name, Effect: tool.Effect(c.Effect), Kind: c.Kind}
	}
	if args == nil {
		args = d.tools.amended[c.ID]
	}
	if args == nil {
		args = d.tools.args(c.ID, c.Name)
	}
	return d.tools.modes.Forbids(mode, &spec, args)
}
