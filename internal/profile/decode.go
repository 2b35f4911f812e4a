package profile

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"agentd/message"
)

// decoder fills Go values from YAML nodes and collects everything that is
// wrong. It is written here because configuration needs all problems with their
// places at once, where a library's decoder stops at the first.
type decoder struct {
	file     string
	env      func(string) (string, bool)
	problems Problems
	// places has the place of every key that was given, by path.
	places map[string]place
	// fromEnv has the paths of texts that the environment went into: they are
	// not shown in problems.
	fromEnv map[string]bool
	anchors map[string]ast.Node
	nodes   int
}

func newDecoder(file string, root ast.Node, env func(string) (string, bool)) *decoder {
	d := &decoder{file: file, env: env, places: map[string]place{}, fromEnv: map[string]bool{}, anchors: map[string]ast.Node{}}
	ast.Walk(anchorFinder(d.anchors), root)
	return d
}

type anchorFinder map[string]ast.Node

// Visit notes anchors by name.
func (f anchorFinder) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok && a.Name != nil {
		f[a.Name.GetToken().Value] = a.Value
	}
	return f
}

func (d *decoder) fail(pos place, key, msg, hint string) {
	d.problems = append(d.problems, Problem{File: d.file, Line: pos.line, Column: pos.column, Key: key,
		Message: msg, Hint: hint, Severity: SeverityError})
}

