package memory

import (
	"cmp"
	"context"
	_ "embed" // the descriptions beside this file
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"agentd/fault"
	"agentd/tool"
)

// Names of the tools.
const (
	Remember = "remember"
	Recall   = "recall"
)

// WritePolicy is when something is remembered.
type WritePolicy string

// The policies.
const (
	// Never: the agent can not write.
	Never WritePolicy = "never"
	// Explicit: when a person asks for it. A call that the model wrote after it read
	// outputs of tools needs a person's word.
	Explicit WritePolicy = "explicit"
	// Auto: by the model's own judgement. What it wrote after it read outputs of
	// tools is kept as [Tool].
	Auto WritePolicy = "auto"
)

//go:embed remember.md
var rememberDescription string

//go:embed recall.md
var recallDescription string

// Tools gives the tools that a profile's policies allow. never are the kinds of data
// of which the model is told not to remember them.
func Tools(m *Memory, write WritePolicy, read ReadPolicy, never []string) []tool.Tool {
	var out []tool.Tool
	if write == Explicit || write == Auto {
		out = append(out, remember{m, write, never})
	}
	if read != Always {
		out = append(out, recall{m})
	}
	return out
}

type remember struct {
	m     *Memory
	write WritePolicy
	never []string
}

// Spec describes the tool.
func (r remember) Spec() tool.Spec {
	text, untrusted := strings.TrimSpace(rememberDescription), "tell"
	if r.write == Explicit {
		untrusted = "ask"
		text += " Use it only when a person asks you to remember something."
	} else {
		text += " Use it when a person asks you to remember something, or corrects you, or says something that will hold beyond this conversation."
	}
	text += " Never remember secrets."
	if len(r.never) > 0 {
		text += " Never remember any of these: " + strings.Join(r.never, ", ") + "."
	}
	sections, _ := json.Marshal(Sections())
	return tool.Spec{Name: Remember, Label: "Remember", Description: text, Effect: tool.Idempotent, Timeout: 30 * time.Second, Source: "builtin",
		Untrusted: untrusted, Trusted: true, Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"text":{"type":"string","minLength":1,"description":"One short sentence, complete in itself."},` +
			`"section":{"type":"string","enum":` + string(sections) + `,"description":"Preferences: how the person wants things. Context: facts. Learned Patterns: what the person means by what they say, and how things are done."},` +
			`"scope":{"type":"string","enum":["global","project"],"description":"global: of the person, everywhere. project: of the folder that you work in."}},` +
			`"required":["text","section"],"additionalProperties":false}`)}
}

// Change is what an event and a result say of something that was remembered.
type Change struct {
	// Action is added, known (it was there), edited or removed.
	Action  string `json:"action"`
	ID      string `json:"memory_id"`
	Scope   Scope  `json:"scope"`
	Section string `json:"section,omitempty"`
	Text    string `json:"text"`
	Origin  Origin `json:"origin,omitempty"`
}

// Run remembers. It may be called again for the same call.
func (r remember) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	var a struct {
		Text    string `json:"text"`
		Section string `json:"section"`
		Scope   Scope  `json:"scope"`
	}
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return tool.ErrorResult("The arguments are not right: " + err.Error()), nil
	}
	e := Entry{Scope: a.Scope, Section: a.Section, Text: a.Text, Origin: Agent, Run: call.RunID}
	if call.Untrusted {
		e.Origin = Tool
	}
	e, added, err := r.m.Add(ctx, Who{call.Tenant, call.User}, e)
	if err != nil {
		return refused(err), nil
	}
	c := Change{Action: "added", ID: e.ID, Scope: e.Scope, Section: e.Section, Text: e.Text, Origin: e.Origin}
	text := fmt.Sprintf("Remembered (%s, %s): %s", e.Scope, e.Section, e.Text)
	if !added && e.Run != call.RunID {
		c.Action, text = "known", fmt.Sprintf("This is remembered already (%s, %s): %s", e.Scope, e.Section, e.Text)
	}
	switch e.Origin {
	case Workspace:
		text += "\nIt stands in MEMORY.md of the workspace, which others may have written: it is kept as a note from there until a person adopts it (agentd memory trust " + e.ID + ")."
	case Tool:
		text += "\nIt is kept as a note that came from outputs of tools, not as something that the person said."
	}
	res := tool.TextResult(text)
	if res.Details, err = json.Marshal(c); err != nil {
		return tool.Result{}, fmt.Errorf("memory: details: %w", err)
	}
	return res, nil
}

func refused(err error) tool.Result {
	text := "Not remembered: " + err.Error()
	if hint := fault.HintOf(err); hint != "" {
		text += ". " + hint
	}
	return tool.ErrorResult(text)
}

type recall struct{ m *Memory }

// Spec describes the tool.
func (recall) Spec() tool.Spec {
	return tool.Spec{Name: Recall, Label: "Recall", Description: strings.TrimSpace(recallDescription), Effect: tool.Read, Timeout: 30 * time.Second, Source: "builtin",
		Trusted: true, Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string","description":"Words to look for; without them everything is given."}},"additionalProperties":false}`)}
}

// maxRecalled bounds the entries of one result.
const maxRecalled = 50

// Run looks into the memory.
func (r recall) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	var a struct {
		Query string `json:"query"`
	}
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return tool.ErrorResult("The arguments are not right: " + err.Error()), nil
	}
	all, err := r.m.List(ctx, Who{call.Tenant, call.User})
	if err != nil {
		return tool.ErrorResult("The memory can not be read: " + err.Error()), nil
	}
	ours, theirs := r.m.apart(all)
	if strings.TrimSpace(a.Query) != "" {
		ours, theirs = rank(ours, a.Query, maxRecalled), rank(theirs, a.Query, maxRecalled)
	}
	found := append(ours, theirs...)
	if len(found) == 0 {
		return tool.TextResult(fmt.Sprintf("Nothing that is remembered has to do with this (%d entries in all).", len(all))), nil
	}
	var b strings.Builder
	var beside aside
	for i := range found[:min(len(found), maxRecalled)] {
		e := &found[i]
		switch e.Origin {
		case Tool:
			beside.tool = append(beside.tool, quoted(e))
		case Workspace:
			beside.found = r.m.found(beside.found, e.Text)
		default:
			fmt.Fprintf(&b, "- %s (%s, %s%s)\n", e.Text, e.Scope, cmp.Or(e.Section, "Notes"), on(e.Date))
		}
	}
	text := strings.TrimSpace(b.String()) + r.m.aside(beside, b.Len() > 0)
	if len(found) > maxRecalled {
		text += fmt.Sprintf("\n\n[%d more: ask with words to look for.]", len(found)-maxRecalled)
	}
	return tool.TextResult(text), nil
}

func on(date string) string {
	if date == "" {
		return ""
	}
	return ", " + date
}
