package script

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/template/parse"
)

// This file executes templates. It does what text/template does, with its parser,
// for what a script can hold, but never looks a method up by a name that comes
// from the template. A program that does keeps every exported method of every
// type it has, because the linker can not know which will be asked for: agentd
// would be 75 MB instead of 43, a third of it in memory. The one method that the
// data has is called by evaluation.method.

// maxDepth bounds how deep templates may call each other.
const maxDepth = 1000

// evaluation is one execution of a template.
type evaluation struct {
	w     io.Writer
	trees map[string]*parse.Tree
	funcs map[string]any
	vars  []variable
	depth int
	node  parse.Node // under way, for errors
	tree  *parse.Tree
}

type variable struct {
	name  string
	value any
}

// failure carries an error up to execute.
type failure struct{ err error }

// jump leaves the body of a range.
type jump int

const (
	onward jump = iota
	breaks
	continues
)

// execute writes the template with that name, for the data.
func execute(w io.Writer, trees map[string]*parse.Tree, name string, funcs map[string]any, data any) (err error) {
	e := &evaluation{w: w, trees: trees, funcs: funcs, tree: trees[name]}
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(failure)
			if !ok {
				panic(p)
			}
			err = f.err
		}
	}()
	e.vars = []variable{{"$", data}}
	e.walk(data, e.tree.Root)
	return nil
}

func (e *evaluation) fail(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if e.node != nil {
		where, what := e.tree.ErrorContext(e.node)
		err = fmt.Errorf("%s: executing %q at <%s>: %w", where, e.tree.Name, what, err)
	}
	panic(failure{err})
}

func (e *evaluation) walk(dot any, n parse.Node) jump {
	e.node = n
	switch n := n.(type) {
	case *parse.ListNode:
		for _, c := range n.Nodes {
			if j := e.walk(dot, c); j != onward {
				return j
			}
		}
	case *parse.TextNode:
		e.write(n.Text)
	case *parse.ActionNode:
		v := e.pipe(dot, n.Pipe)
		if len(n.Pipe.Decl) == 0 {
			e.node = n
			e.write([]byte(printed(v)))
		}
	case *parse.IfNode:
		return e.branch(dot, &n.BranchNode, false)
	case *parse.WithNode:
		return e.branch(dot, &n.BranchNode, true)
	case *parse.RangeNode:
		return e.loop(dot, n)
	case *parse.TemplateNode:
		e.invoke(dot, n)
	case *parse.BreakNode:
		return breaks
	case *parse.ContinueNode:
		return continues
	case *parse.CommentNode:
	default:
		e.fail("unknown node %s", n)
	}
	return onward
}

func (e *evaluation) write(b []byte) {
	if _, err := e.w.Write(b); err != nil {
		e.fail("%w", err)
	}
}

func printed(v any) string {
	if v == nil {
		return "<no value>"
	}
	if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && !r.IsNil() {
		v = r.Elem().Interface()
	}
	return fmt.Sprint(v)
}

// scope runs f and forgets the variables that it made.
func (e *evaluation) scope(f func() jump) jump {
	mark := len(e.vars)
	j := f()
	e.vars = e.vars[:mark]
	return j
}

func (e *evaluation) branch(dot any, n *parse.BranchNode, with bool) jump {
	return e.scope(func() jump {
		v := e.pipe(dot, n.Pipe)
		switch {
		case truth(v) && with:
			return e.walk(v, n.List)
		case truth(v):
			return e.walk(dot, n.List)
		case n.ElseList != nil:
			return e.walk(dot, n.ElseList)
		}
		return onward
	})
}

func (e *evaluation) loop(dot any, n *parse.RangeNode) jump {
	return e.scope(func() jump {
		list := reflect.ValueOf(e.pipe(dot, n.Pipe))
		mark := len(e.vars)
		once := func(i, v any) (stop bool) {
			switch d := n.Pipe.Decl; {
			case len(d) == 1 && n.Pipe.IsAssign:
				e.assign(d[0].Ident[0], v)
			case len(d) == 2 && n.Pipe.IsAssign:
				e.assign(d[0].Ident[0], i)
				e.assign(d[1].Ident[0], v)
			case len(d) == 1: // declared by the pipe
				e.assign(d[0].Ident[0], v)
			case len(d) == 2:
				e.assign(d[0].Ident[0], i)
				e.assign(d[1].Ident[0], v)
			}
			inner := len(e.vars)
			j := e.walk(v, n.List)
			e.vars = e.vars[:inner]
			return j == breaks
		}
		count := 0
		switch kind := list.Kind(); {
		case kind == reflect.Slice || kind == reflect.Array:
			for ; count < list.Len(); count++ {
				if once(count, list.Index(count).Interface()) {
					return onward
				}
			}
		case list.IsValid() && list.CanInt():
			for ; count < int(list.Int()); count++ {
				if once(count, count) {
					return onward
				}
			}
		case !list.IsValid():
		default:
			e.node = n.Pipe
			e.fail("range can't iterate over %v", list.Interface())
		}
		e.vars = e.vars[:mark]
		if count == 0 && n.ElseList != nil {
			return e.walk(dot, n.ElseList)
		}
		return onward
	})
}