// at is the place of a key, or of the nearest key around it.
func (d *decoder) at(path string) place {
	for path != "" {
		if p, ok := d.places[path]; ok {
			return p
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return place{1, 1}
}

func (d *decoder) has(path string) bool { _, ok := d.places[path]; return ok }

// resolve follows anchors, aliases and tags. A nil node means that a problem
// was reported.
func (d *decoder) resolve(n ast.Node, path string) ast.Node {
	for range maxDepth {
		switch x := n.(type) {
		case *ast.AnchorNode:
			n = x.Value
		case *ast.TagNode:
			if !strings.HasPrefix(x.Start.Value, "!!") {
				d.fail(placeOfNode(n), path, "a YAML tag", "remove it: tags are not used here")
				return nil
			}
			n = x.Value
		case *ast.AliasNode:
			name := ""
			if x.Value != nil {
				name = x.Value.GetToken().Value
			}
			target, ok := d.anchors[name]
			if !ok {
				d.fail(placeOfNode(n), path, "an alias without its anchor: *"+name, "define &"+name+" first")
				return nil
			}
			n = target
		case nil:
			return nil
		default:
			return n
		}
	}
	d.fail(place{1, 1}, path, "aliases that point at each other", "write the value out")
	return nil
}

// spent counts the work and reports, once, that a document is too much of it.
func (d *decoder) spent(path string, pos place, depth int) bool {
	d.nodes++
	if d.nodes <= maxNodes && depth <= maxDepth {
		return false
	}
	const msg = "the document is too large when its aliases are followed"
	if !slices.ContainsFunc(d.problems, func(p Problem) bool { return p.Message == msg }) {
		d.fail(pos, path, msg, "write the values out")
	}
	d.nodes = max(d.nodes, maxNodes)
	return true
}

// value decodes n into dst. tag is the tag of the struct field that it fills.
func (d *decoder) value(n ast.Node, path string, dst reflect.Value, tag reflect.StructTag, depth int) {
	if d.spent(path, placeOfNode(n), depth) {
		return
	}
	pos := placeOfNode(n)
	if n = d.resolve(n, path); n == nil {
		return
	}
	if _, null := n.(*ast.NullNode); null {
		switch dst.Kind() {
		case reflect.Slice, reflect.Map, reflect.Struct, reflect.Pointer:
			return // a key with everything below it commented out
		}
		d.fail(d.at(path), path, "has no value", "give one, or remove the key")
		return
	}
	if dst.Kind() == reflect.Pointer {
		v := reflect.New(dst.Type().Elem())
		before := len(d.problems)
		d.value(n, path, v.Elem(), tag, depth)
		if len(d.problems) == before {
			dst.Set(v)
		}
		return
	}
	if d.special(n, path, pos, dst, depth) {
		d.limits(pos, path, dst, tag)
		return
	}
	switch dst.Kind() {
	case reflect.String:
		if s, ok := d.text(n, path, pos); ok {
			dst.SetString(s)
			d.format(pos, path, s, tag)
		}
	case reflect.Bool:
		if b, ok := n.(*ast.BoolNode); ok {
			dst.SetBool(b.Value)
		} else {
			d.wrongType(n, path, pos, "true or false")
		}
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Float64:
		d.number(n, path, pos, dst)
		d.limits(pos, path, dst, tag)
	case reflect.Slice:
		d.list(n, path, pos, dst, tag, depth)
	case reflect.Map:
		d.mapping(n, path, pos, dst, tag, depth)
	case reflect.Struct:
		d.structure(n, path, pos, dst, depth)
	default:
		panic("profile: no decoding for " + dst.Type().String())
	}
}

// special decodes types that have their own form. It reports whether dst is one.
func (d *decoder) special(n ast.Node, path string, pos place, dst reflect.Value, depth int) bool {
	switch v := dst.Addr().Interface().(type) {
	case *message.Money:
		switch n.(type) {
		case *ast.IntegerNode, *ast.FloatNode:
			m, err := message.ParseMoney(strings.ReplaceAll(n.GetToken().Value, "_", ""))
			if err != nil {
				d.fail(pos, path, "is not an amount in US dollars", "write a plain number with at most nine decimals, such as 1.50")
				return true
			}
			*v = m
		default:
			d.wrongType(n, path, pos, "an amount in US dollars")
		}
		return true
	case *time.Duration:
		d.duration(n, path, pos, (*Duration)(v))
		return true
	case *Duration:
		d.duration(n, path, pos, v)
		return true
	case *Secret:
		if s, ok := d.text(n, path, pos); ok {
			*v = Secret(s)
		}
		return true
	case interface{ UnmarshalYAML(func(any) error) error }:
		_, isText := n.(*ast.StringNode)
		var asText Problems // a type that has a short form as text tries that too
		err := v.UnmarshalYAML(func(into any) error {
			sub := *d
			sub.problems = nil
			target := reflect.ValueOf(into).Elem()
			sub.value(n, path, target, "", depth+1)
			d.nodes = sub.nodes
			if len(sub.problems) == 0 {
				return nil
			}
			if isText && target.Kind() == reflect.String {
				asText = sub.problems
			}
			return &nested{sub.problems}
		})
		if err != nil && asText != nil {
			err = &nested{asText}
		}
		d.refused(err, path, pos)
		return true
	case encoding.TextUnmarshaler:
		if s, ok := d.text(n, path, pos); ok {
			err := v.UnmarshalText([]byte(s))
			if err != nil && d.fromEnv[path] {
				err = fmt.Errorf("the value from the environment is not right")
			}
			d.refused(err, path, pos)
		}
		return true
	}
	return false
}

// nested carries problems through a type's own UnmarshalYAML.
type nested struct{ Problems }

func (n *nested) Error() string { return n.Problems[0].Message }

func (d *decoder) refused(err error, path string, pos place) {
	switch e := err.(type) {
	case nil:
	case *nested:
		d.problems = append(d.problems, e.Problems...)
	default:
		d.fail(pos, path, err.Error(), "")
	}
}

func (d *decoder) duration(n ast.Node, path string, pos place, dst *Duration) {
	const hint = "write it with its unit, such as 500ms, 10s or 2m30s"
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		d.fail(pos, path, "a duration without its unit", hint)
		return
	}
	if s, ok := d.text(n, path, pos); ok {
		if dst.UnmarshalText([]byte(s)) != nil {
			d.fail(pos, path, "is not a duration", hint)
		}
	}
}

// text reads a text and expands the environment in it.
func (d *decoder) text(n ast.Node, path string, pos place) (s string, ok bool) {
	var raw string
	switch x := n.(type) {
	case *ast.StringNode:
		raw = x.Value
	case *ast.LiteralNode:
		raw = x.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		d.fail(pos, path, "must be a text, not "+kindOf(n), "put it in quotes")
		return "", false
	default:
		d.wrongType(n, path, pos, "a text")
		return "", false
	}
	s, expanded, msg, hint := expand(raw, d.env)
	if msg != "" {
		d.fail(pos, path, msg, hint)
		return "", false
	}
	if expanded {
		d.fromEnv[path] = true
	}
	return s, true
}

// quote shows the text at a path, unless it came from the environment.
func (d *decoder) quote(path, s string) string {
	if d.fromEnv[path] {
		return "the text from the environment"
	}
	return strconv.Quote(s)
}

func (d *decoder) wrongType(n ast.Node, path string, pos place, want string) {
	hint := "write " + want
	switch x := n.(type) {
	case *ast.StringNode:
		if strings.Contains(x.Value, "${") {
			hint = "the environment fills texts only: write the value itself"
		} else if want != "a text" && want != "a list" && want != "a mapping" {
			hint += ", without quotes"
		}
	case *ast.MappingNode, *ast.MappingValueNode:
		if want == "a list" {
			hint = "begin each item with \"- \""
		}
	}
	if want == "a list" {
		switch n.(type) {
		case *ast.StringNode:
			hint = "put it in brackets: [item]"
		}
	}
	d.fail(pos, path, "must be "+want+", not "+kindOf(n), hint)
}

func (d *decoder) list(n ast.Node, path string, pos place, dst reflect.Value, tag reflect.StructTag, depth int) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.wrongType(n, path, pos, "a list")
		return
	}
	out := reflect.MakeSlice(dst.Type(), len(seq.Values), len(seq.Values))
	for i, item := range seq.Values {
		p := fmt.Sprintf("%s[%d]", path, i)
		d.places[p] = placeOfNode(item)
		setDefaults(out.Index(i))
		d.value(item, p, out.Index(i), tag, depth+1)
	}
	dst.Set(out)
}

