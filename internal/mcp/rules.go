package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"agentd/tool"
)

// Rule names tools, and possibly only some of their calls. In YAML it is a
// name, a pattern with * and ?, or {tool: pattern, args: regular expression}.
// The expression is matched against the compact JSON of the arguments, with
// sorted keys.
type Rule struct {
	Tool string `yaml:"tool" required:"true"`
	Args string `yaml:"args" format:"regex"`
}

// UnmarshalYAML reads a rule in its short or long form.
func (r *Rule) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&r.Tool) == nil {
		return nil
	}
	type long Rule
	return unmarshal((*long)(r))
}

// Condition says when a call needs approval. In YAML it is a class, a regular
// expression over the arguments' JSON, or {tool, args, class}: calls of the
// tools that match, whose arguments match. A class given with a tool says that
// these tools belong to it.
type Condition struct {
	Tool  string `yaml:"tool"`
	Args  string `yaml:"args" format:"regex"`
	Class string `yaml:"class" enum:"write,delete,network,shell,dangerous"`
}

// UnmarshalYAML reads a condition in its short or long form.
func (c *Condition) UnmarshalYAML(unmarshal func(any) error) error {
	var s string
	if unmarshal(&s) == nil {
		if class := className(s); class != "" {
			c.Class = class
		} else {
			c.Args = s
		}
		return nil
	}
	type long Condition
	return unmarshal((*long)(c))
}

// Classes of tools, as approval policies name them.
const (
	classWrite     = "write"
	classDelete    = "delete"
	classNetwork   = "network"
	classShell     = "shell"
	classDangerous = "dangerous"
)

func className(s string) string {
	switch s {
	case "write", "writes":
		return classWrite
	case "delete", "deletes":
		return classDelete
	case classNetwork, classShell, classDangerous:
		return s
	}
	return ""
}

type rule struct {
	tool *regexp.Regexp
	args *regexp.Regexp // nil for every call
	text string
}

func compileRules(in []Rule) ([]rule, error) {
	var out []rule
	for _, r := range in {
		if r.Tool == "" {
			return nil, fmt.Errorf("an entry names no tool")
		}
		c := rule{tool: glob(r.Tool), text: r.Tool}
		if r.Args != "" {
			var err error
			if c.args, err = regexp.Compile(r.Args); err != nil {
				return nil, fmt.Errorf("%q is not a regular expression", r.Args)
			}
			c.text += " with args " + r.Args
		}
		out = append(out, c)
	}
	return out, nil
}

type condition struct {
	tool  *regexp.Regexp // nil for every tool
	args  string         // "" for every call
	class string         // "" if not by class
}

type approval struct {
	always      []rule
	conditional []condition
}

func compileApproval(a Approval) (approval, error) {
	always, err := compileRules(a.Always)
	out := approval{always: always}
	if err != nil {
		return out, err
	}
	for _, c := range a.Conditional {
		if c == (Condition{}) {
			return out, fmt.Errorf("an empty condition")
		}
		if _, err := regexp.Compile(c.Args); err != nil {
			return out, fmt.Errorf("%q is not a regular expression", c.Args)
		}
		k := condition{args: c.Args, class: className(c.Class)}
		if c.Class != "" && k.class == "" {
			return out, fmt.Errorf("does not know the class %q", c.Class)
		}
		if c.Tool != "" {
			k.tool = glob(c.Tool)
		}
		out.conditional = append(out.conditional, k)
	}
	return out, nil
}