func (e *evaluation) invoke(dot any, n *parse.TemplateNode) {
	t := e.trees[n.Name]
	if t == nil || t.Root == nil {
		e.fail("template %q not defined", n.Name)
	}
	if e.depth++; e.depth > maxDepth {
		e.fail("exceeded maximum template depth (%v)", maxDepth)
	}
	var data any
	if n.Pipe != nil {
		data = e.pipe(dot, n.Pipe)
	}
	vars, tree := e.vars, e.tree
	e.vars, e.tree = []variable{{"$", data}}, t
	e.walk(data, t.Root)
	e.vars, e.tree = vars, tree
	e.depth--
}

// pipe gives the value of a pipeline, and declares or sets its variables.
func (e *evaluation) pipe(dot any, p *parse.PipeNode) (v any) {
	if p == nil {
		return nil
	}
	e.node = p
	for i, c := range p.Cmds {
		v = e.command(dot, c, v, i > 0)
	}
	for _, d := range p.Decl {
		if p.IsAssign {
			e.assign(d.Ident[0], v)
		} else {
			e.vars = append(e.vars, variable{d.Ident[0], v})
		}
	}
	return v
}

func (e *evaluation) assign(name string, v any) {
	for i := len(e.vars) - 1; i >= 0; i-- {
		if e.vars[i].name == name {
			e.vars[i].value = v
			return
		}
	}
	e.fail("undefined variable: %s", name)
}

func (e *evaluation) variable(name string) any {
	for i := len(e.vars) - 1; i >= 0; i-- {
		if e.vars[i].name == name {
			return e.vars[i].value
		}
	}
	e.fail("undefined variable: %s", name)
	return nil
}

// command evaluates one command of a pipeline; last is the value of the one
// before it, if piped.
func (e *evaluation) command(dot any, c *parse.CommandNode, last any, piped bool) any {
	first := c.Args[0]
	args := func() []any {
		var vs []any
		for _, a := range c.Args[1:] {
			vs = append(vs, e.arg(dot, a))
		}
		if piped {
			vs = append(vs, last)
		}
		return vs
	}
	switch n := first.(type) {
	case *parse.IdentifierNode:
		e.node = n
		return e.function(dot, n.Ident, c.Args[1:], last, piped)
	case *parse.FieldNode:
		return e.fields(dot, n, n.Ident, args)
	case *parse.ChainNode:
		return e.fields(e.arg(dot, n.Node), n, n.Field, args)
	case *parse.VariableNode:
		return e.fields(e.variable(n.Ident[0]), n, n.Ident[1:], args)
	}
	e.node = first
	if len(c.Args) > 1 || piped {
		e.fail("can't give argument to non-function %s", first)
	}
	return e.arg(dot, first)
}

// arg evaluates an operand.
func (e *evaluation) arg(dot any, n parse.Node) any {
	e.node = n
	none := func() []any { return nil }
	switch n := n.(type) {
	case *parse.DotNode:
		return dot
	case *parse.NilNode:
		e.fail("nil is not a command")
	case *parse.BoolNode:
		return n.True
	case *parse.StringNode:
		return n.Text
	case *parse.NumberNode:
		return e.number(n)
	case *parse.FieldNode:
		return e.fields(dot, n, n.Ident, none)
	case *parse.VariableNode:
		return e.fields(e.variable(n.Ident[0]), n, n.Ident[1:], none)
	case *parse.ChainNode:
		return e.fields(e.arg(dot, n.Node), n, n.Field, none)
	case *parse.PipeNode:
		return e.pipe(dot, n)
	case *parse.IdentifierNode:
		return e.function(dot, n.Ident, nil, nil, false)
	}
	e.fail("can't handle %s", n)
	return nil
}

