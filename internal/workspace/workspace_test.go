package workspace

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"agentd/fault"
	"agentd/message"
	"agentd/tool"
)

// tree writes files below a new folder and opens it. A name that ends in a
// slash is a folder; a text that begins with "-> " makes a symbolic link.
func tree(t *testing.T, opts *Options, files map[string]string) *Workspace {
	t.Helper()
	dir := t.TempDir()
	plant(t, dir, files)
	w, err := New(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func plant(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			err = os.Symlink(target, p)
		} else if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(p, 0o755)
		} else {
			err = os.WriteFile(p, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// call runs a tool as the engine does: the arguments pass its schema first.
func call(t *testing.T, w *Workspace, name, args string) tool.Result {
	t.Helper()
	for _, tl := range w.Tools() {
		spec := tl.Spec()
		if spec.Name != name {
			continue
		}
		schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(spec.Schema))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("s.json", schema); err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(args))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.MustCompile("s.json").Validate(v); err != nil {
			t.Fatalf("%s %s: %v", name, args, err)
		}
		res, err := tl.Run(t.Context(), tool.Call{Name: name, Args: json.RawMessage(args), Progress: func(tool.Progress) {}})
		if err != nil {
			t.Fatalf("%s %s: %v", name, args, err)
		}
		return res
	}
	t.Fatalf("no tool %s", name)
	return tool.Result{}
}

func text(r tool.Result) string {
	var b strings.Builder
	for _, c := range r.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}

func TestSpecs(t *testing.T) {
	w := tree(t, nil, nil)
	set, err := tool.NewSet(w.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(set.Names(), Names()) {
		t.Errorf("names %v, want %v", set.Names(), Names())
	}
	for _, s := range set.Specs() {
		if s.Effect != tool.Read || s.Source != "builtin" || len(s.Description) < 100 || !json.Valid(s.Schema) || s.Timeout <= 0 {
			t.Errorf("%s: %+v", s.Name, s)
		}
	}
}

func TestNew(t *testing.T) {
	_, err := New(filepath.Join(t.TempDir(), "none"), nil)
	if fault.KindOf(err) != fault.Invalid || fault.HintOf(err) == "" {
		t.Errorf("err = %v", err)
	}
}

func TestFileRead(t *testing.T) {
	long := strings.Repeat("x", 5000)
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 20)
	w := tree(t, &Options{MaxLines: 3, MaxBytes: 3000, MaxImageBytes: 100}, map[string]string{
		"a.txt": "one\ntwo\nthree\nfour\n", "noend.txt": "one\ntwo", "empty": "", "crlf": "a\r\nb\r\n", "long": long + "\nnext\n" + long + "\n",
		"sub/b.go": "package b\n", "bin": "ab\x00cd", "p.png": png, "big.png": png + strings.Repeat("\x00", 100),
		"ansi": "\x1b[31mred\x1b[0m\x07 \xff é\n", "README.md": "# Hello\n", "blank": "\n\n", "link": "-> sub/b.go", "dirlink": "-> sub",
	})
	tests := []struct {
		args, want string
		isError    bool
	}{
		{`{"file_path":"a.txt"}`, "     1\tone\n     2\ttwo\n     3\tthree\n[Lines 1 to 3 of 4. Go on with offset 4.]", false},
		{`{"file_path":"a.txt","offset":4}`, "     4\tfour", false},
		{`{"file_path":"a.txt","offset":2,"limit":1}`, "     2\ttwo\n[Lines 2 to 2 of 4. Go on with offset 3.]", false},
		{`{"file_path":"a.txt","offset":9}`, "a.txt has 4 lines; offset 9 is behind its end.", true},
		{`{"file_path":"noend.txt"}`, "     1\tone\n     2\ttwo", false},
		{`{"file_path":"./sub/../noend.txt"}`, "     1\tone\n     2\ttwo", false},
		{`{"file_path":"empty"}`, "[The file is empty.]", false},
		{`{"file_path":"blank"}`, "     1\t\n     2\t", false},
		{`{"file_path":"crlf"}`, "     1\ta\n     2\tb", false},
		{`{"file_path":"long"}`, "     1\t" + long[:2000] + " [line cut]\n     2\tnext\n[Lines 1 to 2 of 3. Go on with offset 3.]", false},
		{`{"file_path":"ansi"}`, "     1\t[31mred[0m \uFFFD é", false},
		{`{"file_path":"link"}`, "     1\tpackage b", false},
		{`{"file_path":"dirlink/b.go"}`, "     1\tpackage b", false},
		{`{"file_path":"sub"}`, `sub is a folder. Use glob with path "sub" to see its files.`, true},
		{`{"file_path":"a.txt/x"}`, "a.txt/x does not exist. a.txt is a file.", true},
		{`{"file_path":"readme"}`, "readme does not exist. Did you mean README.md?", true},
		{`{"file_path":"sub/b.ts"}`, "sub/b.ts does not exist. Did you mean sub/b.go?", true},
		{`{"file_path":"nope/deep/er"}`, "nope/deep/er does not exist. Use glob to see which files there are.", true},
		{`{"file_path":"bin"}`, "bin is a binary file (application/octet-stream, 5 bytes), which can not be shown as text.", true},
		{`{"file_path":"big.png"}`, "big.png is an image of 128 bytes; at most 100 can be shown.", true},
	}
	for _, tt := range tests {
		got := call(t, w, "file_read", tt.args)
		if text(got) != tt.want || got.IsError != tt.isError {
			t.Errorf("%s\n got %q %v\nwant %q", tt.args, text(got), got.IsError, tt.want)
		}
	}
	img := call(t, w, "file_read", `{"file_path":"p.png"}`)
	if len(img.Content) != 2 || img.Content[1].Type != message.BlockImage || img.Content[1].MimeType != "image/png" ||
		img.Content[1].Data != base64.StdEncoding.EncodeToString([]byte(png)) {
		t.Errorf("image: %+v", img)
	}
	abs, err := json.Marshal(map[string]string{"file_path": filepath.Join(w.Dir(), "noend.txt")})
	if err != nil {
		t.Fatal(err)
	}
	if got := call(t, w, "file_read", string(abs)); got.IsError || string(got.Details) != `{"path":"noend.txt","bytes":7,"first":1,"last":2,"lines":2}` {
		t.Errorf("absolute path: %s %s", text(got), got.Details)
	}
}

func TestGlob(t *testing.T) {
	files := map[string]string{
		"a.go": "", "a.md": "", "b/c.go": "", "b/d/e.go": "", "b/d/f.ts": "", ".github/w.yml": "", ".git/config": "", "node_modules/x/i.js": "",
		".gitignore": "dist/\n*.log\n!keep.log\n/top\nb/d/*.ts\n", "dist/o.js": "", "x.log": "", "keep.log": "", "top": "", "b/top": "",
		".env": "", "b/.env.local": "", ".ssh/id": "", "link.go": "-> a.go", "b/.gitignore": "c.*\n", "we{ird}": "",
	}
	w := tree(t, nil, files)
	tests := []struct{ args, want string }{
		{`{"pattern":"**/*"}`, ".github/w.yml .gitignore a.go a.md b/.gitignore b/d/e.go b/top keep.log we{ird}"},
		{`{"pattern":"*.go"}`, "a.go"},
		{`{"pattern":"**/*.go"}`, "a.go b/d/e.go"},
		{`{"pattern":"./**/*.{go,md}"}`, "a.go a.md b/d/e.go"},
		{`{"pattern":"d/*.go","path":"b"}`, "b/d/e.go"},
		{`{"pattern":"**/*.js","path":"dist"}`, "dist/o.js"},
		{`{"pattern":"**/*.js","path":"node_modules"}`, "node_modules/x/i.js"},
		{`{"pattern":"**/c.go","path":"b"}`, "No files match **/c.go."},
		{`{"pattern":"*.rs"}`, "No files match *.rs. To look in all folders below, use **/*.rs."},
		{`{"pattern":"we\\{ird\\}"}`, "we{ird}"},
		{`{"pattern":"../*"}`, "pattern must stay below path: write it relative, without .., such as **/*.go."},
		{`{"pattern":"/etc/*"}`, "pattern must stay below path: write it relative, without .., such as **/*.go."},
		{`{"pattern":"[a"}`, `"[a" is not a glob pattern: a [ or { is not closed, or a backslash stands last.`},
		{`{"pattern":"*","path":"a.go"}`, "a.go is a file, not a folder. Use file_read to read it."},
		{`{"pattern":"*","path":"zz"}`, "zz does not exist. Use glob to see which files there are."},
	}
	for _, tt := range tests {
		if got := strings.ReplaceAll(text(call(t, w, "glob", tt.args)), "\n", " "); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.args, got, tt.want)
		}
	}
}