// apply fills in what the rules say about a tool that has its effect and its
// suggested classes already.
func (a *approval) apply(spec *tool.Spec, name string) {
	for _, c := range a.conditional {
		if c.tool != nil && c.class != "" && c.tool.MatchString(name) && !slices.Contains(spec.Classes, c.class) {
			spec.Classes = append(spec.Classes, c.class)
		}
	}
	slices.Sort(spec.Classes)
	for _, r := range a.always {
		switch {
		case !r.tool.MatchString(name):
		case r.args == nil:
			spec.Approval = "always"
		default:
			spec.Conditions = append(spec.Conditions, r.args.String())
		}
	}
	for _, c := range a.conditional {
		if c.tool != nil && !c.tool.MatchString(name) || c.tool == nil && c.class != "" && !slices.Contains(spec.Classes, c.class) {
			continue
		}
		if c.args == "" {
			if spec.Approval != "always" {
				spec.ApprovalBy = "requires_approval.conditional names " + spec.Name
				if c.tool == nil {
					spec.ApprovalBy = "requires_approval.conditional asks for " + c.class + " calls"
				}
			}
			spec.Approval = "always"
		} else {
			spec.Conditions = append(spec.Conditions, c.args)
		}
	}
	switch {
	case spec.Approval == "always":
		spec.Conditions = nil
	case len(spec.Conditions) > 0:
		spec.Approval = "conditional"
	}
}

// access is a server's allowlist and denylist.
type access struct{ allow, deny []rule }

// visible reports whether a tool may be called at all.
func (a *access) visible(name string) bool {
	for _, r := range a.deny {
		if r.args == nil && r.tool.MatchString(name) {
			return false
		}
	}
	return len(a.allow) == 0 || slices.ContainsFunc(a.allow, func(r rule) bool { return r.tool.MatchString(name) })
}

// refusal says why a call may not be made; "" means that it may. args are
// canonical. A denied number is denied however it is written, and an allowed one is
// allowed only if it is in every way of writing it.
func (a *access) refusal(name string, args []byte) string {
	plain := args
	if len(a.allow)+len(a.deny) > 0 {
		plain = tool.PlainNumbers(args)
	}
	for _, r := range a.deny {
		if r.tool.MatchString(name) && (r.args == nil || r.args.Match(args) || r.args.Match(plain)) {
			return fmt.Sprintf("the denylist has %s", r.text)
		}
	}
	if len(a.allow) == 0 {
		return ""
	}
	for _, r := range a.allow {
		if r.tool.MatchString(name) && (r.args == nil || r.args.Match(args) && r.args.Match(plain)) {
			return ""
		}
	}
	return "the allowlist has no entry for these arguments"
}

// canonical writes arguments compactly, with sorted keys and without needless
// escapes, so that a pattern can not be passed by writing them differently.
func canonical(raw json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage("{}"), nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("the arguments are not JSON: %w", err)
	}
	if _, ok := v.(map[string]any); !ok {
		return nil, fmt.Errorf("the arguments are not a JSON object")
	}
	return tool.EncodeJSON(v)
}

// suggestClasses says what a tool seems to do, by its effect, the words of its
// name and the server's hints. It errs on the side of asking: nothing here takes
// a class away.
func suggestClasses(name string, effect tool.Effect, destructive, openWorld bool) []string {
	set := map[string]bool{classDelete: destructive, classNetwork: openWorld}
	if effect != tool.Read {
		set[classWrite] = true
	}
	for _, w := range words(name) {
		switch w {
		case "delete", "remove", "drop", "destroy", "purge", "erase", "truncate", "wipe", "clear", "rm":
			set[classDelete] = true
		case "shell", "bash", "sh", "exec", "execute", "command", "cmd", "terminal", "powershell", "process", "script":
			set[classShell] = true
		case "fetch", "http", "https", "url", "web", "browse", "browser", "download", "upload", "request", "curl", "navigate":
			set[classNetwork] = true
		}
	}
	set[classDangerous] = set[classDelete] || set[classShell]
	var out []string
	for _, class := range []string{classDangerous, classDelete, classNetwork, classShell, classWrite} {
		if set[class] {
			out = append(out, class)
		}
	}
	return out
}

// words splits a name at separators and at capitals: readFile, read_file.
func words(name string) []string {
	var b strings.Builder
	prevLower := false
	for _, r := range name {
		if unicode.IsUpper(r) && prevLower {
			b.WriteByte(' ')
		}
		prevLower = unicode.IsLower(r)
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(unicode.ToLower(r))
		} else {
			b.WriteByte(' ')
		}
	}
	return strings.Fields(b.String())
}
