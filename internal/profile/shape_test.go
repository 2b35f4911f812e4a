package profile

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentd/internal/mcp"
	"agentd/message"
)

// shape makes schemas and documentation from the configuration's structs. It is
// test code because only the tests, with -update, run it.
type shape struct {
	t *testing.T
	// docs has the comments of struct fields, by "Type.Field".
	docs map[string]string
}

// newShape reads the comments of the packages whose structs are used.
func newShape(t *testing.T, dirs ...string) *shape {
	s := &shape{t: t, docs: map[string]string{}}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				s.comments(file)
			}
		}
	}
	return s
}

func (s *shape) comments(file string) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		s.t.Fatal(err)
	}
	pkg := f.Name.Name
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		st, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range st.Fields.List {
			text := field.Doc.Text()
			if text == "" {
				text = field.Comment.Text()
			}
			for _, name := range field.Names {
				s.docs[pkg+"."+spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(text), " ")
			}
		}
		return false
	})
}

func (s *shape) doc(f field) string {
	pkg := f.owner.PkgPath()
	pkg = pkg[strings.LastIndexByte(pkg, '/')+1:]
	key := pkg + "." + f.owner.Name() + "." + f.goName
	d := s.docs[key]
	if d == "" {
		s.t.Errorf("%s has no comment", key)
	}
	// "Command is the program" reads better without the field's Go name.
	for _, verb := range []string{" is ", " are "} {
		if rest, ok := strings.CutPrefix(d, f.goName+verb); ok {
			d = strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	return d
}

type object = map[string]any

const envPattern = `\$\{`

// schema gives the JSON Schema of a type. tag is that of the field with it.
func (s *shape) schema(t reflect.Type, tag reflect.StructTag) object {
	if o, ok := s.special(t, tag); ok {
		return o
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.schema(t.Elem(), tag)
	case reflect.String:
		o := object{"type": "string"}
		if enum := tag.Get("enum"); enum != "" {
			o["anyOf"] = []any{object{"enum": strings.Split(enum, ",")}, object{"pattern": envPattern}}
		}
		return o
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return bounds(object{"type": "integer"}, tag)
	case reflect.Float64:
		return bounds(object{"type": "number"}, tag)
	case reflect.Slice:
		return object{"type": []string{"array", "null"}, "items": s.schema(t.Elem(), tag)}
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": s.schema(t.Elem(), tag)}
	case reflect.Struct:
		return s.structSchema(t)
	}
	s.t.Fatalf("no schema for %s", t)
	return nil
}

func (s *shape) special(t reflect.Type, tag reflect.StructTag) (object, bool) {
	switch t {
	case reflect.TypeFor[Secret]():
		return object{"type": "string"}, true
	case reflect.TypeFor[Duration](), reflect.TypeFor[time.Duration]():
		return object{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|\$\{`}, true
	case reflect.TypeFor[message.Money]():
		return bounds(object{"type": "number"}, tag), true
	}
	if shortForm(t) != "" {
		props := object{}
		for _, f := range fieldsOf(t) {
			props[f.name] = s.schema(f.typ, f.tag)
		}
		return object{"anyOf": []any{object{"type": "string"}, object{"type": "object", "additionalProperties": false, "properties": props}}}, true
	}
	return nil, false
}

// shortForm describes types that may be written as a text or as a mapping.
func shortForm(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[mcp.Rule]():
		return "names, patterns or `{tool, args}`"
	case reflect.TypeFor[mcp.Condition]():
		return "classes, expressions or `{tool, args, class}`"
	}
	return ""
}

func bounds(o object, tag reflect.StructTag) object {
	if v := tag.Get("min"); v != "" {
		o["minimum"] = json.Number(v)
	}
	if v := tag.Get("max"); v != "" {
		o["maximum"] = json.Number(v)
	}
	return o
}

func (s *shape) structSchema(t reflect.Type) object {
	props := object{}
	var required []string
	for _, f := range fieldsOf(t) {
		o := s.schema(f.typ, f.tag)
		o["description"] = s.doc(f)
		if def := f.tag.Get("default"); def != "" {
			o["default"] = def
			if k := f.typ.Kind(); k == reflect.Bool || k == reflect.Int || k == reflect.Int64 && f.typ.PkgPath() == "" || k == reflect.Float64 {
				o["default"] = json.RawMessage(def)
			}
		}
		if f.tag.Get("required") != "" {
			required = append(required, f.name)
		}
		props[f.name] = o
	}
	out := object{"type": []string{"object", "null"}, "additionalProperties": false, "properties": props}
	if required != nil {
		out["type"] = "object"
		out["required"] = required
	}
	return out
}

// document makes a whole schema file.
func (s *shape) document(title string, root object) []byte {
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = title
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		s.t.Fatal(err)
	}
	return append(b, '\n')
}

// row is a line of a documentation table.
type row struct{ key, typ, def, example, doc string }

// rows lists the keys of a struct, those of structs in it below them. Structs in
// once are listed where they come first only.
func (s *shape) rows(prefix string, t reflect.Type, once map[reflect.Type]bool) []row {
	var out []row
	for _, f := range fieldsOf(t) {
		r := row{key: prefix + f.name, def: f.tag.Get("default"), example: f.tag.Get("example"), doc: s.doc(f)}
		if f.tag.Get("required") != "" {
			r.def = "required"
		}
		var below reflect.Type
		r.typ, below = typeName(f.typ, f.tag)
		out = append(out, r)
		if below != nil && !once[below] {
			once[below] = true
			sub := r.key + "."
			switch f.typ.Kind() {
			case reflect.Slice:
				sub = r.key + "[]."
			case reflect.Map:
				sub = r.key + ".NAME."
			}
			out = append(out, s.rows(sub, below, once)...)
			if below.Name() != "Model" {
				delete(once, below)
			}
		}
	}
	return out
}

func typeName(t reflect.Type, tag reflect.StructTag) (name string, below reflect.Type) {
	switch t {
	case reflect.TypeFor[Secret]():
		return "text", nil
	case reflect.TypeFor[Duration](), reflect.TypeFor[time.Duration]():
		return "duration", nil
	case reflect.TypeFor[message.Money]():
		return "US dollars", nil
	}
	if name := shortForm(t); name != "" {
		return name, nil
	}
	limits := func(name string) string {
		lo, hi := tag.Get("min"), tag.Get("max")
		switch {
		case lo != "" && hi != "":
			return name + ", " + lo + " to " + hi
		case lo != "":
			return name + " ≥ " + lo
		}
		return name
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem(), tag)
	case reflect.String:
		if enum := tag.Get("enum"); enum != "" {
			return "`" + strings.ReplaceAll(enum, ",", "`, `") + "`", nil
		}
		return "text", nil
	case reflect.Bool:
		return "boolean", nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		return limits("integer"), nil
	case reflect.Float64:
		return limits("number"), nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct && shortForm(t.Elem()) == "" {
			return "list of mappings", t.Elem()
		}
		n, b := typeName(t.Elem(), "")
		return "list of " + plural(n), b
	case reflect.Map:
		n, b := typeName(t.Elem(), tag)
		return "mapping of names to " + plural(n), b
	case reflect.Struct:
		return "mapping", t
	}
	return t.String(), nil
}

func plural(s string) string {
	if strings.Contains(s, "`") || strings.HasSuffix(s, "s") {
		return s
	}
	return s + "s"
}

func (s *shape) table(rows []row) string {
	var b strings.Builder
	b.WriteString("| key | type | default | example | meaning |\n|---|---|---|---|---|\n")
	code := func(v string) string {
		if v == "" {
			return ""
		}
		return "`" + strings.ReplaceAll(v, "|", `\|`) + "`"
	}
	for _, r := range rows {
		def := code(r.def)
		if r.def == "required" {
			def = "**required**"
		}
		typ := strings.ReplaceAll(r.typ, "|", `\|`)
		b.WriteString("| " + strings.Join([]string{code(r.key), typ, def, code(r.example), strings.ReplaceAll(r.doc, "|", `\|`)}, " | ") + " |\n")
	}
	return b.String()
}

// golden compares with a file, or writes it under -update.
func golden(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not up to date: run go test ./internal/profile -update", file)
	}
}