func TestGlobCaps(t *testing.T) {
	files := map[string]string{}
	for i := range maxGlob + 5 {
		files[fmt.Sprintf("f%04d", i)] = ""
	}
	w := tree(t, nil, files)
	got := text(call(t, w, "glob", `{"pattern":"*"}`))
	if !strings.HasSuffix(got, "f0999\n[1000 of 1005 files. Narrow the pattern or give a path to see the others.]") {
		t.Errorf("%q", got[len(got)-100:])
	}
	small, err := New(w.Dir(), &Options{MaxFiles: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	if got := text(call(t, small, "glob", `{"pattern":"*9"}`)); !strings.HasSuffix(got, "[Stopped after looking at 10 entries: give a path.]") {
		t.Errorf("%q", got)
	}
}

func TestGrep(t *testing.T) {
	w := tree(t, &Options{MaxFileBytes: 1000}, map[string]string{
		"a.go": "one\ntwo TODO x\nthree\nfour\nfive todo\n", "b/c.go": "TODO first\r\nlast TODO", "b/d.md": "TODO doc\n", "bin": "TODO\x00",
		".git/x": "TODO", "node_modules/x": "TODO", ".env": "TODO=1", ".gitignore": "skip\n", "skip": "TODO", "big": strings.Repeat("TODO\n", 300),
		"long": "TODO" + strings.Repeat("y", 900) + "\n", "link": "-> a.go",
	})
	const skipped = "\n\n[1 files were skipped: larger than 1000 bytes.]"
	tests := []struct{ args, want string }{
		{`{"pattern":"TODO","glob":"*.go"}`, "a.go:2:two TODO x\nb/c.go:1:TODO first\nb/c.go:2:last TODO"},
		{`{"pattern":"TODO","glob":"b/*"}`, "b/c.go:1:TODO first\nb/c.go:2:last TODO\nb/d.md:1:TODO doc"},
		{`{"pattern":"^TODO","path":"b"}`, "b/c.go:1:TODO first\nb/d.md:1:TODO doc"},
		{`{"pattern":"TODO$","path":"b/c.go"}`, "b/c.go:2:last TODO"},
		{`{"pattern":"todo","ignore_case":true,"path":"a.go"}`, "a.go:2:two TODO x\na.go:5:five todo"},
		{`{"pattern":"TODO","output_mode":"files"}`, "a.go\nb/c.go\nb/d.md\nlong" + skipped},
		{`{"pattern":"TODO","output_mode":"count","path":"b"}`, "b/c.go:2\nb/d.md:1"},
		{`{"pattern":"TODO|todo","context":1,"path":"a.go"}`, "a.go-1-one\na.go:2:two TODO x\na.go-3-three\na.go-4-four\na.go:5:five todo"},
		{`{"pattern":"one|five","context":1,"path":"a.go"}`, "a.go:1:one\na.go-2-two TODO x\n--\na.go-4-four\na.go:5:five todo"},
		{`{"pattern":"last|doc","context":1,"path":"b"}`, "b/c.go-1-TODO first\nb/c.go:2:last TODO\n--\nb/d.md:1:TODO doc"},
		{`{"pattern":"o","context":3,"path":"a.go"}`, "a.go:1:one\na.go:2:two TODO x\na.go-3-three\na.go:4:four\na.go:5:five todo"},
		{`{"pattern":"TODO","head_limit":1,"path":"b"}`, "b/c.go:1:TODO first\n[The first 1; there are more. Narrow the pattern, path or glob, or raise head_limit.]"},
		{`{"pattern":"TODOy","path":"long"}`, "long:1:TODO" + strings.Repeat("y", 496) + " [line cut]"},
		{`{"pattern":"nothing","path":"b"}`, "No matches found."},
		{`{"pattern":"TODO","path":".env"}`, ".env is blocked: files of that name usually hold secrets. Ask the person for what you need from it."},
		{`{"pattern":"(","path":"b"}`, "The pattern is not a regular expression (missing closing ): `(`). Escape special letters with a backslash: \\( \\[ \\. \\*. RE2 has no look-around and no back references."},
		{`{"pattern":"x","glob":"["}`, `"[" is not a glob pattern.`},
	}
	for _, tt := range tests {
		if got := text(call(t, w, "grep", tt.args)); got != tt.want {
			t.Errorf("%s\n got %q\nwant %q", tt.args, got, tt.want)
		}
	}
	if got := string(call(t, w, "grep", `{"pattern":"TODO"}`).Details); got != `{"matches":5,"files":4,"skipped":1}` {
		t.Errorf("details %s", got)
	}
}

func TestCancelled(t *testing.T) {
	w := tree(t, nil, map[string]string{"a": "x\n", "b/c": "x\n"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	args := map[string]string{"file_read": `{"file_path":"a"}`, "glob": `{"pattern":"**"}`, "grep": `{"pattern":"x"}`}
	for _, tl := range w.Tools() {
		name := tl.Spec().Name
		if _, err := tl.Run(ctx, tool.Call{Args: json.RawMessage(args[name])}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: err = %v", name, err)
		}
	}
}

func TestBadArguments(t *testing.T) {
	w := tree(t, nil, nil)
	for _, tl := range w.Tools() {
		for _, args := range []string{`{"pattern":1,"file_path":1}`, `{}`, ``, `[]`} {
			res, err := tl.Run(t.Context(), tool.Call{Args: json.RawMessage(args)})
			if err != nil || !res.IsError || text(res) == "" {
				t.Errorf("%s %s: %v %+v", tl.Spec().Name, args, err, res)
			}
		}
	}
}
