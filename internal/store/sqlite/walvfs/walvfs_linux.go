package walvfs

import (
	"errors"
	"syscall"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// name is what the layer is registered under.
const name = "agentd-wal"

// frameHeader is the length of what stands before each page in the log, written
// in a call of its own. Its second big-endian number is not 0 in the last frame of
// a commit (https://www.sqlite.org/fileformat2.html#the_write_ahead_log).
const frameHeader = 24

// gather is how much is gathered at most. A longer commit leaves in parts.
const gather = 128 << 10

// vfs is SQLite's structure with our field behind it. It lies in memory of
// SQLite's, as everything here does: SQLite holds on to it by addresses that Go's
// collector does not know.
type vfs struct {
	sqlite3.Tsqlite3_vfs
	base uintptr // *sqlite3.Tsqlite3_vfs of the layer below
}

// file is the beginning of the memory that SQLite gives for an open file.
type file struct {
	methods uintptr // *sqlite3.Tsqlite3_io_methods; of a log: *wal
}

// wal is an open log: the functions that SQLite calls for it, and its state.
type wal struct {
	sqlite3.Tsqlite3_io_methods
	base   uintptr // *sqlite3.Tsqlite3_io_methods of the layer below
	buf    uintptr // gather bytes
	at     int64   // where in the file buf begins
	n      int32   // bytes in buf
	end    int64   // where the log has been written up to since it began anew
	synced bool    // the layer below has synced it once
	commit bool    // the header of the last frame of a commit was the last write
	fd     int     // for fdatasync; -1 if there is none
}

type (
	openFunc     = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	closeFunc    = func(tls *libc.TLS, file uintptr) int32
	transferFunc = func(tls *libc.TLS, file, buf uintptr, n int32, at int64) int32
	truncateFunc = func(tls *libc.TLS, file uintptr, size int64) int32
	sizeFunc     = func(tls *libc.TLS, file, out uintptr) int32
	syncFunc     = func(tls *libc.TLS, file uintptr, flags int32) int32
)

// Register makes the layer known to SQLite in this process and gives the name to
// open databases with. Calling it again, also at the same time, does no harm.
func Register() (string, error) {
	tls := libc.NewTLS()
	defer tls.Close()
	zName, err := libc.CString(name)
	if err != nil {
		return "", err
	}
	if sqlite3.Xsqlite3_vfs_find(tls, zName) != 0 {
		libc.Xfree(tls, zName)
		return name, nil
	}
	base := sqlite3.Xsqlite3_vfs_find(tls, 0)
	if base == 0 {
		return "", errors.New("SQLite has no file layer")
	}
	p := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(vfs{})))
	if p == 0 {
		return "", syscall.ENOMEM
	}
	v := at[vfs](p)
	v.Tsqlite3_vfs, v.base = *at[sqlite3.Tsqlite3_vfs](base), base
	v.FpNext, v.FzName = 0, zName
	v.FxOpen = address(openFile)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, p, 0); rc != sqlite3.SQLITE_OK {
		return "", errors.New("SQLite refused the file layer " + name)
	}
	return name, nil
}

// at is the T at an address outside of Go's heap.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// memory is the n bytes at an address outside of Go's heap.
func memory(p uintptr, n int32) []byte { return unsafe.Slice(at[byte](p), n) }

// address is what stands for a C function pointer to f, a function of a package,
// in the translation of SQLite to Go; function is the way back.
func address(f any) uintptr {
	type face struct{ kind, data uintptr }
	return (*face)(unsafe.Pointer(&f)).data
}

func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&p)) }

// openFile opens a file by the layer below and puts ours over it if it is a log.
func openFile(tls *libc.TLS, pv, zName, pf uintptr, flags int32, out uintptr) int32 {
	v := at[vfs](pv)
	rc := function[openFunc](at[sqlite3.Tsqlite3_vfs](v.base).FxOpen)(tls, v.base, zName, pf, flags, out)
	f := at[file](pf)
	if rc != sqlite3.SQLITE_OK || flags&sqlite3.SQLITE_OPEN_WAL == 0 || f.methods == 0 {
		return rc
	}
	p, buf := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(wal{}))), libc.Xmalloc(tls, gather)
	if p == 0 || buf == 0 {
		libc.Xfree(tls, p)
		libc.Xfree(tls, buf)
		return rc // the layer below does alone
	}
	w := at[wal](p)
	*w = wal{Tsqlite3_io_methods: *at[sqlite3.Tsqlite3_io_methods](f.methods), base: f.methods, buf: buf, fd: -1}
	w.FxClose, w.FxRead, w.FxWrite = address(closeFile), address(read), address(write)
	w.FxTruncate, w.FxFileSize, w.FxSync = address(truncate), address(size), address(syncFile)
	// SQLite's own descriptor is not to be had. Another one of the same file is as
	// good, and as nobody locks a log, closing it drops no lock.
	if fd, err := syscall.Open(libc.GoString(zName), syscall.O_RDWR|syscall.O_CLOEXEC, 0); err == nil {
		w.fd = fd
	}
	f.methods = p
	return rc
}

