//go:build unix

package mcp

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestWholeGroupIsEnded(t *testing.T) {
	cfg, file := child(t, "stubborn")
	_, m := one(t, cfg, nil)
	pids := strings.Fields(said(file))
	if len(pids) != 2 {
		t.Fatalf("pids %q", pids)
	}
	alive := func(pid string) bool {
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		// A killed orphan may stay a zombie where nobody reaps it: that is dead too.
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n))
		if err == nil {
			_, after, _ := strings.Cut(string(stat), ") ")
			return !strings.HasPrefix(after, "Z")
		}
		return syscall.Kill(n, 0) == nil
	}
	for _, pid := range pids {
		if !alive(pid) {
			t.Fatalf("%s does not run: the test tests nothing", pid)
		}
	}
	began := time.Now()
	m.Close()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("closing took %s", took)
	}
	eventually(t, "the server and its child are gone", func() bool { return !alive(pids[0]) && !alive(pids[1]) })
	_, problems := m.Tools(background(t), m.Names())
	if len(problems) != 1 {
		t.Errorf("a closed manager: %v", problems)
	}
}
