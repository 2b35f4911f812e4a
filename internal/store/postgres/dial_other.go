//go:build !linux

package postgres

// unanswered is left to the system.
func unanswered(uintptr) {}
