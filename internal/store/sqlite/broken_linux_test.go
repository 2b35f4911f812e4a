package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentd/internal/store"
)

// A read that fails in the middle of a group ends SQLite's transaction. Nobody may
// be told something that the file does not hold to.
func TestReadErrorInAGroup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	s := openTest(t, path, nil)
	name := func(i, k int) string { return fmt.Sprintf("s%03d-%d-%s", i, k, strings.Repeat("x", 200)) }
	for i := range 200 {
		tx := &store.Tx{Tenant: store.DefaultTenant}
		for k := range 30 {
			tx.NewSessions = append(tx.NewSessions, &store.Session{ID: name(i, k), Created: 1, Updated: 1})
		}
		commit(t, s, tx)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, path, nil)
	warm, cold, warm2 := name(0, 0), name(100, 0), name(1, 0)
	commit(t, s, entryTx(warm, "warm"), entryTx(warm2, "warm"))
	half := entryTx(warm2, "half")
	half.Inputs = []*store.Input{{RunID: "none", ID: "i", Kind: "x"}}

	mend := unreadable(t, path)
	errs, _ := together(t, s, []*store.Tx{entryTx(warm, "one"), entryTx(cold, "two"), entryTx(warm2, "three"), half})
	mend()
	if errs[1] == nil {
		t.Fatal("the test does not make SQLite read")
	}
	for i, e := range [][2]string{{warm, "one"}, {cold, "two"}, {warm2, "three"}, {warm2, "half"}} {
		if _, err := s.Entry(t.Context(), store.DefaultTenant, e[0], e[1]); (errs[i] == nil) != (err == nil) {
			t.Errorf("%s: Commit said %v, the file says %v", e[1], errs[i], err)
		}
	}
	commit(t, s, entryTx(cold, "after"))
	checkIntegrity(t, s)
}

// unreadable lets reads of a file fail until mend is called.
func unreadable(t *testing.T, path string) (mend func()) {
	null, err := syscall.Open("/dev/null", syscall.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[int]int{}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fds {
		if l, _ := os.Readlink("/proc/self/fd/" + f.Name()); l != path {
			continue
		}
		var fd int
		_, _ = fmt.Sscan(f.Name(), &fd)
		if kept[fd], err = syscall.Dup(fd); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Dup3(null, fd, 0); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for fd, dup := range kept {
			if err := syscall.Dup3(dup, fd, 0); err != nil {
				t.Error(err)
			}
			_ = syscall.Close(dup)
		}
		_ = syscall.Close(null)
	}
}
