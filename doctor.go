package agentd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/store"
	"agentd/internal/store/postgres"
	"agentd/internal/store/sqlite"
)

// Findings of a check of a store.
type (
	// Finding is something that is wrong with a store.
	Finding = store.Finding
	// CheckReport is what a check found, and how much there was to look at.
	CheckReport = store.Report
)

// CheckStore looks at everything in the store at a data folder, or at the URL of a
// PostgreSQL database. Without repair it
// changes nothing and works beside a server; with it the store must not be in use,
// and what is safe is repaired: nothing that holds what somebody said is deleted.
// An error says that the store could not be checked.
func CheckStore(ctx context.Context, data string, repair bool) (_ *CheckReport, err error) {
	if postgres.Is(data) {
		return checkDatabase(ctx, data, repair)
	}
	path := storePath(data)
	if path == ":memory:" {
		return nil, &fault.Error{Op: "agentd.CheckStore", Kind: fault.Invalid, Field: "data", Err: errors.New("a store in memory can not be checked"), Hint: "Name a data folder."}
	}
	if _, err := os.Stat(path); err != nil {
		return nil, &fault.Error{Op: "agentd.CheckStore", Kind: fault.NotFound, Err: fmt.Errorf("there is no store: %w", err),
			Hint: "Name the data folder with --data; a store is created by the first run or server."}
	}
	st, err := sqlite.Open(path, &sqlite.Options{ReadOnly: !repair})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	var c store.Checker = st
	r, err := c.Check(ctx, store.CheckOptions{Repair: repair, State: engine.Examine, Now: time.Now().UnixMilli()})
	if err == nil && runtime.GOOS != "windows" { // whose permissions are not these
		r.Findings = append(r.Findings, permissions(path, repair)...)
	}
	return r, err
}

// permissions finds files of a store that other users of the machine can read or
// write, such as those of a copy that was put back.
func permissions(path string, repair bool) (out []store.Finding) {
	const others = 0o077
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if err != nil {
			continue // it comes and goes
		}
		reached := info.Mode().Perm() & others
		for _, who := range []os.FileMode{0o070, 0o007} {
			if folder.Mode().Perm()&who&0o011 == 0 {
				reached &^= who // they can not enter the folder
			}
		}
		if reached == 0 {
			continue
		}
		f := store.Finding{Check: "permissions", Severity: store.SeverityWarning, Where: name, Repair: "make it its owner's alone (mode 0600)",
			What: fmt.Sprintf("other users of this machine reach it (mode %04o): what every tenant said is in it", info.Mode().Perm())}
		if repair {
			if err := os.Chmod(name, 0o600); err != nil {
				f.Repair, f.Advice = "", "It can not be changed: "+err.Error()
			} else {
				f.Repaired = true
			}
		}
		out = append(out, f)
	}
	return out
}

// checkDatabase is CheckStore for PostgreSQL. To repair it keeps everybody else out.
func checkDatabase(ctx context.Context, url string, repair bool) (_ *CheckReport, err error) {
	st, err := postgres.Open(ctx, url, &postgres.Options{ReadOnly: !repair, Exclusive: repair})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	return st.Check(ctx, store.CheckOptions{Repair: repair, State: engine.Examine, Now: time.Now().UnixMilli()})
}
