package mcp

import (
	"testing"
	"time"

	"agentd/fault"
)

// A line without an end is not waited for: the calls that are open fail at once,
// and the server is started again, so that later calls work.
func TestLinesWithoutEnd(t *testing.T) {
	for _, mode := range []string{"endless noise", "endless result", "result that stalls"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			cfg, _ := child(t, mode)
			cfg.Timeouts.Call = patience / 3
			// The program would take this long to end when it is asked to.
			tools, m := one(t, cfg, &Options{TerminateGrace: 2 * time.Second})
			_, err := tools["act"].Run(background(t), call(`{}`))
			wantKind(t, err, fault.Unavailable, "more than 10 MiB")
			r, err := tools["other"].Run(background(t), call(`{}`))
			if err != nil || textOf(r) != "did other" {
				t.Errorf("a later call: %q, %v", textOf(r), err)
			}
			if s := m.Status()[0]; s.Restarts != 1 {
				t.Errorf("%d restarts", s.Restarts)
			}
		})
	}
}
