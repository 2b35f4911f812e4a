package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentd/internal/policy"
	"agentd/internal/run"
	"agentd/message"
	"agentd/tool"
)

// toolbox is what a run may call: the agent's tools, those that the machine
// performs, and those of the client. It does not change while the run lasts.
type toolbox struct {
	set       tool.Set
	validator *tool.Validator
	rules     policy.Rules
	// mode gives the mode of the session, modes say what it allows.
	mode      func() string
	modes     policy.Modes
	subagents []string
	auto      bool
	freeform  bool
	// readOn is whether the run has read_artifact.
	readOn bool
	// missing says which tools could not be had.
	missing string
	// depth is how many runs are above this one, deepest how many there may be.
	depth, deepest int
	// raw, prepared and amended are the arguments of the open batch by call id:
	// as the model wrote them, validated, and as a person changed them.
	raw      map[string]json.RawMessage
	prepared map[string]json.RawMessage
	amended  map[string]json.RawMessage
	// recall gives what people allowed in the session, or is nil; recalled are the
	// reasons of calls of the open batch that it allowed.
	recall   func() []policy.Remembered
	recalled map[string]string
	// cache are the agent's CacheTools.
	cache []string
	// lists is whether lists of tools are kept. late is the list of the conversation,
	// or nil.
	lists bool
	late  *lateTools
	// untrusted is driver.untrusted, or nil.
	untrusted func(callID string, args json.RawMessage) bool
}

func (e *Engine) newToolbox(a *Agent, o *Overrides, autonomous bool) (toolbox, error) {
	b := toolbox{validator: e.validator, rules: a.Rules, modes: a.Modes.Allows, subagents: a.Subagents, auto: autonomous, freeform: a.Freeform, missing: missing(a), cache: a.CacheTools}
	if o.NoTools {
		return b, nil
	}
	var tools []tool.Tool
	for _, name := range a.Tools.Names() {
		t, _, _ := a.Tools.Lookup(name)
		tools = append(tools, t)
	}
	if a.AskUser && !autonomous {
		tools = append(tools, askUserQuestion{a.Freeform})
	}
	if a.Plans && !autonomous {
		tools = append(tools, proposePlan{})
	}
	if len(a.Subagents) > 0 {
		tools = append(tools, createSubagent{a.Subagents})
	}
	if b.readOn = readsOn(a, o); b.readOn {
		tools = append(tools, readArtifact{e})
	}
	for _, c := range o.ClientTools {
		if _, _, taken := a.Tools.Lookup(c.Name); taken {
			return b, fmt.Errorf("the client's tool %q has the name of a tool of the server: rename it", c.Name)
		}
		tools = append(tools, clientTool{c})
	}
	var err error
	b.set, err = tool.NewSet(tools...)
	_, _, taken := b.set.Lookup(CallByName)
	b.lists = a.LateTools && !taken
	return b, err
}

// open takes in the calls of a reply.
func (b *toolbox) open(m *message.Message) {
	b.raw, b.prepared, b.amended = map[string]json.RawMessage{}, map[string]json.RawMessage{}, map[string]json.RawMessage{}
	b.recalled = map[string]string{}
	for _, c := range m.ToolCalls() {
		b.raw[c.ID] = c.Arguments
	}
}

// args gives what is known of a call's arguments: the validated ones, else what
// the model wrote.
func (b *toolbox) args(callID, name string) json.RawMessage {
	if p, ok := b.prepared[callID]; ok {
		return p
	}
	// Judged by an earlier driver: the verdict is stored, the coerced
	// arguments are not, but they are a function of the raw ones.
	if _, spec, ok := b.set.Lookup(name); ok {
		if args, err := b.validator.Prepare(spec, b.raw[callID]); err == nil {
			return args
		}
	}
	return b.raw[callID]
}

