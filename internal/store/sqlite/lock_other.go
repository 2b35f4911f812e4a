//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package sqlite

import (
	"os"

	"agentd/fault"
)

func openLocked(string) (*os.File, error) {
	return nil, fault.New(fault.Unsupported, "the store cannot be locked on this system")
}

// unlock does nothing: who closes the file has let go of it.
func unlock(*os.File) {}
