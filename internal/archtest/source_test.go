package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	module = "agentd"
	root   = "../.."
)

// file is a parsed Go file.
type file struct {
	path  string // below the module's root, with slashes
	dir   string // its folder; "." for the root
	test  bool
	lines int
	ast   *ast.File
	fset  *token.FileSet
}

func (f *file) at(n ast.Node) string {
	return f.path + ":" + strconv.Itoa(f.fset.Position(n.Pos()).Line)
}

// imports lists the import paths.
func (f *file) imports() []string {
	var out []string
	for _, i := range f.ast.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// skipDir reports folders that are not this module's source.
func skipDir(p, name string) bool {
	switch {
	case p == root:
		return false
	case strings.HasPrefix(name, "."), name == "node_modules", name == "testdata", name == "bin", name == "dist":
		return true
	}
	_, err := os.Stat(filepath.Join(p, "go.mod")) // a module of its own
	return err == nil
}

// source parses the module once for all tests.
var source = sync.OnceValues(func() ([]*file, error) {
	var files []*file
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if skipDir(p, e.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(p) != ".go" {
			return nil
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		f, err := parse(filepath.ToSlash(rel), string(data))
		if err == nil {
			files = append(files, f)
		}
		return err
	})
	return files, err
})

func parse(name, text string) (*file, error) {
	fset := token.NewFileSet()
	// Objects are resolved: the rules on state must tell a package's variable
	// from a local one of the same name.
	tree, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	return &file{path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), lines: strings.Count(text, "\n"), ast: tree, fset: fset}, nil
}

func files(t *testing.T) []*file {
	t.Helper()
	all, err := source()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("only %d files were found: the walk is wrong", len(all))
	}
	return all
}

// code gives the files that are not tests.
func code(t *testing.T) []*file {
	return slices.DeleteFunc(slices.Clone(files(t)), func(f *file) bool { return f.test })
}

// within reports whether dir is one of the folders or below one.
func within(dir string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return dir == f || strings.HasPrefix(dir, f+"/") })
}

// isStdlib: paths of the standard library have no dot in their first part.
func isStdlib(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return first != module && !strings.Contains(first, ".")
}

// inModule gives the folder of an import of this module.
func inModule(p string) (string, bool) {
	if p == module {
		return ".", true
	}
	return strings.CutPrefix(p, module+"/")
}

// packageFor gives the name under which a file knows an import; "" if it does not.
func packageFor(f *file, importPath string) string {
	for _, i := range f.ast.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err != nil || p != importPath {
			continue
		}
		if i.Name != nil {
			return i.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// isCall reports whether n is pkg.name for one of the names, and which.
func selector(n ast.Node, pkg string, names ...string) (string, bool) {
	s, ok := n.(*ast.SelectorExpr)
	if !ok || pkg == "" {
		return "", false
	}
	x, ok := s.X.(*ast.Ident)
	return s.Sel.Name, ok && x.Name == pkg && x.Obj == nil && slices.Contains(names, s.Sel.Name)
}
