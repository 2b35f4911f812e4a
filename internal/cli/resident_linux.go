package cli

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// shedStartup gives back the pages of the program's own file that only starting it
// needed: the initialisation of the packages that are linked in touches two thirds of
// the file, most of it for protocols that this process may never speak. They are clean
// pages of a file, so nothing is lost: what is used again is mapped again, from the page
// cache as a rule (man 2 madvise, MADV_DONTNEED on file mappings). A mapping with pages
// that differ from the file stays as it is, also if it is read-only by now: those of a
// position-independent executable have its relocated pointers, those of one that is
// debugged its breakpoints. It does what it can and says nothing: without it the process
// is some 20 MB larger and works as well.
func shedStartup() {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	for _, p := range cleanPages(f, exe) {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, p.from, p.size, syscall.MADV_DONTNEED)
	}
}

// pages is the place of a mapping.
type pages struct{ from, size uintptr }

// cleanPages reads /proc/self/smaps (man 5 proc_pid_smaps) and gives the mappings that
// may be given back and have no page of their own. One of which that is not said has.
func cleanPages(smaps io.Reader, exe string) (clean []pages) {
	var at pages
	var own bool
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		line := lines.Text()
		key, value, isField := strings.Cut(line, ":")
		switch {
		case !isField || strings.Contains(key, " "):
			at.from, at.size, own = ownPages(line, exe)
		case own && key == "Anonymous" && strings.TrimSpace(value) == "0 kB":
			clean = append(clean, at)
		}
	}
	return clean
}

// ownPages reads the first line of a mapping (man 5 proc_pid_maps) and tells the place of
// a mapping that may be given back: of the file exe, and not writable, because written
// pages of it exist nowhere else.
func ownPages(line, exe string) (from, size uintptr, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 6 || strings.Join(fields[5:], " ") != exe || len(fields[1]) != 4 || fields[1][1] == 'w' || fields[1][3] != 'p' {
		return 0, 0, false
	}
	a, b, _ := strings.Cut(fields[0], "-")
	start, err := strconv.ParseUint(a, 16, 64)
	if err != nil {
		return 0, 0, false
	}
	end, err := strconv.ParseUint(b, 16, 64)
	if err != nil || end <= start {
		return 0, 0, false
	}
	return uintptr(start), uintptr(end - start), true
}