// judge decides about a call: lookup, arguments, policy.
func (b *toolbox) judge(in run.Judge, at run.At) run.Verdict {
	v := run.Verdict{At: at, CallID: in.CallID, Decision: run.Deny}
	_, spec, ok := b.set.Lookup(in.Name)
	if why := b.late.unavailable(in.Name); !ok && why != "" {
		v.Reason = strings.TrimSpace(why + " " + b.missing)
		return v
	}
	if !ok {
		v.Reason = strings.TrimSpace(fmt.Sprintf("There is no tool %q. %s %s", in.Name, b.known(), b.missing))
		return v
	}
	v.Effect, v.Sequential, v.ToolKind = string(spec.EffectOrDefault()), spec.Sequential, spec.Kind
	args, aerr := b.validator.Prepare(spec, b.raw[in.CallID])
	if aerr != nil {
		v.Reason = aerr.Error()
		return v
	}
	b.prepared[in.CallID] = args
	if why := b.forbids(&spec, args); why != "" {
		v.Reason = why
		return v
	}
	switch spec.Kind {
	case "ask":
		v.Decision = run.Ask
		v.Prompt, v.Schema = question(args, b.freeform)
		return v
	case "plan":
		v.Decision, v.Prompt = run.Ask, planOf(args)
		return v
	case "spawn":
		if b.depth >= b.deepest {
			v.Reason = fmt.Sprintf("Not executed: this run is a subagent at depth %d, and subagents may be nested %d deep (limits.max_subagent_depth). Do the work yourself, or say what is left to do.", b.depth, b.deepest)
			return v
		}
		if name := subagentOf(args); !slices.Contains(b.subagents, name) {
			v.Reason = fmt.Sprintf("There is no subagent %q: use one of %s.", name, strings.Join(b.subagents, ", "))
			return v
		}
	case "client":
		v.Decision = run.Allow
		return v
	}
	doubt := spec.Untrusted == "ask" && b.untrusted != nil && b.untrusted(in.CallID, args)
	if doubt {
		spec.Approval, spec.ApprovalBy = "always", "it may come from outputs of tools and not from a person"
	}
	verdict := b.rules.Judge(&spec, args, b.auto)
	v.Reason = verdict.Reason
	if verdict.Ask && b.recall != nil {
		if known, rule := policy.Recall(b.recall(), &spec, args); rule != nil {
			v.Decision, v.Reason = run.Allow, known.Reason
			b.recalled[in.CallID] = known.Reason
			v.CacheKey = b.cacheKey(&spec, args)
			return v
		}
	}
	switch {
	case verdict.Capture:
		v.Decision = run.Capture
	case verdict.Deny:
		v.Reason = "Not executed: " + verdict.Reason + "."
	case verdict.Ask:
		v.Decision, v.Grave = run.Ask, doubt || policy.Grave(&spec)
		v.Prompt = fmt.Sprintf("May %s run? (%s)", in.Name, verdict.Reason)
	default:
		v.Decision = run.Allow
	}
	v.CacheKey = b.cacheKey(&spec, args)
	return v
}

// forbids says why the session's mode forbids a call, or "".
func (b *toolbox) forbids(spec *tool.Spec, args json.RawMessage) string {
	if b.mode == nil {
		return ""
	}
	return b.modes.Forbids(b.mode(), spec, args)
}

// shown gives a call's arguments as people see them: as a person changed them,
// else as the model wrote them.
func (b *toolbox) shown(callID string) (args json.RawMessage, amended bool) {
	if a, ok := b.amended[callID]; ok {
		return a, true
	}
	return b.raw[callID], false
}

// amend replaces a call's arguments by a person's, if they are valid.
func (b *toolbox) amend(callID, name string, raw json.RawMessage) (json.RawMessage, error) {
	_, spec, ok := b.set.Lookup(name)
	if !ok {
		return nil, fmt.Errorf("there is no tool %q any more", name)
	}
	args, aerr := b.validator.Prepare(spec, raw)
	if aerr != nil {
		return nil, aerr
	}
	if why := b.forbids(&spec, args); why != "" {
		return nil, errors.New(why) // a person decides about the call, and not about the mode
	}
	b.prepared[callID] = args
	return args, nil
}

func (b *toolbox) known() string {
	names := b.set.Names()
	if len(names) == 0 {
		return "No tools are available in this run."
	}
	return "The tools are: " + strings.Join(names, ", ") + "."
}

func (b *toolbox) subagent(callID string) string { return subagentOf(b.args(callID, CreateSubagent)) }
