//go:build unix

package pgtest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Cluster is a PostgreSQL server of a test.
type Cluster struct {
	dir, bin string
	attr     *syscall.SysProcAttr
	schemas  atomic.Int64

	// the one that runs
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bytes.Buffer
}

// Start makes a cluster and starts it. The test fails if PostgreSQL is not installed.
// settings are added to its command line, each as name=value.
func Start(t testing.TB, settings ...string) *Cluster {
	t.Helper()
	c := &Cluster{bin: binaries(t)}
	var err error
	if c.dir, err = os.MkdirTemp("", "agentd-pg-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(c.dir) })
	if os.Getuid() == 0 {
		// PostgreSQL refuses to be root.
		c.attr = unprivileged(t, c.dir)
	}
	cmd := exec.Command(filepath.Join(c.bin, "initdb"), "-D", c.data(), "-U", "agentd", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	cmd.SysProcAttr, cmd.Dir = c.attr, c.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	conf := "listen_addresses = ''\nunix_socket_directories = '" + c.dir + "'\nmax_connections = 120\nshared_buffers = 32MB\nautovacuum_naptime = 5s\n"
	for _, s := range settings {
		conf += s + "\n"
	}
	f, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(conf); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Kill(t) })
	c.Restart(t)
	return c
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// Socket is where the server listens.
func (c *Cluster) Socket() string { return filepath.Join(c.dir, ".s.PGSQL.5432") }

// URL names a schema of the cluster's database.
func (c *Cluster) URL(schema string) string {
	q := url.Values{"host": {c.dir}, "search_path": {schema}}
	return "postgres://agentd@/postgres?" + q.Encode()
}

// NewURL is the URL of a schema that nobody has used.
func (c *Cluster) NewURL() string { return c.URL(fmt.Sprint("s", c.schemas.Add(1))) }

// Restart starts the server after Kill. It returns when the server takes connections,
// or would if it were not recovering.
func (c *Cluster) Restart(t testing.TB) {
	t.Helper()
	// The shell ends the server when this process is gone: its end of the pipe is closed.
	cmd := exec.Command("/bin/sh", "-c", `"$@" & p=$!; cat >/dev/null; kill -QUIT $p 2>/dev/null; wait $p`, "sh",
		filepath.Join(c.bin, "postgres"), "-D", c.data())
	cmd.SysProcAttr, cmd.Dir = c.attr, c.dir
	c.out = &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = c.out, c.out
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.cmd, c.stdin = cmd, stdin
	for until := time.Now().Add(time.Minute); ; {
		if conn, err := net.Dial("unix", c.Socket()); err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(until) {
			_ = stdin.Close()
			t.Fatalf("PostgreSQL does not start:\n%s", c.out)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// Kill ends the server at once (an immediate shutdown): what was not on the disk is
// lost, and the next start recovers. It does nothing if the server does not run.
func (c *Cluster) Kill(t testing.TB) {
	t.Helper()
	if c.cmd == nil {
		return
	}
	_ = c.stdin.Close()
	_ = c.cmd.Wait()
	c.cmd = nil
	// Its children end soon after it; the next server would not start beside them.
	_ = os.Remove(c.Socket())
}

// Log is what the server said since its last start. The server must have been killed.
func (c *Cluster) Log() string { return c.out.String() }

// binaries is the folder of initdb and postgres.
func binaries(t testing.TB) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	best := ""
	for _, p := range found { // the newest
		v := strings.Split(p, "/")[4]
		if n, err := strconv.Atoi(v); err == nil && (best == "" || n > version(best)) {
			best = filepath.Dir(p)
		}
	}
	if best != "" {
		return best
	}
	if p, err := exec.LookPath("initdb"); err == nil {
		if p, err = filepath.EvalSymlinks(p); err == nil {
			return filepath.Dir(p)
		}
	}
	t.Fatal("PostgreSQL is not installed: run scripts/tools.sh, or apt-get install postgresql")
	return ""
}

func version(dir string) int {
	n, _ := strconv.Atoi(strings.Split(dir, "/")[4])
	return n
}

// unprivileged gives dir to a user that is not root, for the server to run as.
func unprivileged(t testing.TB, dir string) *syscall.SysProcAttr {
	t.Helper()
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		t.Fatalf("a user to run PostgreSQL as: %v", err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err1 != nil || err2 != nil {
		t.Fatalf("user %s has no numbers: %s, %s", u.Username, u.Uid, u.Gid)
	}
	if err := os.Chown(dir, int(uid), int(gid)); err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
