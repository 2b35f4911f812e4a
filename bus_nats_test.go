//go:build nats

package agentd_test

import (
	"fmt"
	"net"
	"testing"
)

// TestChatByNATS: nodes whose NATS servers are connected hear each other's words.
func TestChatByNATS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr()
	_ = l.Close()
	t.Setenv("NATS_SECRET", "s3cret")
	// Nobody hears of the words by looking into the store.
	const form = "cluster: {bus: nats, poll_interval: 1m, nats: {secret_env: NATS_SECRET, listen: '%s', routes: %s}}"
	chatElsewhere(t, fmt.Sprintf(form, addr, "[]"), fmt.Sprintf(form, "127.0.0.1:0", fmt.Sprintf("['%s']", addr)))
}
