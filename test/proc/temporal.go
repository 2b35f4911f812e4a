//go:build unix

package proc

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Temporal is the development server of test/temporal. It keeps what it has over Kill
// and Start.
type Temporal struct {
	t        testing.TB
	bin      string
	host, db string
	port     int
	p        *Process
}

// BuildTemporal builds the development server, which is a module of its own, and gives
// its path. The first time that takes a quarter of an hour of one processor.
func BuildTemporal(t testing.TB) string {
	t.Helper()
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	bin := filepath.Join(root, ".cache", "temporaldev")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/temporaldev")
	cmd.Dir = filepath.Join(root, "test", "temporal")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the Temporal development server can not be built: %v\n%s", err, out)
	}
	return bin
}

// NewTemporal starts a server on an address of this machine; host "" is 127.0.0.1.
func NewTemporal(t testing.TB, host string) *Temporal {
	t.Helper()
	if host == "" {
		host = "127.0.0.1"
	}
	s := &Temporal{t: t, bin: BuildTemporal(t), host: host, port: FreePort(t, host), db: filepath.Join(t.TempDir(), "temporal.db")}
	s.Start()
	return s
}

// Start starts it after Kill and waits until it takes requests.
func (s *Temporal) Start() {
	s.t.Helper()
	s.p = Start(s.t, Command{Path: s.bin, Args: []string{"-host", s.host, "-port", strconv.Itoa(s.port), "-db", s.db}, Ready: regexp.MustCompile(`^ready`)})
	s.p.Up()
}

// Kill is kill -9.
func (s *Temporal) Kill() { s.p.Kill() }

// URL is what `agentd --engine` takes.
func (s *Temporal) URL() string {
	return "temporal://" + net.JoinHostPort(s.host, strconv.Itoa(s.port)) + "/default"
}

// FreePort gives a port of an address that nobody listened on a moment ago.
func FreePort(t testing.TB, host string) int {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
