package engine

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"agentd/internal/prefix"
	"agentd/internal/prompt"
	"agentd/message"
	"agentd/tool"
)

// Tools come first in a request, so a tool more or less has everything behind it read
// again. The list of tools of a conversation is therefore kept as it was first sent: what
// changed is told beside a person's words, what is gone answers with an error, and what
// is new is called through [CallByName], which is in the list from the beginning. The list
// is made anew where that costs nothing, or where it must not be kept; see settleTools.

// toolset is a list of tools as requests have it. It is never changed.
type toolset struct {
	Profile string `json:"profile"`
	// Rules are the agent's ToolRules, Missing is whether a source gave none.
	Rules   string     `json:"rules,omitempty"`
	Missing bool       `json:"missing,omitempty"`
	Tools   []toolForm `json:"tools"`

	raw   json.RawMessage
	hash  string
	specs []tool.Spec
}

// toolForm is what a model is told of a tool. The schema is a text, because that of a
// request must be the same to the byte.
type toolForm struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Schema      string `json:"schema"`
}

func formOfTool(s *tool.Spec) toolForm {
	return toolForm{s.Name, strings.ToValidUTF8(s.Description, "\uFFFD"), strings.ToValidUTF8(string(s.Schema), "\uFFFD")}
}

// lateTools is the list of a conversation.
type lateTools struct {
	*toolset
	// run is the run whose trace has it; "" for none yet.
	run string
}

// finish makes what follows from the list; false if it can not be written.
func (t *toolset) finish() bool {
	raw, err := json.Marshal(t)
	if err != nil {
		return false
	}
	sum := sha256.Sum256(raw)
	t.raw, t.hash = raw, base64.RawURLEncoding.EncodeToString(sum[:16])
	t.specs = make([]tool.Spec, len(t.Tools))
	for i, f := range t.Tools {
		t.specs[i] = tool.Spec{Name: f.Name, Description: f.Description, Schema: json.RawMessage(f.Schema)}
	}
	return true
}

// decodeToolset reads a list that was stored; nil if it is not the one of that hash.
func decodeToolset(raw json.RawMessage, hash string) *toolset {
	var t toolset
	if len(raw) == 0 || json.Unmarshal(raw, &t) != nil || !t.finish() || t.hash != hash {
		return nil
	}
	return &t
}

func (t *toolset) form(name string) *toolForm {
	if i := slices.IndexFunc(t.Tools, func(f toolForm) bool { return f.Name == name }); i >= 0 {
		return &t.Tools[i]
	}
	return nil
}

// present is the list of what the run may call, and of what calls what comes later.
func (d *driver) present() *toolset {
	t := &toolset{Profile: d.row.Profile, Rules: d.agent.ToolRules, Missing: len(d.agent.Unreachable) > 0}
	specs := append(d.tools.set.Specs(), callByName)
	slices.SortFunc(specs, func(a, b tool.Spec) int { return strings.Compare(a.Name, b.Name) })
	for i := range specs {
		t.Tools = append(t.Tools, formOfTool(&specs[i]))
	}
	if !t.finish() {
		return nil
	}
	return t
}

// coldAfter is how long after its last request a beginning is surely not in a cache any
// more. Anthropic documents when it goes; the others how long they keep it at the least,
// which models of OpenAI do for up to a day without being asked.
func coldAfter(m *Model) time.Duration {
	if m.CacheTTL > 0 && strings.HasPrefix(m.Name, "anthropic/") {
		return max(m.CacheTTL, time.Hour)
	}
	return 24 * time.Hour
}

// settleTools decides with which list the run goes on: that of the newest reply, unless
// there is none since the conversation was compacted, the prompt is cold anyway, another
// agent made it, somebody changed what the agent may have, servers that were missing
// are back, or the request has a tool called that the list does not have. The reply's
// record names it, so every driver decides the same, wherever it is.
func (d *driver) settleTools() {
	d.tools.late = nil
	if !d.tools.lists {
		return
	}
	now := d.present()
	if now == nil {
		return
	}
	d.tools.late = &lateTools{toolset: now}
	if !d.repliedSinceCompaction() {
		return
	}
	last, _ := d.lastRequest(d.ctx, d.replies(len(d.conv.messages)))
	if last == nil || last.Toolset == "" {
		return
	}
	if last.Toolset == now.hash {
		d.tools.late.run = last.ToolsetRun
		return
	}
	m := d.model()
	if time.Duration(d.e.now()-last.Time)*time.Millisecond > coldAfter(&m) {
		return
	}
	was, choice := d.e.toolset(d.ctx, Ref{d.ref.Tenant, last.ToolsetRun}, last.Toolset), d.spec.Overrides.ToolChoice
	switch {
	case was == nil:
		d.e.log.Warn("the tools that the conversation was sent can not be found; those of now are", "run", d.ref.ID, "session", d.row.SessionID)
	case was.Profile != now.Profile, was.Rules != now.Rules, was.Missing && !now.Missing:
	case was.form(choice) == nil && now.form(choice) != nil: // providers refuse to have a tool called that is not in the list
	default:
		d.tools.late = &lateTools{toolset: was, run: last.ToolsetRun}
	}
}

