package telemetry

import (
	"os"
	"runtime"
	"testing"
)

func TestProcessGauges(t *testing.T) {
	values := func() map[string]float64 {
		out := map[string]float64{}
		for _, g := range ProcessGauges() {
			if g.Help == "" {
				t.Errorf("%s has no help", g.Name)
			}
			out[prometheusName(g.Name)] = g.Value
		}
		return out
	}
	before := values()
	for _, name := range []string{"go_goroutines", "go_memstats_heap_alloc_bytes", "go_memstats_sys_bytes"} {
		if before[name] <= 0 {
			t.Errorf("%s is %v", name, before[name])
		}
	}
	if runtime.GOOS != "linux" {
		return
	}
	if rss := before["process_resident_memory_bytes"]; rss < 1<<20 || rss > 1<<40 {
		t.Errorf("%v bytes of memory", rss)
	}
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if after := values(); after["process_open_fds"] != before["process_open_fds"]+1 {
		t.Errorf("%v descriptors, and with one more %v", before["process_open_fds"], after["process_open_fds"])
	}
}
