package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func planted(t *testing.T, files ...string) *Workspace {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		name, text, _ := strings.Cut(f, "=")
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w, err := New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func TestTree(t *testing.T) {
	many := []string{"z/last.txt", "b.txt", "a/1"}
	for i := range 30 {
		many = append(many, fmt.Sprintf("many/%02d", i))
	}
	for _, tt := range []struct {
		name   string
		files  []string
		limits TreeLimits
		want   string
	}{
		{"nothing", nil, TreeLimits{}, ""},
		{"sorted, with folders", []string{"b.go", "a/c.go", "a/b/x", "A", "empty/"}, TreeLimits{}, "A\na/\n  b/\n    x\n  c.go\nb.go\nempty/"},
		{"as the tools see it", []string{".git/HEAD", "node_modules/x", ".env=S", "sub/.env.local", ".gitignore=*.log\nout/\n", "x.log", "out/y", "sub/.gitignore=!keep.log\nsecret*\n",
			"sub/keep.log", "sub/x.log", "sub/secret.txt", ".github/ci.yml"}, TreeLimits{}, ".github/\n  ci.yml\n.gitignore\nsub/\n  .gitignore\n  keep.log"},
		{"depth", []string{"a/b/c/d", "x"}, TreeLimits{Depth: 2}, "a/\n  b/ [not opened]\nx"},
		{"each folder has its share", many, TreeLimits{Entries: 10}, "a/\n  1\nb.txt\nmany/\n  00\n  01\n  02\n  03\n  [26 more]\nz/\n  last.txt"},
		{"no room at the top", []string{"a", "b", "c/x"}, TreeLimits{Entries: 2}, "a\nb\n[1 more]"},
		{"bytes", []string{"aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc", "dddddddddd", "eeeeeeeeee"}, TreeLimits{Bytes: 50}, "aaaaaaaaaa\n[4 lines are left out]"},
		{"names that are no names", []string{"a\nb", "c\x1b[31m"}, TreeLimits{}, "ab\nc[31m"},
	} {
		w := planted(t, tt.files...)
		for range 2 {
			got, err := w.Tree(t.Context(), &tt.limits)
			if err != nil || got != tt.want {
				t.Errorf("%s: %v\n%s\nnot\n%s", tt.name, err, got, tt.want)
			}
			if l := tt.limits.Bytes; l > 0 && len(got) > l {
				t.Errorf("%s: %d bytes", tt.name, len(got))
			}
		}
	}
}

// Links are not followed, whatever they lead to; a folder with more entries than may be
// looked at is named and not listed, as nobody could say which of them.
func TestTreeLinksAndHugeFolders(t *testing.T) {
	w := planted(t, "a/x", "b", "huge/1", "huge/2", "huge/3", "huge/4", "huge/5")
	for link, to := range map[string]string{"out": t.TempDir(), "in": "a", "loop": "."} {
		if err := os.Symlink(to, filepath.Join(w.Dir(), link)); err != nil {
			t.Fatal(err)
		}
	}
	w.opts.MaxFiles = 4
	got, err := w.Tree(t.Context(), nil)
	if err != nil || got != "[too many entries to list]" {
		t.Errorf("%v %q", err, got)
	}
	for _, link := range []string{"out", "in", "loop"} {
		if err := os.Remove(filepath.Join(w.Dir(), link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".", filepath.Join(w.Dir(), "loop")); err != nil {
		t.Fatal(err)
	}
	got, err = w.Tree(t.Context(), nil)
	if err != nil || got != "a/\n  x\nb\nhuge/\n  [too many entries to list]" {
		t.Errorf("%v %q", err, got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := w.Tree(ended, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
