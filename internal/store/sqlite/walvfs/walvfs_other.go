//go:build !linux

package walvfs

// Register does nothing on this system: "" stands for SQLite's default.
func Register() (name string, err error) { return "", nil }
