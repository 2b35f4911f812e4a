package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// stateful lists package variables that change, or whose value the rule can not
// judge, as "folder.name", each with the reason why it is right.
var stateful = map[string]string{}

// init runs whether it is wanted or not, in an order nobody reads; what it
// registers can not be left out, replaced or tested apart.
func TestNoInit(t *testing.T) {
	for _, f := range files(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: func init: pass what is needed to a constructor instead", f.at(fn))
			}
		}
	}
}

// A package's variables are shared by every runtime in the process, every test
// and every goroutine. State belongs into values that somebody makes and owns.
func TestNoMutablePackageState(t *testing.T) {
	packages := map[string][]*file{}
	for _, f := range code(t) {
		packages[f.dir] = append(packages[f.dir], f)
	}
	for dir, pkg := range packages {
		for _, p := range mutableState(dir, pkg) {
			t.Error(p)
		}
	}
}

// variable is a package-level variable.
type variable struct {
	name  string
	spec  *ast.ValueSpec
	value ast.Expr // nil without an initial value
	file  *file
	embed bool
}

func mutableState(dir string, pkg []*file) (breaks []string) {
	var vars []variable
	for _, f := range pkg {
		for _, d := range f.ast.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, s := range gen.Specs {
				spec := s.(*ast.ValueSpec)
				embed := strings.Contains(comment(gen.Doc)+comment(spec.Doc), "//go:embed")
				for i, name := range spec.Names {
					v := variable{name: name.Name, spec: spec, file: f, embed: embed}
					if i < len(spec.Values) {
						v.value = spec.Values[i]
					}
					vars = append(vars, v)
				}
			}
		}
	}
	for _, v := range vars {
		if v.name == "_" || stateful[dir+"."+v.name] != "" {
			continue
		}
		if !v.embed && !constant(v.value) {
			breaks = append(breaks, v.file.at(v.spec)+": "+v.name+" is package state: make it a field, a local or a function; or list it here with the reason")
		}
		for _, f := range pkg {
			for _, n := range writes(f, v) {
				breaks = append(breaks, f.at(n)+": writes the package variable "+v.name+": state belongs into values that somebody owns")
			}
		}
	}
	return breaks
}

func comment(c *ast.CommentGroup) string {
	if c == nil {
		return ""
	}
	var b strings.Builder
	for _, l := range c.List {
		b.WriteString(l.Text + "\n")
	}
	return b.String()
}

// constant reports whether an initial value makes a variable that is one only
// because Go has no constants of its type.
func constant(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit, *ast.Ident, *ast.SelectorExpr:
		return true
	case *ast.CompositeLit:
		// Elements may be anything constant; a lock or a pool inside is state.
		if e.Type != nil && !plainType(e.Type) {
			return false
		}
		return !slices.ContainsFunc(e.Elts, func(x ast.Expr) bool {
			if kv, ok := x.(*ast.KeyValueExpr); ok {
				x = kv.Value
			}
			return !constant(x)
		})
	case *ast.FuncLit:
		return true
	case *ast.UnaryExpr:
		if lit, ok := e.X.(*ast.CompositeLit); ok && e.Op == token.AND {
			return sentinel(lit) && constant(lit)
		}
		return e.Op != token.AND && constant(e.X)
	case *ast.BinaryExpr:
		return constant(e.X) && constant(e.Y)
	case *ast.ParenExpr:
		return constant(e.X)
	case *ast.CallExpr:
		switch fn := e.Fun.(type) {
		case *ast.ArrayType, *ast.InterfaceType, *ast.StarExpr: // conversion
			return true
		case *ast.ParenExpr: // conversion to (*T)
			return true
		case *ast.Ident:
			return fn.Name == "len" || fn.Name == "string"
		case *ast.IndexExpr:
			return constantCall(fn.X)
		case *ast.SelectorExpr:
			return constantCall(fn)
		}
	}
	return false
}

// sentinel reports whether a literal is an error of our own type, which is
// compared and wrapped, never changed.
func sentinel(lit *ast.CompositeLit) bool {
	s, ok := lit.Type.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "fault" && s.Sel.Name == "Error"
}

