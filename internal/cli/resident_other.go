//go:build !linux

package cli

// shedStartup does nothing here: see resident_linux.go.
func shedStartup() {}
