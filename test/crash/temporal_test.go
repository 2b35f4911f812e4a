//go:build temporal

package crash

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestNodesOnTemporal is TestNodesOnPostgres with runs that Temporal distributes, and
// whose server is killed, too. make temporal runs it: it needs that server, which is a
// module of its own.
func TestNodesOnTemporal(t *testing.T) {
	binary, err := filepath.Abs("../../.cache/temporaldev")
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", binary, "./cmd/temporaldev")
	build.Dir = "../temporal"
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the Temporal development server can not be built: %v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	db := filepath.Join(t.TempDir(), "temporal.db")
	var cmd *exec.Cmd
	start := func() {
		t.Helper()
		cmd = exec.Command(binary, "-port", fmt.Sprint(port), "-db", db)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		ready := make(chan bool, 1)
		go func() {
			for sc := bufio.NewScanner(out); sc.Scan(); {
				if strings.HasPrefix(sc.Text(), "ready") {
					ready <- true
				}
			}
		}()
		select {
		case <-ready:
		case <-time.After(time.Minute):
			t.Fatal("the Temporal server does not start")
		}
	}
	stop := func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	start()
	t.Cleanup(func() { stop() })
	nodes(t, func() {
		stop()
		<-time.After(time.Second)
		start()
	}, "--engine", fmt.Sprintf("temporal://127.0.0.1:%d/default", port))
}
