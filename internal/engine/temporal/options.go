package temporal

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"agentd/fault"
)

// Options say where Temporal is and how runs are driven with it. Address is required.
type Options struct {
	// Address is temporal://host:port/namespace; the port is 7233 and the namespace
	// "default" if it does not say.
	Address string
	// Prefix begins the names of task queues; empty means "agentd". Installations that
	// share a namespace but no store must differ in it.
	Prefix string
	// TLS is for servers that want it, or nil; APIKey is that of Temporal Cloud, which
	// implies TLS. Neither is ever logged.
	TLS    *tls.Config
	APIKey string
	// Name is for people who look at Temporal: which machine and process this is.
	Name string
	// Heartbeat is how long a node may be silent before its runs are driven elsewhere;
	// 0 means three seconds. Throttle is how often it is heard of at the most; 0 means
	// two seconds. Each run that is driven costs a request in that time.
	Heartbeat, Throttle time.Duration
	// Runs and Children are how many runs, and how many child runs, one node drives at
	// the same time; 0 means 1024 and 16 times Runs. A parent waits for its children
	// while it has its place, so Children must not be small.
	Runs, Children int
	// Drain is how long drives may take to hand over when a node stops; 0 means
	// thirty-five seconds.
	Drain time.Duration
	// Cached is how many workflows the process keeps in memory between two tasks of theirs;
	// 0 means 512. It is one number for all executors of a process (the SDK has it so), and
	// what it costs to be small is that histories of some dozen events are read again.
	Cached int
	// Sweep is how often a node looks in the store for runs of which Temporal was not
	// told; 0 means ten seconds.
	Sweep time.Duration
	// Log gets what operators must know; nil discards.
	Log *slog.Logger
}

func (o *Options) defaults() {
	if o.Prefix == "" {
		o.Prefix = "agentd"
	}
	for _, d := range []struct {
		v *time.Duration
		d time.Duration
	}{{&o.Heartbeat, 3 * time.Second}, {&o.Throttle, 2 * time.Second}, {&o.Drain, 35 * time.Second}, {&o.Sweep, 10 * time.Second}} {
		if *d.v <= 0 {
			*d.v = d.d
		}
	}
	if o.Runs <= 0 {
		o.Runs = 1024
	}
	if o.Children <= 0 {
		o.Children = 16 * o.Runs
	}
	if o.Cached <= 0 {
		o.Cached = 512
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// Address gives host:port and namespace of temporal://host:port/namespace. The error is
// a *fault.Error that does not repeat what may be a secret.
func Address(s string) (hostPort, namespace string, err error) {
	wrong := func(what string) (string, string, error) {
		return "", "", &fault.Error{Op: "temporal.Address", Kind: fault.Invalid, Field: "engine", Err: errors.New("the address of Temporal " + what),
			Hint: "Write temporal://host:port/namespace, such as temporal://127.0.0.1:7233/default."}
	}
	u, err := url.Parse(s)
	if err != nil {
		return wrong("can not be read")
	}
	ns := strings.Trim(u.Path, "/")
	switch {
	case u.Scheme != "temporal":
		return wrong("does not begin with temporal://")
	case u.User != nil:
		return wrong("has a user: keys belong into cluster.temporal.api_key_env")
	case u.Hostname() == "":
		return wrong("has no host")
	case u.RawQuery != "" || u.Fragment != "" || strings.Contains(ns, "/"):
		return wrong("has more than host, port and namespace")
	}
	port := u.Port()
	if port == "" {
		port = "7233"
	}
	if ns == "" {
		ns = "default"
	}
	host := u.Hostname()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + port, ns, nil
}

// dial makes a client, which connects when it is needed.
func (o *Options) dial() (client.Client, error) {
	hostPort, namespace, err := Address(o.Address)
	if err != nil {
		return nil, err
	}
	opts := client.Options{HostPort: hostPort, Namespace: namespace, Identity: o.Name, ConnectionOptions: client.ConnectionOptions{TLS: o.TLS},
		Logger: sdklog.NewStructuredLogger(slog.New(quiet{o.Log.Handler()}))}
	if o.APIKey != "" {
		opts.Credentials = client.NewAPIKeyStaticCredentials(o.APIKey)
	}
	c, err := client.NewLazyClient(opts)
	if err != nil {
		return nil, &fault.Error{Op: "temporal.Open", Kind: fault.Invalid, Err: fmt.Errorf("the Temporal server at %s: %w", hostPort, err)}
	}
	return c, nil
}

// quiet passes on the errors of the SDK: its warnings come with each poll while Temporal is
// away, which the executor says once.
type quiet struct{ slog.Handler }

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelError && q.Handler.Enabled(ctx, l)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
