package cli

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestOwnPagesAreOnlyThoseThatTheFileHasToo(t *testing.T) {
	const exe = "/usr/bin/agentd"
	for _, c := range []struct {
		line       string
		from, size uintptr
	}{
		{"00400000-01940000 r-xp 00000000 fe:00 10183232                           /usr/bin/agentd", 0x400000, 0x1540000},
		{"01940000-033a7000 r--p 01540000 fe:00 10183232   /usr/bin/agentd", 0x1940000, 0x1a67000},
		{"033a7000-03468000 rw-p 02fa7000 fe:00 10183232   /usr/bin/agentd", 0, 0},
		{"7f1c89802000-7f1c8980a000 rw-s 00000000 fe:00 11231770 /tmp/agentd.db-shm", 0, 0},
		{"01940000-033a7000 r--s 01540000 fe:00 10183232   /usr/bin/agentd", 0, 0},
		{"01940000-033a7000 r--p 01540000 fe:00 10183232   /usr/lib/other", 0, 0},
		{"c000000000-c000400000 rw-p 00000000 00:00 0", 0, 0},
		{"zz-033a7000 r--p 01540000 fe:00 10183232   /usr/bin/agentd", 0, 0},
		{"033a7000-01940000 r--p 01540000 fe:00 10183232   /usr/bin/agentd", 0, 0},
		{"", 0, 0},
	} {
		from, size, ok := ownPages(c.line, exe)
		if from != c.from || size != c.size || ok != (c.size > 0) {
			t.Errorf("%q: %x, %x, %v", c.line, from, size, ok)
		}
	}
}

func TestPagesThatDifferFromTheFileAreKept(t *testing.T) {
	const smaps = `00400000-01940000 r-xp 00000000 fe:00 10183232 /usr/bin/agentd
Rss:                 100 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me dw
01940000-01950000 r--p 01540000 fe:00 10183232 /usr/bin/agentd
Anonymous:             4 kB
01950000-01960000 r--p 01550000 fe:00 10183232 /usr/bin/agentd
Rss:                   4 kB
c000000000-c000400000 rw-p 00000000 00:00 0
Anonymous:             0 kB
`
	if got := fmt.Sprint(cleanPages(strings.NewReader(smaps), "/usr/bin/agentd")); got != fmt.Sprint([]pages{{0x400000, 0x1540000}}) {
		t.Error(got)
	}
}

// TestShedStartup has a process of its own: what other tests touch meanwhile would
// count otherwise.
func TestShedStartup(t *testing.T) {
	if os.Getenv("AGENTD_TEST_SHED") != "" {
		before := residentFile(t)
		shedStartup()
		after := residentFile(t)
		if after > before*3/4 {
			t.Errorf("%d kB of files were resident, and %d kB are", before, after)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestShedStartup$", "-test.count=1")
	cmd.Env = append(os.Environ(), "AGENTD_TEST_SHED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// What was written to a page exists nowhere else, also when it can no longer be written
// to: a position-independent executable (go build -buildmode=pie) has its relocated
// pointers in such pages.
func TestShedStartupKeepsWhatWasWritten(t *testing.T) {
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	page, err := syscall.Mmap(int(exe.Fd()), 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(page) }()
	copy(page, "relocated")
	if err := syscall.Mprotect(page, syscall.PROT_READ); err != nil {
		t.Fatal(err)
	}
	shedStartup()
	if got := string(page[:9]); got != "relocated" {
		t.Errorf("it is %q now", got)
	}
}

// residentFile is how many kB of mapped files are in memory (RssFile of proc_pid_status).
func residentFile(t *testing.T) int {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "RssFile:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb
}
