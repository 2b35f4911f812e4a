//go:build !unix

package sqlite

func cpuTime() int64 { return 0 }
