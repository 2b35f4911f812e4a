package script

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentd/message"
	"agentd/model"
)

var update = flag.Bool("update", false, "write the golden files anew")

// tools are the results of one world: by tool name, for file_read by path.
type tools map[string]string

func (w tools) call(t *testing.T, b message.Block) message.Message {
	key := b.Name
	if b.Name == "file_read" {
		key += " " + mustFind(t, `"file_path":"([^"]*)"`, string(b.Arguments))
	}
	out, ok := w[key]
	if !ok {
		return message.ToolResult(b.ID, b.Name, true, message.Text(key+": no such file"))
	}
	return message.ToolResult(b.ID, b.Name, false, message.Text(out))
}

func mustFind(t *testing.T, re, s string) string {
	t.Helper()
	out, err := find(re, s)
	if err != nil || out == "" {
		t.Fatalf("no %s in %s", re, s)
	}
	return out
}

// TestDemo plays the demo against tools whose results differ in shape, and
// compares the whole conversation with testdata/demo/NAME.txt.
func TestDemo(t *testing.T) {
	numbered := "     1\t# Widgets & more\n     2\t\n     3\tText.\n"
	worlds := map[string]struct {
		directive string
		tools     tools
	}{
		"full": {"What is in here?", tools{
			"glob":                      "README.md\nMakefile\ncmd/widget/main.go\ninternal/a/a.go\ninternal/a/a_test.go\ninternal/b.d/LICENSE\ndocs/x.md\n.gitignore\n",
			"grep":                      "internal/a/a.go:12:\t// TODO: later\ndocs/x.md:3:FIXME this\n",
			"file_read README.md":       numbered,
			"file_read internal/a/a.go": "     1\tpackage a\n     2\t\n     3\tvar A int\n"}},
		"absolute": {"Say \"hi\"", tools{
			"glob":                          "/home/me/x/README.md\n/home/me/x/src/a.py\n\n(Results are truncated: showing first 2 results)\n",
			"grep":                          "/home/me/x/src/a.py:1:# TODO\n",
			"file_read README.md":           "# Plain heading\nbody\n",
			"file_read /home/me/x/src/a.py": "# TODO\n"}},
		"many": {"go", tools{
			"glob":                "a.a\na.b\na.c\na.d\na.e\na.f\na.g\na.h\na.i\na.j\n1/x\n2/x\n3/x\n4/x\n5/x\n6/x\n7/x\n8/x\n9/x\n",
			"grep":                strings.Repeat("a.a:1:TODO\n", 13),
			"file_read README.md": "no heading here\n",
			"file_read a.a":       "TODO\n"}},
		"no-hits": {"go", tools{
			"glob":                "lib/z.txt\nmain.go\n",
			"grep":                "No matches found",
			"file_read lib/z.txt": "one\ntwo\n"}},
		"cut": {"go", tools{
			"glob":                "a.go\nb.go\n[2 of 9 files. Narrow the pattern or give a path to see the others.]",
			"grep":                "a.go:3:// TODO\n[The first 1; there are more. Narrow the pattern, path or glob, or raise head_limit.]",
			"file_read README.md": "[The file is empty.]",
			"file_read a.go":      "     1\tpackage a\n     2\t\n[Lines 1 to 2 of 9. Go on with offset 3.]"}},
		"empty":  {"go", tools{"glob": "No files found", "grep": "No matches found"}},
		"broken": {"go", tools{}},
	}
	for name, w := range worlds {
		t.Run(name, func(t *testing.T) {
			req := ask(w.directive)
			p := New(Demo(), nil)
			var b strings.Builder
			b.WriteString("> " + w.directive + "\n")
			for step := 0; ; step++ {
				if step > 5 {
					t.Fatal("the demo does not end")
				}
				m, err := model.Complete(t.Context(), p, req)
				if err != nil {
					t.Fatal(err)
				}
				b.WriteString("\n" + m.Text() + "\n")
				req.Messages = append(req.Messages, *m)
				calls := m.ToolCalls()
				for _, call := range calls {
					res := w.tools.call(t, call)
					b.WriteString("  -> " + call.Name + " " + string(call.Arguments) + "\n")
					req.Messages = append(req.Messages, res)
				}
				if len(calls) == 0 {
					break
				}
			}
			golden(t, filepath.Join("testdata", "demo", name+".txt"), b.String())
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: run go test ./model/script -update", err)
	}
	if string(want) != got {
		t.Errorf("%s differs; got:\n%s", file, got)
	}
}
