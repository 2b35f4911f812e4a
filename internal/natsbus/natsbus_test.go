package natsbus

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"agentd/fault"
	"agentd/internal/engine/bustest"
)

func open(t *testing.T, o Options) *Bus {
	t.Helper()
	b, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// Nodes with a server each, which find the others by the first one.
func TestEmbedded(t *testing.T) {
	first := open(t, Options{Name: "first", Listen: "127.0.0.1:0", Secret: "s3cret"})
	bustest.Suite{Open: func(t *testing.T) bustest.Bus {
		return open(t, Options{Name: t.Name(), Listen: "127.0.0.1:0", Secret: "s3cret", Routes: []string{first.Addr()}})
	}}.Run(t)
}

// Servers of one's own, which end and come back.
func TestServers(t *testing.T) {
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, Authorization: "t0ken"}
	var s *server.Server
	start := func() {
		var err error
		if s, err = server.NewServer(o); err != nil {
			t.Fatal(err)
		}
		s.Start()
		if !s.ReadyForConnections(30 * time.Second) {
			t.Fatal("the server does not start")
		}
		o.Port = s.Addr().(*net.TCPAddr).Port
	}
	start()
	t.Cleanup(func() { s.Shutdown() })
	bustest.Suite{
		Open: func(t *testing.T) bustest.Bus {
			return open(t, Options{Name: "x", URLs: []string{s.ClientURL()}, Secret: "t0ken", Subject: t.Name()})
		},
		Break: func(t *testing.T) {
			s.Shutdown()
			s.WaitForShutdown()
			start()
		},
	}.Run(t)
}

// Who does not know the secret hears nothing.
func TestStrangers(t *testing.T) {
	first := open(t, Options{Name: "first", Listen: "127.0.0.1:0", Secret: "s3cret"})
	stranger := open(t, Options{Name: "stranger", Listen: "127.0.0.1:0", Secret: "other", Routes: []string{first.Addr()}})
	friend := open(t, Options{Name: "friend", Listen: "127.0.0.1:0", Secret: "s3cret", Routes: []string{first.Addr()}})
	heard, strange := make(chan struct{}, 1), make(chan struct{}, 1)
	ring := func(c chan struct{}) func([]byte) {
		return func([]byte) {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
	defer friend.Subscribe(ring(heard))()
	defer stranger.Subscribe(ring(strange))()
	late := time.After(30 * time.Second)
	for n := 0; n < 20; {
		first.Publish([]byte("x"))
		select {
		case <-heard:
			n++
		case <-time.After(20 * time.Millisecond):
		case <-late:
			t.Fatal("a friend hears nothing")
		}
	}
	select {
	case <-strange:
		t.Error("a stranger listens")
	default:
	}
}

func TestWhatIsRefused(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		o     Options
		field string
	}{
		{Options{Listen: "0.0.0.0:0"}, "cluster.nats.listen"},
		{Options{Listen: "agents:0"}, "cluster.nats.listen"},
		{Options{Listen: "nonsense"}, "cluster.nats.listen"},
		{Options{Listen: taken.Addr().String()}, "cluster.nats.listen"},
		{Options{Listen: "127.0.0.1:0", Routes: []string{"nats://x"}}, "cluster.nats.routes"},
		{Options{URLs: []string{"nats://127.0.0.1:1"}, Credentials: "/none"}, "cluster.nats"},
	} {
		b, err := Open(c.o)
		if err == nil {
			_ = b.Close()
			t.Errorf("%+v is taken", c.o)
			continue
		}
		if f, ok := err.(*fault.Error); !ok || !strings.HasPrefix(f.Field, c.field) || f.Hint == "" {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
}
