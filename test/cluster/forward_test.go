//go:build unix

package cluster

import (
	"io"
	"net"
	"testing"
)

// forward takes connections at an address of this machine and carries them on, and
// gives where it listens.
func forward(t *testing.T, host, to string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				s, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer s.Close()
				go func() {
					_, _ = io.Copy(s, c) // the end of either is the end of both
					s.Close()
				}()
				_, _ = io.Copy(c, s)
			}()
		}
	}()
	return l.Addr().String()
}