// relist makes the list anew, where the request is another one anyway.
func (d *driver) relist() {
	if now := d.present(); d.tools.late != nil && now != nil && now.hash != d.tools.late.hash {
		d.tools.late = &lateTools{toolset: now}
	}
}

// repliedSinceCompaction is whether the newest reply is younger than the compaction that the
// conversation begins with.
func (d *driver) repliedSinceCompaction() bool {
	for i := min(len(d.conv.messages), len(d.conv.origins)) - 1; i >= 0; i-- {
		if o := d.conv.origins[i]; d.conv.messages[i].Role == message.RoleAssistant && o.entry != "" {
			return !o.kept
		}
	}
	return false
}

// declared are the tools of requests.
func (d *driver) declared() []tool.Spec {
	if d.tools.late != nil {
		return d.tools.late.specs
	}
	return d.tools.set.Specs()
}

// noteToolset has a request's record name its list, and the list itself stored beside
// it, once. A run without tools between others changes nothing for them.
func (d *driver) noteToolset(r *prefix.Record, late *lateTools, before *prefix.Record) {
	d.toolsNote = nil
	if late == nil {
		if d.spec.Overrides.NoTools && before != nil {
			r.Toolset, r.ToolsetRun = before.Toolset, before.ToolsetRun
		}
		return
	}
	if late.run == "" {
		late.run, d.toolsNote = d.ref.ID, late.raw
		d.e.toolsets.put(d.ref.Tenant, late.toolset)
	}
	r.Toolset, r.ToolsetRun = late.hash, late.run
}

// toolset finds the list that a run's trace has; nil if it can not be found.
func (e *Engine) toolset(ctx context.Context, ref Ref, hash string) *toolset {
	if t := e.toolsets.get(ref.Tenant, hash); t != nil {
		return t
	}
	for n := range e.replyNotes(ctx, ref) {
		if t := decodeToolset(n.Toolset, hash); t != nil {
			e.toolsets.put(ref.Tenant, t)
			return t
		}
	}
	return nil
}

// recentToolsets are lists that were used here lately. Sessions of an agent mostly share
// theirs.
type recentToolsets struct {
	mu       sync.Mutex
	cur, old map[toolsetKey]*toolset
}

type toolsetKey struct{ tenant, hash string }

// maxToolsets bounds recentToolsets, twice.
const maxToolsets = 64

func (p *recentToolsets) get(tenant, hash string) *toolset {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := toolsetKey{tenant, hash}
	if t := p.cur[k]; t != nil {
		return t
	}
	return p.old[k]
}

func (p *recentToolsets) put(tenant string, t *toolset) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := toolsetKey{tenant, t.hash}
	if p.cur == nil || len(p.cur) >= maxToolsets && p.cur[k] == nil {
		p.old, p.cur = p.cur, map[toolsetKey]*toolset{}
	}
	p.cur[k] = t
}

// toolsContext is the kind of context that says how tools are others than in the list.
const toolsContext = prompt.ToolsKind

// news says how what can be called is another than the list; "" if it is not.
func (t *toolset) news(set *tool.Set) string {
	var gone, late, changed []string
	for _, s := range set.Specs() {
		now := formOfTool(&s)
		switch was := t.form(s.Name); {
		case was == nil:
			late = append(late, now.text())
		case *was != now:
			changed = append(changed, now.text())
		}
	}
	for i := range t.Tools {
		if name := t.Tools[i].Name; name != CallByName {
			if _, _, ok := set.Lookup(name); !ok {
				gone = append(gone, name)
			}
		}
	}
	var parts []string
	if len(gone) > 0 {
		parts = append(parts, "Not available now; do not call them: "+strings.Join(gone, ", ")+".")
	}
	if len(late) > 0 {
		parts = append(parts, "New; call them with "+CallByName+":\n"+strings.Join(late, "\n"))
	}
	if len(changed) > 0 {
		parts = append(parts, "Changed; what is said here holds, and not their definitions. Call them as before, or with "+CallByName+" where their definitions do not allow what is said here:\n"+strings.Join(changed, "\n"))
	}
	if len(parts) == 0 {
		return ""
	}
	return "The tools are others than when this conversation began. " + strings.Join(parts, "\n")
}

func (f *toolForm) text() string {
	schema := f.Schema
	if schema == "" {
		schema = "{}"
	}
	return "- " + f.Name + ": " + strings.TrimSpace(f.Description) + "\n  arguments: " + schema
}

// unavailable says why a tool of the list can not be called; "" if it is not in the list.
func (t *lateTools) unavailable(name string) string {
	switch {
	case t == nil:
		return ""
	case name == CallByName:
		return "Not executed: " + CallByName + ` takes {"tool": "the tool's name", "arguments": {…}}.`
	case t.form(name) == nil:
		return ""
	}
	return fmt.Sprintf("Not executed: the tool %q is not available here now. It was when this conversation began; since then its server, its page or its client has taken it away. Do without it, or say what is missing.", name)
}
