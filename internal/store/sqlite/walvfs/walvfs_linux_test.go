package walvfs

import (
	"bytes"
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// below is the layer below a log: it notes what it is asked for.
type below struct {
	calls []string
	data  []byte
	fail  bool
}

// under is the one that the functions below work on. They are called by address
// and can have no receiver, so these tests do not run at the same time.
var under *below

func (b *below) note(format string, args ...any) {
	b.calls = append(b.calls, fmt.Sprintf(format, args...))
}

// took gives the calls so far and forgets them.
func (b *below) took() []string {
	calls := b.calls
	b.calls = nil
	return calls
}

func belowWrite(_ *libc.TLS, _, buf uintptr, n int32, where int64) int32 {
	under.note("write %d at %d", n, where)
	if under.fail {
		return sqlite3.SQLITE_IOERR_WRITE
	}
	if need := int(where) + int(n); len(under.data) < need {
		under.data = append(under.data, make([]byte, need-len(under.data))...)
	}
	copy(under.data[where:], memory(buf, n))
	return sqlite3.SQLITE_OK
}

func belowRead(_ *libc.TLS, _, buf uintptr, n int32, where int64) int32 {
	under.note("read %d at %d", n, where)
	clear(memory(buf, n))
	if int(where) < len(under.data) {
		copy(memory(buf, n), under.data[where:])
	}
	return sqlite3.SQLITE_OK
}

func belowTruncate(_ *libc.TLS, _ uintptr, n int64) int32 {
	under.note("truncate %d", n)
	under.data = under.data[:min(len(under.data), int(n))]
	return sqlite3.SQLITE_OK
}

func belowSize(_ *libc.TLS, _, out uintptr) int32 {
	under.note("size")
	*at[int64](out) = int64(len(under.data))
	return sqlite3.SQLITE_OK
}

func belowSync(*libc.TLS, uintptr, int32) int32 {
	under.note("sync")
	return sqlite3.SQLITE_OK
}

func belowClose(*libc.TLS, uintptr) int32 {
	under.note("close")
	return sqlite3.SQLITE_OK
}

// rig is an open log over below.
type rig struct {
	t    *testing.T
	tls  *libc.TLS
	file uintptr
	buf  uintptr
}

func newRig(t *testing.T) *rig {
	under = &below{}
	tls := libc.NewTLS()
	alloc := func(n uintptr) uintptr { return libc.Xcalloc(tls, 1, libc.Tsize_t(n)) }
	r := &rig{t: t, tls: tls, file: alloc(unsafe.Sizeof(file{})), buf: alloc(2 * gather)}
	base, w := alloc(unsafe.Sizeof(sqlite3.Tsqlite3_io_methods{})), alloc(unsafe.Sizeof(wal{}))
	*at[sqlite3.Tsqlite3_io_methods](base) = sqlite3.Tsqlite3_io_methods{FxClose: address(belowClose), FxRead: address(belowRead),
		FxWrite: address(belowWrite), FxTruncate: address(belowTruncate), FxFileSize: address(belowSize), FxSync: address(belowSync)}
	*at[wal](w) = wal{base: base, buf: alloc(gather), fd: -1}
	at[file](r.file).methods = w
	return r
}

func (r *rig) write(b []byte, where int64) int32 {
	copy(memory(r.buf, int32(len(b))), b)
	return write(r.tls, r.file, r.buf, int32(len(b)), where)
}

// frame writes a frame as SQLite does, and gives the offset behind it.
func (r *rig) frame(where int64, commit bool) int64 {
	r.t.Helper()
	header := make([]byte, frameHeader)
	header[3] = 1 // the page
	if commit {
		header[7] = 9 // the pages of the file
	}
	page := bytes.Repeat([]byte{byte(where)}, 4096)
	if r.write(header, where) != sqlite3.SQLITE_OK || r.write(page, where+frameHeader) != sqlite3.SQLITE_OK {
		r.t.Fatal("a write failed")
	}
	return where + frameHeader + 4096
}

func (r *rig) want(calls ...string) {
	r.t.Helper()
	if got := under.took(); !slices.Equal(got, calls) {
		r.t.Errorf("the layer below got %q, want %q", got, calls)
	}
}

func TestACommitIsOneWrite(t *testing.T) {
	r := newRig(t)
	next := r.frame(r.frame(32, false), false)
	r.want()
	next = r.frame(next, true)
	r.want("write 12360 at 32")
	if syncFile(r.tls, r.file, 0) != sqlite3.SQLITE_OK {
		t.Error("sync failed")
	}
	r.want("sync")
	r.frame(next, true)
	r.want("write 4120 at 12392")
}

// Whatever else is done with the log, what was written comes first.
func TestWhatIsGatheredComesFirst(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(r *rig) int32
		want []string
	}{
		"sync":      {func(r *rig) int32 { return syncFile(r.tls, r.file, 0) }, []string{"sync"}},
		"read":      {func(r *rig) int32 { return read(r.tls, r.file, r.buf, 8, 40) }, []string{"read 8 at 40"}},
		"truncate":  {func(r *rig) int32 { return truncate(r.tls, r.file, 32) }, []string{"truncate 32"}},
		"size":      {func(r *rig) int32 { return size(r.tls, r.file, r.buf) }, []string{"size"}},
		"elsewhere": {func(r *rig) int32 { return r.write(make([]byte, 32), 0) }, nil},
		"a gap":     {func(r *rig) int32 { return r.write(make([]byte, 24), 32+4120+1) }, nil},
		"very long": {func(r *rig) int32 { return r.write(make([]byte, gather+1), 32+4120) }, []string{"write 131073 at 4152"}},
		"close":     {func(r *rig) int32 { return closeFile(r.tls, r.file) }, []string{"close"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.frame(32, false)
			if rc := c.do(r); rc != sqlite3.SQLITE_OK {
				t.Errorf("it gives %d", rc)
			}
			r.want(append([]string{"write 4120 at 32"}, c.want...)...)
		})
	}
}

