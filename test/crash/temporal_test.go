//go:build temporal

package crash

import (
	"testing"
	"time"

	"agentd/test/proc"
)

// TestNodesOnTemporal is TestNodesOnPostgres with runs that Temporal distributes, and
// whose server is killed, too. make temporal runs it: it needs that server, which is a
// module of its own.
func TestNodesOnTemporal(t *testing.T) {
	s := proc.NewTemporal(t, "")
	nodes(t, func() {
		s.Kill()
		<-time.After(time.Second)
		s.Start()
	}, "--engine", s.URL())
}
