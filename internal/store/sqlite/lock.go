package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"agentd/fault"
)

// lockFile is held by the one process that writes to a store. The system lets
// go of it when the process ends, however it ends. The file stays: to delete
// it would let two processes lock two files of the same name.
type lockFile struct{ f *os.File }

var errLocked = errors.New("locked")

func takeLock(path string) (*lockFile, error) {
	f, err := openLocked(path)
	if errors.Is(err, errLocked) {
		who := "another process"
		if pid := holder(path); pid != "" {
			who = "process " + pid
		}
		return nil, &fault.Error{Op: "sqlite.Open", Kind: fault.Conflict,
			Err:  fmt.Errorf("%s is in use by %s", strings.TrimSuffix(path, ".lock"), who),
			Hint: "stop that process, talk to it over HTTP (--server), or choose another data folder (--data)"}
	}
	if err != nil {
		return nil, err
	}
	// The number of the process is for people; a failure to write it is none
	// of the store.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &lockFile{f}, nil
}

// holder is the process that wrote the lock file, "" if it is not known.
func holder(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return ""
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid <= 0 {
		return ""
	}
	return strconv.Itoa(pid)
}

func (l *lockFile) release() {
	if l != nil {
		unlock(l.f)
		_ = l.f.Close() // lets go of the lock where unlock does not
	}
}
