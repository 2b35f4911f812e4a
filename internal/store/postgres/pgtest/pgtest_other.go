//go:build !unix

package pgtest

import "testing"

// Cluster is a PostgreSQL server of a test.
type Cluster struct{}

// Start fails the test: PostgreSQL is started the Unix way.
func Start(t testing.TB, _ ...string) *Cluster {
	t.Helper()
	t.Fatal("tests of PostgreSQL need a Unix system")
	return nil
}

// Socket, URL and the others are there for the compiler.
func (c *Cluster) Socket() string     { return "" }
func (c *Cluster) URL(string) string  { return "" }
func (c *Cluster) NewURL() string     { return "" }
func (c *Cluster) Restart(testing.TB) {}
func (c *Cluster) Kill(testing.TB)    {}
func (c *Cluster) Log() string        { return "" }
