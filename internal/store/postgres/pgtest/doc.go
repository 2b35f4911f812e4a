// Package pgtest starts PostgreSQL servers for tests: each one throw-away, in a folder
// of its own, reachable by a socket in that folder alone, and gone with the test, also
// if the test's process is killed. It waits for the disk as a real one does.
package pgtest
