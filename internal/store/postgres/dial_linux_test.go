package postgres

import (
	"net"
	"syscall"
	"testing"
)

// A server that falls silent is noticed within half a minute, also by who only listens.
func TestASilentServerIsNoticed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tg, err := parse("postgres://u@"+l.Addr().String()+"/d", &Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := tg.pool.ConnConfig.DialFunc(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	if err := raw.Control(func(fd uintptr) {
		for name, opt := range map[string]int{"idle": syscall.TCP_KEEPIDLE, "interval": syscall.TCP_KEEPINTVL, "count": syscall.TCP_KEEPCNT, "unanswered": tcpUserTimeout} {
			got[name], _ = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, opt)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if got["idle"]+got["interval"]*got["count"] > 30 || got["unanswered"] == 0 || got["unanswered"] > 30_000 {
		t.Errorf("%v", got)
	}
}
