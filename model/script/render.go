package script

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template/parse"

	"agentd/message"
)

// maxOutput bounds what one template may write.
const maxOutput = 8 << 20

// templateName is what error messages call a text.
const templateName = "template"

// text is a template, or a plain text, which costs nothing to render.
type text struct {
	fixed string
	trees map[string]*parse.Tree
	funcs map[string]any
	where string // for errors while rendering
}

// plain reports whether the text is the same for every conversation.
func (t *text) plain() bool { return t.trees == nil }

// template compiles a text; path says where it stands.
func (p *parsing) template(path, src string) (*text, error) {
	where := fmt.Sprintf("%s:%d: %s", p.file, p.line(path), path)
	if !strings.Contains(src, "{{") {
		return &text{fixed: src, where: where}, nil
	}
	funcs := allFunctions()
	trees, err := parse.Parse(templateName, src, "", "", funcs)
	if err != nil {
		return nil, p.at(path, "write a Go text/template; docs/scripts.md lists the data and the functions",
			"%s", strings.TrimPrefix(err.Error(), "template: "))
	}
	for _, t := range trees {
		if name := unknownField(t.Root, true); name != "" {
			return nil, p.at(path, "use one of ."+strings.Join(fields(), ", ."), "templates have no .%s", name)
		}
	}
	return &text{trees: trees, funcs: funcs, where: where}, nil
}

// render returns the text for a step.
func (t *text) render(v *view) (string, error) {
	if t.trees == nil {
		return t.fixed, nil
	}
	var b limited
	if err := execute(&b, t.trees, templateName, t.funcs, v.data()); err != nil {
		return "", fmt.Errorf("%s: %s", t.where, strings.TrimPrefix(err.Error(), "template: "))
	}
	return b.String(), nil
}

// limited is a builder that refuses to grow without end.
type limited struct{ strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxOutput {
		return 0, errors.New("the template writes more than 8 MiB")
	}
	return l.Builder.Write(p)
}

// Data is what a template sees as its dot.
type Data struct {
	// User is the newest user text; System the system prompt; Model the
	// model id of the request.
	User, System, Model string
	// Step counts the replies since the script began, from 0.
	Step int
	// Results are the tool results since the script began, oldest first.
	Results []Result
	// Last is the newest result; its Found is false if there is none.
	Last Result
}

// Result is a tool result in a template.
type Result struct {
	Name, Text string
	IsError    bool
	// Found is false for the result of a call that was not made.
	Found bool
	// Step is the step whose reply asked for it.
	Step int
}

// Result returns the newest result of a tool, or one with Found false.
func (d *Data) Result(tool string) Result {
	for _, r := range slices.Backward(d.Results) {
		if r.Name == tool {
			return r
		}
	}
	return Result{Name: tool}
}

// fields are the names that the dot has at the top of a template.
func fields() []string {
	return []string{"User", "System", "Model", "Step", "Results", "Last", "Result"}
}

func (v *view) data() *Data {
	d := &Data{User: v.user(), System: strings.Join(v.c.System, "\n"), Model: v.c.Model, Step: v.step}
	step := -1
	for _, m := range v.c.Messages[v.start:v.end] {
		switch m.Role {
		case message.RoleAssistant:
			step++
		case message.RoleToolResult:
			d.Results = append(d.Results, Result{m.Name, m.Text, m.IsError, true, max(step, 0)})
		}
	}
	if n := len(d.Results); n > 0 {
		d.Last = d.Results[n-1]
	}
	return d
}

// unknownField finds a field that the dot does not have, so that a slip is an
// error of the script and not of its thousandth run. Where the dot is something
// else (in range, with, block) it looks only at what begins with $.
func unknownField(n parse.Node, root bool) string {
	first := func(nodes ...parse.Node) string {
		for _, n := range nodes {
			if name := unknownField(n, root); name != "" {
				return name
			}
		}
		return ""
	}
	branch := func(b *parse.BranchNode, inner bool) string {
		if name := unknownField(b.Pipe, root); name != "" {
			return name
		}
		if b.List != nil {
			if name := unknownField(b.List, inner); name != "" {
				return name
			}
		}
		if b.ElseList != nil {
			return unknownField(b.ElseList, root)
		}
		return ""
	}
	switch n := n.(type) {
	case *parse.ListNode:
		return first(n.Nodes...)
	case *parse.ActionNode:
		return first(n.Pipe)
	case *parse.IfNode:
		return branch(&n.BranchNode, root)
	case *parse.RangeNode:
		return branch(&n.BranchNode, false)
	case *parse.WithNode:
		return branch(&n.BranchNode, false)
	case *parse.PipeNode:
		if n == nil {
			return ""
		}
		for _, c := range n.Cmds {
			if name := first(c.Args...); name != "" {
				return name
			}
		}
	case *parse.FieldNode:
		if root && !slices.Contains(fields(), n.Ident[0]) {
			return n.Ident[0]
		}
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) > 1 && !slices.Contains(fields(), n.Ident[1]) {
			return n.Ident[1]
		}
	case *parse.ChainNode:
		return first(n.Node)
	}
	return ""
}
