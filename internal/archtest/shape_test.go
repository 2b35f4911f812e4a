package archtest

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A name that fits anything collects anything.
func TestPackageNames(t *testing.T) {
	for _, f := range files(t) {
		switch name := strings.TrimSuffix(f.ast.Name.Name, "_test"); name {
		case "util", "utils", "common", "helper", "helpers", "misc", "shared", "base":
			t.Errorf("%s: package %s: name it after what it does", f.path, name)
		}
	}
}

// The comment is the package's promise; without it nobody knows what may change.
func TestPackageComments(t *testing.T) {
	comments := map[string]string{}
	for _, f := range code(t) {
		comments[f.dir] += f.ast.Doc.Text()
	}
	for dir, text := range comments {
		if len(strings.Fields(text)) < 8 {
			t.Errorf("%s has no package comment: say in doc.go what the package promises", dir)
		}
	}
}

// long lists files of more than 500 lines, each with its reason. None may have
// more than 800.
var long = map[string]string{
	"internal/run/checker_test.go": "one checker holds all invariants of the machine and reads best as a whole",
}

// A file that fits a reader's head is one that gets read.
func TestFileLength(t *testing.T) {
	for _, f := range files(t) {
		switch {
		case generated(f):
		case f.lines > 800:
			t.Errorf("%s has %d lines: split it by meaning", f.path, f.lines)
		case f.lines > 500 && long[f.path] == "":
			t.Errorf("%s has %d lines, more than 500: split it by meaning, or list it here with the reason", f.path, f.lines)
		}
	}
}

var generatedLine = regexp.MustCompile(`^// Code generated .* DO NOT EDIT\.$`)

func generated(f *file) bool {
	for _, g := range f.ast.Comments {
		for _, c := range g.List {
			if c.Pos() < f.ast.Package && generatedLine.MatchString(c.Text) {
				return true
			}
		}
	}
	return false
}

// parsers lists packages that read what others wrote. What they are fed in tests
// is what somebody thought of; the rest is found by fuzzing.
var parsers = map[string]string{
	"internal/jsonrepair": "JSON of models",
	"internal/mcp":        "results of servers",
	"internal/profile":    "YAML and JSON of people",
	"internal/run":        "sequences of inputs",
	"internal/schedule":   "cron expressions of people",
	"internal/sim":        "requests of clients",
	"internal/sse":        "event streams",
	"internal/workspace":  "paths of models, .gitignore files",
	"internal/server":     "requests of clients",
	"model/anthropic":     "streams of the provider",
	"model/openai":        "streams of the provider",
	"model/script":        "scripts of people",
	"tool":                "arguments of models",
}

func TestParsersAreFuzzed(t *testing.T) {
	exists, fuzzed := map[string]bool{}, map[string]bool{}
	for _, f := range files(t) {
		for p := range parsers {
			if !within(f.dir, p) {
				continue
			}
			exists[p] = true
			for _, d := range f.ast.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && f.test && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Fuzz") {
					fuzzed[p] = true
				}
			}
		}
	}
	for p, what := range parsers {
		if exists[p] && !fuzzed[p] {
			t.Errorf("%s reads %s and has no Fuzz function", p, what)
		}
	}
}

// A test that sleeps is slow when it passes and wrong when the machine is busy.
// In a synctest bubble the clock is not the machine's.
func TestNoSleepingTests(t *testing.T) {
	for _, f := range files(t) {
		if !f.test || packageFor(f, "testing/synctest") != "" {
			continue
		}
		pkg := packageFor(f, "time")
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if _, ok := selector(n, pkg, "Sleep"); ok {
				t.Errorf("%s: time.Sleep in a test: wait for the thing itself, or use testing/synctest", f.at(n))
			}
			return true
		})
	}
}

// A skipped test looks like a passed one.
func TestNoSkippedTests(t *testing.T) {
	for _, f := range files(t) {
		if !f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			for _, v := range []string{"t", "b", "f", "tb"} {
				if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "Skip" || s.Sel.Name == "Skipf" || s.Sel.Name == "SkipNow") {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == v {
						t.Errorf("%s: a skipped test: fail with the command that provides what is missing", f.at(n))
					}
				}
			}
			return true
		})
	}
}

// main only starts what can be tested elsewhere.
func TestMainIsSmall(t *testing.T) {
	total := 0
	for _, f := range code(t) {
		if f.dir == "cmd/agentd" {
			total += f.lines
		}
	}
	if total > 50 {
		t.Errorf("cmd/agentd has %d lines, more than 50: put the rest into internal/cli", total)
	}
}

// local are texts that mean something on one machine only, or in planning only.
// They are put together here so that this file does not hold them.
var local = regexp.MustCompile(strings.Join([]string{
	"/wo" + "rk/(main|shared)", "/ro" + "ot/", "/ho" + "me/[a-z]+/go/", "/tmp/ba" + "sh_jobs", "/tmp/br" + "ief",
	`\bS[0-3]-` + `[0-9]{3}\b`,
}, "|"))

// The project speaks of itself: what it says must be true on every machine.
func TestNoLocalText(t *testing.T) {
	texts := map[string]bool{".go": true, ".md": true, ".yaml": true, ".yml": true, ".json": true, ".txt": true, ".txtar": true, ".sh": true,
		".ts": true, ".js": true, ".mjs": true, ".html": true, ".css": true, ".sql": true, ".toml": true, "": true}
	seen := 0
	err := filepath.WalkDir(root, func(p string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := e.Name()
		if e.IsDir() {
			if p != root && (name == ".git" || name == ".cache" || name == "node_modules" || name == "bin" || name == "dist") {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := e.Info()
		if err != nil || !texts[path.Ext(name)] || !info.Mode().IsRegular() || info.Size() > 4<<20 {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		seen++
		for i, line := range strings.Split(string(data), "\n") {
			if m := local.FindString(line); m != "" {
				t.Errorf("%s:%d holds %q, which means nothing elsewhere", p, i+1, m)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 50 {
		t.Errorf("only %d files were read", seen)
	}
}
