package logs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// content gives what is in a file, "" if it is not there.
func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

func TestFilesRotate(t *testing.T) {
	for _, tt := range []struct {
		max  int64
		keep int
		want []string // path, path.1, path.2, path.3
	}{
		{0, 2, []string{"one\ntwo\nthree\na long line\nx\n"}},
		{8, 2, []string{"x\n", "a long line\n", "three\n"}},
		{8, 0, []string{"x\n"}},
		{8, 9, []string{"x\n", "a long line\n", "three\n", "one\ntwo\n"}},
	} {
		path := filepath.Join(t.TempDir(), "new", "x.log")
		for _, line := range []string{"one\n", "two\n", "three\n", "a long line\n", "x\n"} {
			// What was written before counts, too.
			f, err := OpenFile(path, FileOptions{MaxBytes: tt.max, Keep: tt.keep})
			if err != nil {
				t.Fatal(err)
			}
			if n, err := f.Write([]byte(line)); n != len(line) || err != nil {
				t.Errorf("%d %v", n, err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
		for n := range 4 {
			want, name := "", path
			if n < len(tt.want) {
				want = tt.want[n]
			}
			if n > 0 {
				name += fmt.Sprint(".", n)
			}
			if got := content(t, name); got != want {
				t.Errorf("%d bytes, %d kept: file %d holds %q, not %q", tt.max, tt.keep, n, got, want)
			}
		}
	}
}

// Files that another program moves, or another process of ours.
func TestFilesAreReopened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	open := func() *File {
		t.Helper()
		f, err := OpenFile(path, FileOptions{MaxBytes: 10, Keep: 3})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	say := func(f *File, s string) {
		t.Helper()
		if _, err := f.Write([]byte(s)); err != nil {
			t.Error(err)
		}
	}
	a, b := open(), open()
	say(a, "a1\n")
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	say(a, "a2\n") // its own program has not said so yet
	if err := a.Reopen(); err != nil {
		t.Fatal(err)
	}
	say(a, "a3\n")
	if old, now := content(t, path+".old"), content(t, path); old != "a1\na2\n" || now != "a3\n" {
		t.Errorf("%q %q", old, now)
	}
	// b is full, and finds that the file is another one by now.
	say(b, "b1b1b1b1\n")
	say(b, "b2\n")
	if old, now := content(t, path+".old"), content(t, path); old != "a1\na2\nb1b1b1b1\n" || now != "a3\nb2\n" || content(t, path+".1") != "" {
		t.Errorf("%q %q %q", old, now, content(t, path+".1"))
	}
	if err := a.Close(); err != nil || a.Close() != nil {
		t.Error(err)
	}
}

// A file that can not be moved grows on, and the error is told.
func TestRotationFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	if err := os.MkdirAll(filepath.Join(path+".1", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(path, FileOptions{MaxBytes: 4, Keep: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var errs []error
	for _, s := range []string{"one\n", "two\n", "six\n"} {
		_, err := f.Write([]byte(s))
		errs = append(errs, err)
	}
	if errs[0] != nil || errs[1] == nil || content(t, path) != "one\ntwo\nsix\n" {
		t.Errorf("%v: %q", errs, content(t, path))
	}
}

func TestFilesAreWrittenTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	f, err := OpenFile(path, FileOptions{MaxBytes: 1000, Keep: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 50 {
				if _, err := fmt.Fprintf(f, "%d %02d %s\n", i, n, strings.Repeat("x", 40)); err != nil {
					t.Error(err)
				}
				if n == 25 {
					if err := f.Reopen(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, name := range files {
		s := content(t, name)
		if len(s) > 1000 {
			t.Errorf("%s has %d bytes", name, len(s))
		}
		lines = append(lines, strings.Split(strings.TrimSpace(s), "\n")...)
	}
	slices.Sort(lines)
	if len(slices.Compact(lines)) != 400 {
		t.Errorf("%d lines are left of 400", len(lines))
	}
}