func (e *evaluation) number(n *parse.NumberNode) any {
	hex := len(n.Text) > 2 && n.Text[0] == '0' && (n.Text[1] == 'x' || n.Text[1] == 'X') && !strings.ContainsAny(n.Text, "pP")
	char := n.Text[0] == '\''
	switch {
	case n.IsComplex:
		return n.Complex128
	case n.IsFloat && !hex && !char && strings.ContainsAny(n.Text, ".eEpP"):
		return n.Float64
	case n.IsInt && int64(int(n.Int64)) == n.Int64:
		return int(n.Int64)
	}
	e.fail("%s overflows int", n.Text)
	return nil
}

// fields follows a chain of names from v; args are for the last of them.
func (e *evaluation) fields(v any, n parse.Node, names []string, args func() []any) any {
	for i, name := range names {
		var given []any
		if i == len(names)-1 {
			given = args()
		}
		e.node = n
		v = e.field(v, name, given)
	}
	if len(names) == 0 {
		if given := args(); len(given) > 0 {
			e.node = n
			e.fail("can't give argument to non-function %s", n)
		}
	}
	return v
}

func (e *evaluation) field(v any, name string, args []any) any {
	if got, ok := e.method(v, name, args); ok {
		return got
	}
	r := reflect.Indirect(reflect.ValueOf(v))
	if !r.IsValid() {
		e.fail("nil data; no entry for key %q", name)
	}
	if r.Kind() != reflect.Struct || !r.FieldByName(name).IsValid() {
		e.fail("can't evaluate field %s in type %T", name, v)
	}
	if len(args) > 0 {
		e.fail("%s has arguments but cannot be invoked as function", name)
	}
	return r.FieldByName(name).Interface()
}

// method calls the method that the data has.
func (e *evaluation) method(v any, name string, args []any) (any, bool) {
	d, ok := v.(*Data)
	if !ok || name != "Result" {
		return nil, false
	}
	return e.call("Result", d.Result, args), true
}

// function calls a function by its name; and and or stop where the answer is known.
func (e *evaluation) function(dot any, name string, nodes []parse.Node, last any, piped bool) any {
	at := e.node
	if name == "and" || name == "or" {
		if len(nodes) == 0 && !piped {
			e.fail("wrong number of args for %s: want at least 1 got 0", name)
		}
		var v any
		for _, n := range nodes {
			if v = e.arg(dot, n); truth(v) == (name == "or") {
				return v
			}
		}
		if piped {
			v = last
		}
		return v
	}
	f, ok := e.funcs[name]
	if !ok {
		e.fail("%q is not a defined function", name)
	}
	var args []any
	for _, n := range nodes {
		if _, isNil := n.(*parse.NilNode); isNil {
			args = append(args, nil)
			continue
		}
		args = append(args, e.arg(dot, n))
	}
	if piped {
		args = append(args, last)
	}
	e.node = at
	return e.call(name, f, args)
}

// call calls a Go function with one result, or with a result and an error.
func (e *evaluation) call(name string, f any, args []any) any {
	fn := reflect.ValueOf(f)
	t := fn.Type()
	fixed := t.NumIn()
	if t.IsVariadic() {
		if fixed--; len(args) < fixed {
			e.fail("wrong number of args for %s: want at least %d got %d", name, fixed, len(args))
		}
	} else if len(args) != fixed {
		e.fail("wrong number of args for %s: want %d got %d", name, fixed, len(args))
	}
	in := make([]reflect.Value, len(args))
	for i, a := range args {
		want := t.In(min(i, t.NumIn()-1))
		if t.IsVariadic() && i >= fixed {
			want = want.Elem()
		}
		in[i] = e.fit(a, want)
	}
	out := fn.Call(in)
	if len(out) == 2 {
		if err, ok := out[1].Interface().(error); ok && err != nil {
			e.fail("error calling %s: %w", name, err)
		}
	}
	return out[0].Interface()
}

// fit makes an argument of the type that a function wants.
func (e *evaluation) fit(a any, want reflect.Type) reflect.Value {
	if a == nil {
		switch want.Kind() {
		case reflect.Interface, reflect.Slice, reflect.Pointer:
			return reflect.Zero(want)
		}
		e.fail("invalid value; expected %s", want)
	}
	v := reflect.ValueOf(a)
	switch {
	case v.Type().AssignableTo(want):
		return v
	case v.CanInt() && want.Kind() == reflect.Int:
		return v.Convert(want)
	}
	e.fail("wrong type for value; expected %s; got %s", want, v.Type())
	return reflect.Value{}
}