func TestALongCommitLeavesInParts(t *testing.T) {
	r := newRig(t)
	next := int64(32)
	for i := range 64 {
		next = r.frame(next, i == 63)
	}
	var n int
	for _, call := range under.took() {
		var size, where int
		if _, err := fmt.Sscanf(call, "write %d at %d", &size, &where); err != nil || where != 32+n {
			t.Fatalf("%q after %d bytes", call, n)
		}
		n += size
	}
	if int64(n) != next-32 {
		t.Errorf("%d bytes were written of %d", n, next-32)
	}
}

// A write that fails fails the commit, and is not tried again behind SQLite's back.
func TestAFailedWriteFailsTheCommit(t *testing.T) {
	r := newRig(t)
	r.frame(32, false)
	under.fail = true
	header := make([]byte, frameHeader)
	header[7] = 1
	if rc := r.write(header, 32+4120); rc != sqlite3.SQLITE_OK {
		t.Fatalf("gathering gives %d", rc)
	}
	if rc := r.write(make([]byte, 4096), 32+4120+frameHeader); rc != sqlite3.SQLITE_IOERR_WRITE {
		t.Errorf("the write that completes the commit gives %d", rc)
	}
	under.took()
	under.fail = false
	if rc := syncFile(r.tls, r.file, 0); rc != sqlite3.SQLITE_OK {
		t.Errorf("sync gives %d", rc)
	}
	r.want("sync")
	for name, do := range map[string]func() int32{
		"sync": func() int32 { return syncFile(r.tls, r.file, 0) },
		"read": func() int32 { return read(r.tls, r.file, r.buf, 8, 0) },
	} {
		r = newRig(t)
		r.frame(32, false)
		under.fail = true
		if rc := do(); rc != sqlite3.SQLITE_IOERR_WRITE {
			t.Errorf("%s gives %d", name, rc)
		}
	}
}

