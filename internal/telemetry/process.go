package telemetry

import (
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
)

// ProcessGauges gives what the process holds, under the names that Prometheus'
// own clients use: goroutines, heap and, where /proc is there (on Linux), resident
// memory and open descriptors. What can not be read is left out.
func ProcessGauges() []Gauge {
	read := []metrics.Sample{{Name: "/sched/goroutines:goroutines"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"}}
	metrics.Read(read)
	var out []Gauge
	add := func(name, help string, v float64) { out = append(out, Gauge{Name: name, Help: help, Value: v}) }
	for i, g := range [...][2]string{{"go.goroutines", "Goroutines that exist."}, {"go.memstats_heap_alloc_bytes", "Bytes of heap objects."},
		{"go.memstats_sys_bytes", "Bytes that the Go runtime has from the system."}} {
		if read[i].Value.Kind() == metrics.KindUint64 {
			add(g[0], g[1], float64(read[i].Value.Uint64()))
		}
	}
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := strings.Fields(string(b)); len(fields) > 1 {
			if pages, err := strconv.ParseUint(fields[1], 10, 64); err == nil {
				add("process.resident_memory_bytes", "Bytes of memory that the process holds.", float64(pages)*float64(os.Getpagesize()))
			}
		}
	}
	if dir, err := os.Open("/proc/self/fd"); err == nil {
		names, err := dir.Readdirnames(-1)
		_ = dir.Close()
		if err == nil {
			add("process.open_fds", "Open file descriptors.", float64(len(names)-1)) // but for the folder itself
		}
	}
	return out
}
