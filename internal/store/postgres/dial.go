package postgres

import (
	"context"
	"net"
	"syscall"
	"time"
)

// A server whose machine is gone, or that is behind a way that forgot the connection, says
// nothing any more. Who waits for its answer, or listens, notices within this time: the
// standard is a quarter of an hour for what was sent, and longer for who only listens.
const (
	silentIdle     = 10 * time.Second
	silentInterval = 5 * time.Second
	silentCount    = 3
	silentMost     = silentIdle + silentCount*silentInterval
)

// dial connects to the server so that its silence is noticed.
func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silentIdle, Interval: silentInterval, Count: silentCount}}
	if network != "unix" {
		d.Control = func(_, _ string, c syscall.RawConn) error { return c.Control(unanswered) }
	}
	return d.DialContext(ctx, network, addr)
}