func (d *decoder) mapping(n ast.Node, path string, pos place, dst reflect.Value, tag reflect.StructTag, depth int) {
	entries, ok := d.entries(n, path, pos, depth)
	if !ok {
		return
	}
	out := reflect.MakeMapWithSize(dst.Type(), len(entries))
	for _, e := range entries {
		p := join(path, e.key)
		d.places[p] = e.pos
		v := reflect.New(dst.Type().Elem()).Elem()
		setDefaults(v)
		d.value(e.node, p, v, tag, depth+1)
		out.SetMapIndex(reflect.ValueOf(e.key).Convert(dst.Type().Key()), v)
	}
	dst.Set(out)
}

func (d *decoder) structure(n ast.Node, path string, pos place, dst reflect.Value, depth int) {
	entries, ok := d.entries(n, path, pos, depth)
	if !ok {
		return
	}
	fields := fieldsOf(dst.Type())
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	given := map[string]bool{}
	for _, e := range entries {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == e.key })
		p := join(path, e.key)
		if i < 0 {
			hint := didYouMean(e.key, names)
			if hint == "" {
				hint = "known here: " + strings.Join(names, ", ")
			}
			d.fail(e.pos, p, "unknown key", hint)
			continue
		}
		given[e.key] = true
		d.places[p] = e.pos
		f := fields[i]
		d.value(e.node, p, dst.FieldByIndex(f.index), f.tag, depth+1)
	}
	for _, f := range fields {
		if f.tag.Get("required") != "" && !given[f.name] {
			hint := "add it"
			if ex := f.tag.Get("example"); ex != "" {
				hint += ", such as " + f.name + ": " + ex
			}
			d.fail(pos, join(path, f.name), "is missing", hint)
		}
	}
}

// entry is one key of a mapping.
type entry struct {
	key  string
	pos  place
	node ast.Node
	// merged entries came through << and give way to written ones.
	merged bool
}

// entries lists the keys of a mapping, aliases under << included.
func (d *decoder) entries(n ast.Node, path string, pos place, depth int) ([]entry, bool) {
	var values []*ast.MappingValueNode
	switch x := n.(type) {
	case *ast.MappingNode:
		values = x.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{x}
	default:
		d.wrongType(n, path, pos, "a mapping")
		return nil, false
	}
	var out []entry
	for _, v := range values {
		if v.Key.IsMergeKey() {
			if d.spent(path, placeOfNode(v), depth) {
				return nil, false
			}
			target := d.resolve(v.Value, path)
			if target == nil {
				continue
			}
			more, _ := d.entries(target, path, placeOfNode(v), depth+1)
			for _, e := range more {
				if !slices.ContainsFunc(out, func(o entry) bool { return o.key == e.key }) {
					e.merged = true
					out = append(out, e)
				}
			}
			continue
		}
		kpos := placeOf(v.Key.GetToken())
		var key string
		switch k := v.Key.(type) {
		case *ast.StringNode:
			key = k.Value
		case *ast.MappingKeyNode:
			if s, ok := k.Value.(*ast.StringNode); ok {
				key = s.Value
				kpos = placeOf(s.GetToken())
				break
			}
			d.fail(kpos, path, "a key that is not a text", "put it in quotes")
			continue
		default:
			d.fail(kpos, path, "a key that is not a text", "put it in quotes")
			continue
		}
		if i := slices.IndexFunc(out, func(o entry) bool { return o.key == key }); i >= 0 {
			if !out[i].merged {
				d.fail(kpos, join(path, key), fmt.Sprintf("given twice; first on line %d", out[i].pos.line), "keep one")
				continue
			}
			out = slices.Delete(out, i, i+1)
		}
		out = append(out, entry{key: key, pos: kpos, node: v.Value})
	}
	return out, true
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
