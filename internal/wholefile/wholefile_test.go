package wholefile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

func folder(t *testing.T) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root, dir
}

// has checks what a folder has in it, and what the first of it holds.
func has(t *testing.T, dir, text string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if err != nil || !slices.Equal(got, names) {
		t.Fatalf("%s has %q, not %q: %v", dir, got, names, err)
	}
	if len(names) > 0 {
		if data, err := os.ReadFile(filepath.Join(dir, names[0])); err != nil || string(data) != text {
			t.Errorf("%s has %q, not %q: %v", names[0], data, text, err)
		}
	}
}

func TestReplace(t *testing.T) {
	root, dir := folder(t)
	if err := Replace(root, "a.md", []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	has(t, dir, "one", "a.md")
	for _, mode := range []fs.FileMode{0o600, 0o666, 0o640} { // 0o666 is not what new files get
		if runtime.GOOS == "windows" {
			mode = 0o666
		}
		if err := os.Chmod(filepath.Join(dir, "a.md"), mode); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint("again ", mode)
		if err := Replace(root, "a.md", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		has(t, dir, text, "a.md")
		if info, err := os.Stat(filepath.Join(dir, "a.md")); err != nil || info.Mode() != mode {
			t.Errorf("its permissions were %v and are %v, %v", mode, info.Mode(), err)
		}
	}
	if err := Replace(root, "none/a.md", nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if err := Replace(root, "../a.md", nil, 0o600); err == nil {
		t.Error("it led out of the folder")
	}
}

func TestCreate(t *testing.T) {
	root, dir := folder(t)
	if err := Create(root, "x/y/a.md", []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "x/y/a.md")); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := Create(root, "x/y/a.md", []byte("two"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("it is there: %v", err)
	}
	if err := Create(root, "x/y", nil, 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a folder is there: %v", err)
	}
	if err := Create(root, "../a.md", nil, 0o600); err == nil {
		t.Error("it led out of the folder")
	}
	has(t, filepath.Join(dir, "x/y"), "one", "a.md")
}

// Links that have the name are neither followed nor replaced, and links among the
// folders do not lead out.
func TestLinks(t *testing.T) {
	root, dir := folder(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "there")), os.Symlink("nowhere", filepath.Join(dir, "dangling")),
		os.Symlink(outside, filepath.Join(dir, "out"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"there", "dangling"} {
		if err := Replace(root, name, []byte("x"), 0o600); err == nil {
			t.Errorf("%s was replaced", name)
		}
		if err := Create(root, name, []byte("x"), 0o600); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s was created: %v", name, err)
		}
	}
	for _, name := range []string{"out/new", "out/secret"} {
		if Replace(root, name, []byte("x"), 0o600) == nil || Create(root, name, []byte("x"), 0o600) == nil {
			t.Errorf("%s was written", name)
		}
	}
	has(t, outside, "secret", "secret")
	if got, err := os.Readlink(filepath.Join(dir, "dangling")); err != nil || got != "nowhere" {
		t.Errorf("%q, %v", got, err)
	}
}

// What is written is on the disk before it has its name, and the name is after that.
func TestOnTheDisk(t *testing.T) {
	root, dir := folder(t)
	var order []string
	d := onDisk()
	d.sync = func(f *os.File) error {
		what := "file"
		if info, err := f.Stat(); err != nil || info.IsDir() {
			what = filepath.ToSlash(f.Name())
		}
		_, err := root.Stat("x/a")
		order = append(order, fmt.Sprint(what, " ", err == nil))
		return f.Sync()
	}
	if err := d.create(root, "x/a", []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	slash := filepath.ToSlash(dir)
	if want := []string{"file false", slash + "/x true", slash + "/. true"}; !slices.Equal(order, want) {
		t.Errorf("%q, not %q", order, want)
	}
	order = nil
	if err := d.replace(root, "x/a", []byte("two"), 0o600); err != nil || len(order) != 2 {
		t.Errorf("%q, %v", order, err)
	}
	// What the disk refuses is nowhere.
	full := errors.New("the disk is full")
	d.sync = func(*os.File) error { return full }
	if err := d.replace(root, "x/a", []byte("three"), 0o600); !errors.Is(err, full) {
		t.Error(err)
	}
	if err := d.create(root, "x/b", []byte("three"), 0o600); !errors.Is(err, full) {
		t.Error(err)
	}
	has(t, filepath.Join(dir, "x"), "two", "a")
}

// What a crash left is removed, once it can not be another process's.
func TestWhatCrashesLeave(t *testing.T) {
	root, dir := folder(t)
	old := time.Now().Add(-2 * forgotten)
	for _, name := range []string{".a.OLD.agentd", ".a.agentd", ".b.OLD.agentd", "a.agentd", ".a.NEW.agentd"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		if name != ".a.NEW.agentd" {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := Replace(root, "a", []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	has(t, dir, "half", ".a.NEW.agentd", ".b.OLD.agentd", "a", "a.agentd")
}

// Of many who create a file one does, with hard links and without; those who replace it
// do each other no harm. Whoever reads meanwhile reads it whole.
func TestAtTheSameTime(t *testing.T) {
	none := onDisk()
	none.link = func(*os.Root, string, string) error { return errors.ErrUnsupported }
	text := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i)}, 100_000) }
	for name, d := range map[string]disk{"links": onDisk(), "no links": none} {
		t.Run(name, func(t *testing.T) {
			root, dir := folder(t)
			for round := range 20 {
				file := fmt.Sprint(round, "/a")
				errs := make([]error, 6)
				var wg sync.WaitGroup
				for i := range errs {
					wg.Go(func() { errs[i] = d.create(root, file, text(i), 0o600) })
				}
				wg.Wait()
				winner := slices.Index(errs, nil)
				if winner < 0 {
					t.Fatal(errs)
				}
				for i, err := range errs {
					if i != winner && !errors.Is(err, fs.ErrExist) {
						t.Errorf("round %d: %d and %d: %v", round, winner, i, err)
					}
				}
				has(t, filepath.Join(dir, fmt.Sprint(round)), string(text(winner)), "a")
				for i := range errs {
					wg.Go(func() { errs[i] = d.replace(root, file, text(i), 0o600) })
					wg.Go(func() {
						if data, err := root.ReadFile(file); err != nil || len(data) != 100_000 || len(bytes.Trim(data, string(data[:1]))) != 0 {
							t.Errorf("round %d: read %d bytes, %v", round, len(data), err)
						}
					})
				}
				wg.Wait()
				if err := errors.Join(errs...); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			}
		})
	}
}