// constantCall lists functions whose results never change.
func constantCall(fn ast.Expr) bool {
	s, ok := fn.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return false
	}
	return slices.Contains([]string{"errors.New", "fmt.Errorf", "fault.New", "regexp.MustCompile", "strings.NewReplacer", "json.RawMessage",
		"time.Duration", "reflect.TypeFor", "reflect.TypeOf", "netip.MustParsePrefix", "netip.MustParseAddr"}, x.Name+"."+s.Sel.Name)
}

// plainType excludes what synchronises or pools.
func plainType(t ast.Expr) bool {
	plain := true
	ast.Inspect(t, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && (x.Name == "sync" || x.Name == "atomic") {
				plain = false
			}
		}
		return plain
	})
	return plain
}

// writes finds where a file assigns to the variable or to a part of it, deletes
// from it or takes its address.
func writes(f *file, v variable) (found []ast.Node) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, l := range n.Lhs {
					if rootedAt(l, v) {
						found = append(found, n)
					}
				}
			}
		case *ast.IncDecStmt:
			if rootedAt(n.X, v) {
				found = append(found, n)
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND && rootedAt(n.X, v) {
				found = append(found, n)
			}
		case *ast.CallExpr:
			if fn, ok := n.Fun.(*ast.Ident); ok && (fn.Name == "delete" || fn.Name == "clear") && fn.Obj == nil && rootedAt(n.Args[0], v) {
				found = append(found, n)
			}
		}
		return true
	})
	return found
}

// rootedAt reports whether e is the variable, or x.y, x[i], *x of it.
func rootedAt(e ast.Expr, v variable) bool {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x.Name == v.name && (x.Obj == nil || x.Obj.Decl == v.spec)
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return false
		}
	}
}

func TestStateRuleFinds(t *testing.T) {
	for text, want := range map[string]int{
		`var e = errors.New("x")`:                                    0,
		`var m = map[string]int{"a": 1}`:                             0,
		"//go:embed x.md\nvar s string":                              0,
		`var _ I = (*T)(nil)`:                                        0,
		`var n int`:                                                  1,
		`var m = map[string]int{}; func f() { m["a"] = 1 }`:          1,
		`var m = map[string]int{}; func f() { delete(m, "a") }`:      1,
		`var l = []int{1}; func f() { l[0]++ }`:                      1,
		`var l = []int{1}; func f(l []int) { l[0] = 2 }`:             0,
		`var l = []int{1}; func f() { l := []int{2}; l[0] = 2 }`:     0,
		`var l = []int{1}; func f() *[]int { return &l }`:            1,
		`var s = struct{ a int }{1}; func f() { s.a = 2 }`:           1,
		`var mu sync.Mutex`:                                          1,
		`var p = sync.Pool{New: func() any { return 1 }}`:            1,
		`var p = []sync.Mutex{{}}`:                                   1,
		`var c = http.Client{}`:                                      0,
		`var e = &fault.Error{Err: errors.New("x")}`:                 0,
		`var c = &http.Client{}`:                                     1,
		`var c = make(map[string]int)`:                               1,
		`var now = time.Now()`:                                       1,
		`var re = regexp.MustCompile("a"); var b = []byte("x")`:      0,
		`var a, b = errors.New("a"), compute()`:                      1,
		`const c = 1; func f() { var n int; n++ }`:                   0,
		`var d = 3 * time.Second`:                                    0,
		`var l = []*regexp.Regexp{regexp.MustCompile("a"), build()}`: 1,
	} {
		f, err := parse("x/x.go", "package x\n"+text)
		if err != nil {
			t.Fatal(err)
		}
		if got := mutableState("x", []*file{f}); len(got) != want {
			t.Errorf("%s: %v, want %d", text, got, want)
		}
	}
}

// The list of exceptions shrinks with the code.
func TestStatefulExceptionsExist(t *testing.T) {
	for name := range stateful {
		dir, id := path.Split(name)
		folder, v, _ := strings.Cut(id, ".")
		found := slices.ContainsFunc(files(t), func(f *file) bool {
			return f.dir == strings.TrimSuffix(dir+folder, "/") && f.ast.Scope != nil && f.ast.Scope.Lookup(v) != nil
		})
		if !found {
			t.Errorf("%s is listed and does not exist", name)
		}
	}
}