// log is the state of an open log, and the functions of the layer below.
func log(pf uintptr) (*wal, *sqlite3.Tsqlite3_io_methods) {
	w := at[wal](at[file](pf).methods)
	return w, at[sqlite3.Tsqlite3_io_methods](w.base)
}

// flush writes what was gathered. If that fails it is forgotten: SQLite gives up
// the commit, and what follows goes to the same place in the file.
func flush(tls *libc.TLS, pf uintptr) int32 {
	w, base := log(pf)
	n := w.n
	w.n = 0
	if n == 0 {
		return sqlite3.SQLITE_OK
	}
	return function[transferFunc](base.FxWrite)(tls, pf, w.buf, n, w.at)
}

func write(tls *libc.TLS, pf, buf uintptr, n int32, where int64) int32 {
	w, base := log(pf)
	if w.n > 0 && (where != w.at+int64(w.n) || n > gather-w.n) {
		if rc := flush(tls, pf); rc != sqlite3.SQLITE_OK {
			return rc
		}
	}
	if where == 0 {
		w.end = 0 // the header of the log: it begins anew
	}
	// Only what makes the log longer is gathered. SQLite also goes back over frames
	// that it has written, to correct their checksums; what comes last then may be
	// anything.
	if n > gather || where < w.end {
		w.end, w.commit = max(w.end, where+int64(n)), false
		return function[transferFunc](base.FxWrite)(tls, pf, buf, n, where)
	}
	w.end = where + int64(n)
	if w.n == 0 {
		w.at = where
	}
	b := memory(buf, n)
	copy(memory(w.buf, gather)[w.n:], b)
	w.n += n
	// Without FULL no sync follows a commit, but readers do.
	complete := w.commit
	w.commit = n == frameHeader && b[4]|b[5]|b[6]|b[7] != 0
	if complete {
		return flush(tls, pf)
	}
	return sqlite3.SQLITE_OK
}

func read(tls *libc.TLS, pf, buf uintptr, n int32, where int64) int32 {
	if rc := flush(tls, pf); rc != sqlite3.SQLITE_OK {
		return rc
	}
	_, base := log(pf)
	return function[transferFunc](base.FxRead)(tls, pf, buf, n, where)
}

func truncate(tls *libc.TLS, pf uintptr, n int64) int32 {
	if rc := flush(tls, pf); rc != sqlite3.SQLITE_OK {
		return rc
	}
	w, base := log(pf)
	w.end = min(w.end, n)
	return function[truncateFunc](base.FxTruncate)(tls, pf, n)
}

func size(tls *libc.TLS, pf, out uintptr) int32 {
	if rc := flush(tls, pf); rc != sqlite3.SQLITE_OK {
		return rc
	}
	_, base := log(pf)
	return function[sizeFunc](base.FxFileSize)(tls, pf, out)
}

func syncFile(tls *libc.TLS, pf uintptr, flags int32) int32 {
	if rc := flush(tls, pf); rc != sqlite3.SQLITE_OK {
		return rc
	}
	w, base := log(pf)
	if w.fd < 0 || !w.synced {
		// In the first sync of a log that it made, the layer below also syncs the
		// folder: without that a power cut may take the log itself.
		rc := function[syncFunc](base.FxSync)(tls, pf, flags)
		w.synced = rc == sqlite3.SQLITE_OK
		return rc
	}
	for {
		switch err := syscall.Fdatasync(w.fd); err {
		case nil:
			return sqlite3.SQLITE_OK
		case syscall.EINTR:
		default:
			return sqlite3.SQLITE_IOERR_FSYNC
		}
	}
}

func closeFile(tls *libc.TLS, pf uintptr) int32 {
	rc := flush(tls, pf)
	w, base := log(pf)
	if w.fd >= 0 {
		_ = syscall.Close(w.fd)
	}
	p, below := at[file](pf).methods, w.base
	libc.Xfree(tls, w.buf)
	at[file](pf).methods = below
	if e := function[closeFunc](base.FxClose)(tls, pf); rc == sqlite3.SQLITE_OK {
		rc = e
	}
	libc.Xfree(tls, p)
	return rc
}
