package workspace

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"agentd/tool"
)

const outside = "Path resolves outside project boundary"

// jail is a project with links that lead out of it, and a folder beside it.
func jail(t *testing.T) *Workspace {
	t.Helper()
	base := t.TempDir()
	plant(t, base, map[string]string{
		"secret.txt": "hush", "project-two/x": "hush", "project/ok.txt": "fine", "project/sub/ok.txt": "fine",
		"project/out": "-> ..", "project/outfile": "-> ../secret.txt", "project/abs": "-> " + base, "project/sub/up": "-> ../..",
		"project/in": "-> sub", "project/dangling": "-> ../nothing", "project/dangle-in": "-> sub/nothing", "project/loop": "-> loop",
		"project/.env": "hush", "project/sub/.ENV.local": "hush", "project/.ssh/config": "hush", "project/harmless": "-> .env",
		"project/keys": "-> .ssh", "project/sub/id_rsa": "hush", "project/.aws/x": "hush", "project/credentials": "hush",
	})
	w, err := New(filepath.Join(base, "project"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func TestBoundary(t *testing.T) {
	w := jail(t)
	const secret = "is blocked"
	tests := map[string]string{
		"ok.txt": "", "in/ok.txt": "", "sub/../ok.txt": "", ".//ok.txt": "", "out/project/ok.txt": "",
		"../secret.txt": outside, "/etc/passwd": outside, "out/secret.txt": outside, "outfile": outside, "abs/secret.txt": outside,
		"sub/up/secret.txt": outside, "sub/../../secret.txt": outside, "dangling": outside, "../project-two/x": outside, "out": outside,
		"..": outside, "/": outside, "nothing/../../secret.txt": outside,
		".env": secret, "sub/.ENV.local": secret, ".ssh/config": secret, "harmless": secret, "keys/config": secret, "sub/id_rsa": secret,
		".aws/x": secret, "credentials": secret, ".ssh": secret, ".env/x": secret, ".env ": secret, "sub/.env.": secret, "nope/.netrc": secret,
		"dangle-in": "does not exist", "loop": "", "a\x00b": "zero byte",
	}
	for path, want := range tests {
		if path == "loop" {
			want = "changed while it was opened" // a link to itself leads nowhere
		}
		res, err := w.Tools()[0].Run(t.Context(), tool.Call{Args: []byte(`{"file_path":` + quote(path) + `}`)})
		if err != nil {
			t.Errorf("%q: %v", path, err)
			continue
		}
		got := text(res)
		if strings.Contains(got, "hush") || res.IsError != (want != "") || !strings.Contains(got, want) || want == "" && !strings.Contains(got, "fine") {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
	// The other tools go through the same door.
	for _, args := range []string{`{"pattern":"x","path":"out"}`, `{"pattern":"hush","path":"outfile"}`, `{"pattern":"x","path":"/"}`} {
		for _, tl := range w.Tools()[1:] {
			res, err := tl.Run(t.Context(), tool.Call{Args: []byte(args)})
			if err != nil || !res.IsError || !strings.Contains(text(res), outside) {
				t.Errorf("%s %s: %v %q", tl.Spec().Name, args, err, text(res))
			}
		}
	}
	if got := text(call(t, w, "grep", `{"pattern":"hush"}`)); got != "No matches found." {
		t.Errorf("grep found %q", got)
	}
	if got := text(call(t, w, "glob", `{"pattern":"**"}`)); got != "ok.txt\nsub/ok.txt" {
		t.Errorf("glob found %q", got)
	}
}

func quote(s string) string {
	return `"` + strings.NewReplacer("\x00", `\u0000`, `\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func TestBlockedNames(t *testing.T) {
	for _, name := range []string{".ssh", ".aws", ".azure", ".gnupg", ".kube", ".npm", ".pypirc", ".env", ".env.local", ".ENV", ".bashrc", ".zshrc",
		".netrc", ".npmrc", ".git-credentials", "id_rsa", "id_ed25519", "authorized_keys", "credentials", "known_hosts", ".env. "} {
		if !blocked(name) {
			t.Errorf("%s is not blocked", name)
		}
	}
	for _, name := range []string{".environment", "env", "environ.go", "id_rsa.go", ".github", ".gitignore", "credentials.go", "ssh", ".", ".."} {
		if blocked(name) {
			t.Errorf("%s is blocked", name)
		}
	}
}

// A path that passed resolve and is then replaced by a link leads nowhere.
func TestSwapAfterResolve(t *testing.T) {
	base := t.TempDir()
	plant(t, base, map[string]string{"secret/x": "hush", "p/dir/x": "fine", "p/file": "fine", "p/.ssh/x": "hush", "p/.env": "hush"})
	w, err := New(filepath.Join(base, "p"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	swap := func(name, target string) {
		t.Helper()
		p := filepath.Join(base, "p", name)
		if err := os.RemoveAll(p); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, p); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []struct{ path, swap, target string }{
		{"dir/x", "dir", filepath.Join(base, "secret")}, {"dir/x", "dir", "../secret"}, {"dir/x", "dir", ".ssh"},
		{"file", "file", "../secret/x"}, {"file", "file", ".env"},
	} {
		rel := s.path // what resolve gave while the tree was honest
		swap(s.swap, s.target)
		if f, _, err := w.open(rel); err == nil {
			f.Close()
			t.Errorf("%s opened through a link to %s", rel, s.target)
		}
	}
}

// Both orders of the race: a folder is swapped with a link to secrets, over and
// over, while it is read.
func TestSwapRace(t *testing.T) {
	base := t.TempDir()
	plant(t, base, map[string]string{"p/dir/x": "fine", "p/.ssh/x": "hush", "p/other/": ""})
	w, err := New(filepath.Join(base, "p"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		dir, moved := filepath.Join(base, "p", "dir"), filepath.Join(base, "p", "other", "dir")
		for {
			select {
			case <-stop:
				return
			default:
			}
			// Errors show as reads that fail, which is fine here.
			_ = os.Rename(dir, moved)
			_ = os.Symlink(".ssh", dir)
			runtime.Gosched()
			_ = os.Remove(dir)
			_ = os.Rename(moved, dir)
		}
	}()
	good := 0
	for range 3000 {
		res, err := w.Tools()[0].Run(t.Context(), tool.Call{Args: []byte(`{"file_path":"dir/x"}`)})
		if err != nil {
			t.Error(err)
		}
		if strings.Contains(text(res), "hush") {
			t.Fatal("a secret was read through a swapped link")
		}
		if !res.IsError {
			good++
		}
	}
	close(stop)
	<-done
	if res := call(t, w, "file_read", `{"file_path":"dir/x"}`); good == 0 && res.IsError {
		t.Errorf("nothing could be read: %s", text(res))
	}
}

// Whatever the path, resolve gives one that is local and not blocked, or an error.
func FuzzResolve(f *testing.F) {
	for _, s := range []string{"", ".", "ok.txt", "../x", "/etc/passwd", "out/secret.txt", "abs/../x", "loop/x", ".env", "sub/./../.ssh/x", "a\x00", "~/x", "//x", `..\x`, "in/up/x"} {
		f.Add(s)
	}
	base := f.TempDir()
	dir := filepath.Join(base, "p")
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
		f.Fatal(err)
	}
	for name, target := range map[string]string{"out": "..", "abs": base, "loop": "loop", "in": "sub", "sub/up": "../.."} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			f.Fatal(err)
		}
	}
	w, err := New(dir, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { w.Close() })
	f.Fuzz(func(t *testing.T, name string) {
		rel, err := w.resolve(name)
		if err != nil {
			return
		}
		if !filepath.IsLocal(filepath.FromSlash(rel)) || blockedPath(rel) {
			t.Errorf("%q resolves to %q", name, rel)
		}
		real, err := filepath.EvalSymlinks(filepath.Join(dir, rel))
		if err != nil {
			return
		}
		if inside, err := filepath.Rel(w.Dir(), real); err != nil || !filepath.IsLocal(inside) {
			t.Errorf("%q leads to %q", name, real)
		}
	})
}

func FuzzIgnore(f *testing.F) {
	for _, s := range []string{"*.log", "!keep", "/a/b/", "a/**", "**/x", "[", "\\#x ", "{a,b}", "a//b", "/", "!", "# c"} {
		f.Add(s, "a/b.log")
	}
	f.Fuzz(func(t *testing.T, file, rel string) {
		ignored(parseIgnore("", file), rel, false)
		ignored(parseIgnore("a", file), rel, true)
	})
}

func TestIgnore(t *testing.T) {
	tests := []struct {
		file, base, path string
		dir, want        bool
	}{
		{"*.log", "", "a/b.log", false, true},
		{"*.log\n!b.log", "", "a/b.log", false, false},
		{"!b.log\n*.log", "", "b.log", false, true},
		{"/b.log", "", "a/b.log", false, false},
		{"/b.log", "", "b.log", false, true},
		{"/b.log", "a", "a/b.log", false, true},
		{"/b.log", "a", "c/b.log", false, false},
		{"dist/", "", "dist", false, false},
		{"dist/", "", "x/dist", true, true},
		{"a/b", "", "x/a/b", false, false},
		{"**/a/b", "", "x/a/b", false, true},
		{"a/**", "", "a", true, false},
		{"a/**", "", "a/b/c", false, true},
		{"a/**/c", "", "a/c", false, true},
		{"a/**/c", "", "a/x/y/c", false, true},
		{"# x\n\n  \n", "", "# x", false, false},
		{`\#x`, "", "#x", false, true},
		{"x ", "", "x", false, true},
		{"{a,b}", "", "a", false, false},
		{"{a,b}", "", "{a,b}", false, true},
		{"[a-c].x\r\n", "", "b.x", false, true},
		{"[", "", "[", false, false},
	}
	for _, tt := range tests {
		if got := ignored(parseIgnore(tt.base, tt.file), tt.path, tt.dir); got != tt.want {
			t.Errorf("%q in %q: %q = %v", tt.file, tt.base, tt.path, got)
		}
	}
}