// In the first sync of a log that it made, the layer below also syncs the folder.
func TestTheFirstSyncReachesTheLayerBelow(t *testing.T) {
	r := newRig(t)
	f, err := os.Create(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, _ := log(r.file)
	w.fd = int(f.Fd())
	for range 3 {
		if syncFile(r.tls, r.file, 0) != sqlite3.SQLITE_OK {
			t.Fatal("sync failed")
		}
	}
	r.want("sync") // the others are fdatasync
}

// SQLite ends a commit that changed a page which it had already written by going
// over its headers again, the one of the last frame at the end. Without FULL
// nothing follows.
func TestRewrittenChecksumsReachTheFile(t *testing.T) {
	r := newRig(t)
	r.frame(r.frame(32, false), true)
	under.took()
	for i, where := range []int64{32, 32 + 4120} {
		h := make([]byte, frameHeader)
		if h[3] = 1; i == 1 {
			h[7] = 9
		}
		read(r.tls, r.file, r.buf, 4120, where)
		r.write(h, where)
	}
	if w, _ := log(r.file); w.n != 0 {
		t.Errorf("%d bytes of the commit are still in memory", w.n)
	}
	// What begins anew, and what comes after, is gathered again.
	under.took()
	r.write(make([]byte, 32), 0)
	r.frame(32, true)
	r.want("write 4152 at 0")
}

// The log reads like one without this layer, whatever is written where.
func TestReadsSeeWrites(t *testing.T) {
	r := newRig(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	model := make([]byte, 600<<10)
	var where int64
	for range 3000 {
		switch rnd.IntN(10) {
		case 0:
			where = rnd.Int64N(int64(len(model)) / 2)
		case 1:
			n, from := rnd.Int32N(9000), rnd.Int64N(int64(len(model))/2)
			if read(r.tls, r.file, r.buf, n, from) != sqlite3.SQLITE_OK || !bytes.Equal(memory(r.buf, n), model[from:from+int64(n)]) {
				t.Fatalf("%d bytes at %d differ", n, from)
			}
		}
		b := make([]byte, []int{frameHeader, 4096, 32, 140_000}[rnd.IntN(40)*3/39])
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		if where+int64(len(b)) > int64(len(model)) {
			where = 0
		}
		if r.write(b, where) != sqlite3.SQLITE_OK {
			t.Fatal("a write failed")
		}
		copy(model[where:], b)
		where += int64(len(b))
	}
}

// SQLite itself, with each way to sync: what one connection commits another one
// without the layer reads at once, and the log holds it.
func TestSQLite(t *testing.T) {
	for _, synchronous := range []string{"FULL", "NORMAL", "OFF"} {
		t.Run(synchronous, func(t *testing.T) {
			layer, err := Register()
			if err != nil || layer != name {
				t.Fatal(layer, err)
			}
			path := filepath.Join(t.TempDir(), "x.db")
			w, other := connect(t, "file:"+path+"?vfs="+layer), connect(t, "file:"+path)
			w.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = " + synchronous + "; PRAGMA cache_size = 5; CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB)")
			for i := range 50 {
				w.exec(fmt.Sprintf("BEGIN; INSERT INTO t (v) VALUES (randomblob(%d)); UPDATE t SET v = randomblob(length(v)) WHERE k %% 7 = 0; COMMIT", 1+i*900))
				if got := other.count("SELECT count(*) FROM t"); got != int64(i+1) {
					t.Fatalf("after %d commits another connection sees %d", i+1, got)
				}
				if i%11 == 10 {
					w.exec("PRAGMA wal_checkpoint(RESTART)")
				}
				if i%13 == 12 {
					w.exec("BEGIN; DELETE FROM t; ROLLBACK")
				}
			}
			// A copy of both files is what a kill would leave.
			killed := filepath.Join(t.TempDir(), "killed.db")
			for _, suffix := range []string{"", "-wal"} {
				data, err := os.ReadFile(path + suffix)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(killed+suffix, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := connect(t, "file:"+killed).count("SELECT count(*) FROM t"); got != 50 {
				t.Errorf("the files hold %d rows of 50", got)
			}
			for _, c := range []*conn{w, other} {
				if got := c.count("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"); got != 1 {
					t.Error("the store is damaged")
				}
			}
		})
	}
}

type conn struct {
	t *testing.T
	c driver.Conn
}

func connect(t *testing.T, dsn string) *conn {
	t.Helper()
	connector, err := sqlite.NewConnector(dsn)
	if err != nil {
		t.Fatal(err)
	}
	c, err := connector.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return &conn{t, c}
}

func (c *conn) exec(sql string) {
	c.t.Helper()
	s, err := c.c.Prepare(sql)
	if err != nil {
		c.t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.(driver.StmtExecContext).ExecContext(context.Background(), nil); err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
}

func (c *conn) count(sql string) int64 {
	c.t.Helper()
	s, err := c.c.Prepare(sql)
	if err != nil {
		c.t.Fatal(err)
	}
	defer s.Close()
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer rows.Close()
	v := make([]driver.Value, 1)
	if err := rows.Next(v); err != nil && err != io.EOF {
		c.t.Fatal(err)
	}
	n, _ := v[0].(int64)
	return n
}
