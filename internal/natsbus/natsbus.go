// Package natsbus is engine.Bus over NATS: by a server inside each node, which are
// connected to each other, or by servers of your own. It uses core NATS, which keeps
// nothing: what is said while a connection is broken is lost, as a bus may.
package natsbus

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"agentd/fault"
)

// Options configure a bus.
type Options struct {
	// Name is what the node is called.
	Name string
	// Subject is what messages are sent under. All nodes of a store have the same, and
	// those of different stores different ones.
	Subject string
	// URLs are servers to use; none: one in this process is.
	URLs []string
	// Listen is where the server in this process takes connections of other nodes',
	// host:port; port 0 is any. Routes are the addresses of such, host:port. It knows
	// about the others as soon as it is connected with one of them.
	Listen string
	Routes []string
	// Secret is what nodes show each other, or the token for URLs. It must be there if
	// Listen is not a loopback address.
	Secret string
	// Credentials is a file with a NATS user's credentials, for URLs.
	Credentials string
	// TLS, if not nil, is how servers are spoken to; for routes it has the node's own
	// certificate and whom to trust, and both sides show theirs.
	TLS *tls.Config
}

const (
	// queue is how many messages wait to be sent, and pending how many bytes of what
	// was received wait to be taken; more is lost.
	queue   = 1024
	pending = 32 << 20
	// reconnect is the pause between attempts.
	reconnect = 250 * time.Millisecond
	user      = "agentd"
)

// Bus implements engine.Bus.
type Bus struct {
	srv     *server.Server // nil with servers of your own
	nc      *nats.Conn
	subject string
	out     chan []byte
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// Open connects to the servers, or starts one. Servers that can not be reached are
// tried until they can be. Errors are *fault.Error.
func Open(o Options) (*Bus, error) {
	if o.Subject == "" {
		o.Subject = "agentd"
	}
	b := &Bus{subject: o.Subject, out: make(chan []byte, queue)}
	opts := []nats.Option{nats.Name(o.Name), nats.MaxReconnects(-1), nats.ReconnectWait(reconnect), nats.RetryOnFailedConnect(true),
		nats.ReconnectBufSize(-1), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})}
	urls := ""
	if len(o.URLs) == 0 {
		var err error
		// The server takes routes only if it takes clients, too: on loopback, and with a
		// key that nobody else has.
		key := rand.Text()
		if b.srv, err = serve(&o, key); err != nil {
			return nil, err
		}
		opts = append(opts, nats.InProcessServer(b.srv), nats.Token(key))
	} else {
		for _, u := range o.URLs {
			urls += "," + u
		}
		urls = urls[1:]
		if o.Secret != "" {
			opts = append(opts, nats.Token(o.Secret))
		}
		if o.Credentials != "" {
			opts = append(opts, nats.UserCredentials(o.Credentials))
		}
		if o.TLS != nil {
			opts = append(opts, nats.Secure(o.TLS))
		}
	}
	var err error
	if b.nc, err = nats.Connect(urls, opts...); err != nil {
		b.end()
		return nil, &fault.Error{Op: "natsbus.Open", Kind: fault.Invalid, Field: "cluster.nats", Err: fmt.Errorf("NATS can not be used: %w", err),
			Hint: "cluster.nats.urls must be addresses such as nats://nats.example.com:4222, and cluster.nats.credentials_file a file that can be read."}
	}
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.done.Go(func() {
		for {
			select {
			case m := <-b.out:
				_ = b.nc.Publish(b.subject, m) // lost, then
			case <-ctx.Done():
				return
			}
		}
	})
	return b, nil
}

// serve starts the server in this process.
func serve(o *Options, key string) (*server.Server, error) {
	wrong := func(field string, err error, hint string) (*server.Server, error) {
		return nil, &fault.Error{Op: "natsbus.Open", Kind: fault.Invalid, Field: "cluster.nats." + field, Err: err, Hint: hint}
	}
	const form = "It is HOST:PORT, such as 10.0.0.5:7422."
	host, port, err := address(o.Listen)
	if err != nil {
		return wrong("listen", err, form)
	}
	if ip := net.ParseIP(host); o.Secret == "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return wrong("listen", fmt.Errorf("whoever reaches %s could read what agents say, and nothing asks who it is", o.Listen),
			"Name an environment variable with a secret that all nodes share in cluster.nats.secret_env, or listen on 127.0.0.1.")
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	c := server.ClusterOpts{Name: "agentd", Host: host, Port: port, TLSTimeout: 5, AuthTimeout: 5}
	if o.TLS != nil {
		if len(o.TLS.Certificates) == 0 || o.TLS.RootCAs == nil {
			return wrong("cert_file", errors.New("nodes show each other certificates, and this one has none or does not know whom to trust"),
				"Set cluster.nats.cert_file, key_file and ca_file, or none of them.")
		}
		c.TLSConfig = o.TLS.Clone()
		c.TLSConfig.ClientAuth, c.TLSConfig.ClientCAs = tls.RequireAndVerifyClientCert, o.TLS.RootCAs
	}
	who := url.User(user)
	if o.Secret != "" {
		c.Username, c.Password = user, o.Secret
		who = url.UserPassword(user, o.Secret)
	}
	so := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, Authorization: key, NoSigs: true, NoLog: true, NoSystemAccount: true, Cluster: c}
	for _, r := range o.Routes {
		if _, _, err := address(r); err != nil {
			return wrong("routes", err, form)
		}
		so.Routes = append(so.Routes, &url.URL{Scheme: "nats-route", User: who, Host: r})
	}
	s, err := server.NewServer(so)
	if err != nil {
		return wrong("listen", err, "See the documentation of cluster.nats.")
	}
	// The server ends the process where it can not listen.
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort(host, strconv.Itoa(max(port, 0))))
	if err != nil {
		return wrong("listen", err, "Another process has the port, or the address is not this machine's.")
	}
	_ = l.Close()
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		s.Shutdown()
		return wrong("listen", errors.New("the NATS server in this process did not start"), form)
	}
	return s, nil
}

func address(s string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(p, 10, 16)
	return host, int(n), err
}

// Addr is where the server in this process takes connections of other nodes', "" if
// there is none.
func (b *Bus) Addr() string {
	if b.srv == nil || b.srv.ClusterAddr() == nil {
		return ""
	}
	return b.srv.ClusterAddr().String()
}

// Publish implements engine.Bus. A message for which there is no room is lost.
func (b *Bus) Publish(message []byte) {
	select {
	case b.out <- message:
	default:
	}
}

// Subscribe implements engine.Bus.
func (b *Bus) Subscribe(f func(message []byte)) (stop func()) {
	s, err := b.nc.Subscribe(b.subject, func(m *nats.Msg) { f(m.Data) })
	if err != nil {
		return func() {} // it is closed
	}
	_ = s.SetPendingLimits(-1, pending)
	return func() { _ = s.Unsubscribe() }
}

// Close ends the bus. What waits to be sent is lost.
func (b *Bus) Close() error {
	b.stop()
	b.done.Wait()
	b.end()
	return nil
}

func (b *Bus) end() {
	if b.nc != nil {
		b.nc.Close()
	}
	if b.srv != nil {
		b.srv.Shutdown()
		b.srv.WaitForShutdown()
	}
}
