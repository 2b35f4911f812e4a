//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Listen restarts the server so that it also takes connections at an address of this
// machine, port 5432, from whoever reaches it: for tests that cut the way to it. It gives the URL of a schema that
// nobody has used, by that way.
func (c *Cluster) Listen(t testing.TB, host string) string {
	t.Helper()
	c.Kill(t)
	for name, text := range map[string]string{"postgresql.conf": "listen_addresses = '" + host + "'\n", "pg_hba.conf": "host all all all trust\n"} {
		f, err := os.OpenFile(filepath.Join(c.data(), name), os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c.Restart(t)
	return fmt.Sprintf("postgres://agentd@%s:5432/postgres?search_path=s%d", host, c.schemas.Add(1))
}
