package cli

import (
	"strings"
	"testing"

	"agentd/internal/store/postgres/pgtest"
)

// Everything that takes a data folder takes a database, and what is in a folder can be
// moved there.
func TestDatabase(t *testing.T) {
	b := newBench(t)
	url := pgtest.Start(t).NewURL()
	quiet := func(r *result) {
		t.Helper()
		if strings.Contains(r.out+r.err, "secret") {
			t.Errorf("%v shows a password:\n%s%s", r.args, r.out, r.err)
		}
	}
	b.agent("ask", "Paint it").exits(3)
	i := b.waiting()[0]
	b.run("store", "copy", b.data, url).exits(0).says("runs", "1 rows", "nothing is wrong", "1 run under way")
	b.run("store", "copy", b.data, url).exits(1).complains("not empty")
	b.run("store", "copy", b.data).exits(2)
	b.run("doctor", "--store", url).exits(0).says("1 session", "nothing is wrong")
	b.run("interrupts", "answer", i.ID, "--answer", "blue", "--store", url, "--configs", b.configs).exits(0)
	b.run("runs", "show", i.RunID, "--store", url, "--configs", b.configs).exits(0).says("completed")
	// The folder is as it was.
	if got := b.waiting(); len(got) != 1 || got[0].ID != i.ID {
		t.Errorf("%+v", got)
	}
	t.Setenv("AGENTD_STORE", strings.Replace(url, "agentd@", "agentd:secret@", 1))
	quiet(b.run("doctor").exits(0).says("nothing is wrong"))
	quiet(b.run("doctor", "--store", "postgres://me:secret@h/db").exits(2).complains("has a password in it", "PGPASSWORD"))
	quiet(b.run("store", "copy", b.data, "postgres://me:secret@h/db").exits(2).complains("has a password in it"))
	b.run("doctor", "--store", "mysql://h/db").exits(2).complains("not the URL of a PostgreSQL database")
	b.run("doctor", "--store", url, "--data", b.data).exits(2).complains("not both")
}
