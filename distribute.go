package agentd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/engine/temporal"
	"agentd/internal/profile"
)

// distributor has runs driven where Temporal says. A nil one does nothing.
type distributor struct {
	x      *temporal.Executor
	worker bool
	ending context.CancelFunc
	wg     sync.WaitGroup
}

// distribute has an engine's runs distributed as the configuration says. It is nil
// where every worker takes what there is, and where nobody shares the store.
func distribute(cfg *Config, conf *profile.Config, cluster *engine.Cluster) (*distributor, error) {
	c := &conf.Settings.Cluster
	name := cfg.Engine
	if name == "" {
		name = c.Engine
	}
	if name == "" || name == "store" {
		return nil, nil
	}
	if _, _, err := temporal.Address(name); err != nil {
		return nil, err
	}
	if cluster == nil && !cfg.ReadOnly && cfg.Engine != "" {
		return nil, &fault.Error{Op: "agentd.Open", Kind: fault.Invalid, Field: "engine", Err: errors.New("with Temporal, several nodes share a store, and this one has one process alone"),
			Hint: "Name a PostgreSQL database as the store (--store postgres://…), or leave the engine out."}
	}
	if cluster == nil || cluster.Named {
		return nil, nil // a program that comes and goes drives what it names itself
	}
	t := &c.Temporal
	o := temporal.Options{Address: name, Prefix: t.QueuePrefix, Name: cluster.Name, Heartbeat: t.Heartbeat.Std(), Throttle: t.HeartbeatThrottle.Std(),
		Runs: conf.Settings.Limits.MaxConcurrentRuns, Children: t.MaxConcurrentChildren, Cached: t.MaxCachedWorkflows, Drain: c.DrainTimeout.Std() + 5*time.Second, Sweep: t.SweepInterval.Std(), Log: cfg.Log}
	if o.Throttle >= o.Heartbeat {
		return nil, &fault.Error{Op: "agentd.Open", Kind: fault.Invalid, Field: "cluster.temporal.heartbeat_throttle",
			Err:  fmt.Errorf("a run would be heard of every %s and given up after %s", o.Throttle, o.Heartbeat),
			Hint: "cluster.temporal.heartbeat_throttle must be less than cluster.temporal.heartbeat, better half of it."}
	}
	var err error
	if o.TLS, err = temporalTLS(t); err != nil {
		return nil, err
	}
	if t.APIKeyEnv != "" {
		env := cfg.Env
		if env == nil {
			env = os.LookupEnv
		}
		if o.APIKey, _ = env(t.APIKeyEnv); o.APIKey == "" {
			return nil, &fault.Error{Op: "agentd.Open", Kind: fault.Invalid, Field: "cluster.temporal.api_key_env", Err: fmt.Errorf("the environment variable %s is not set", t.APIKeyEnv),
				Hint: "Put the API key of Temporal Cloud into it, or leave cluster.temporal.api_key_env out."}
		}
	}
	x, err := temporal.Open(o)
	if err != nil {
		return nil, err
	}
	cluster.Executor = x
	return &distributor{x: x, worker: cluster.Worker}, nil
}

// temporalTLS is how the server is spoken to; nil is without TLS.
func temporalTLS(t *profile.Temporal) (*tls.Config, error) {
	return tlsOf("cluster.temporal.", t.TLS, t.CAFile, t.CertFile, t.KeyFile, t.ServerName)
}

// tlsOf is how servers are spoken to whose settings are under a prefix; nil is without
// TLS.
func tlsOf(prefix string, on bool, caFile, certFile, keyFile, name string) (*tls.Config, error) {
	if !on && caFile == "" && certFile == "" && keyFile == "" && name == "" {
		return nil, nil
	}
	wrong := func(field string, err error) (*tls.Config, error) {
		return nil, &fault.Error{Op: "agentd.Open", Kind: fault.Invalid, Field: prefix + field, Err: err, Hint: "The file must be readable and in PEM form."}
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return wrong("ca_file", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return wrong("ca_file", fmt.Errorf("%s has no certificate in it", caFile))
		}
	}
	if certFile != "" || keyFile != "" {
		cert, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return wrong("cert_file", err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}

// start has runs driven here, if this node is a worker, and looks for what Temporal
// was not told.
func (d *distributor) start(e *engine.Engine) {
	if d == nil {
		return
	}
	ctx, ending := context.WithCancel(context.Background())
	d.ending = ending
	if d.worker {
		d.x.Work(e)
	}
	d.wg.Go(func() { d.x.Sweep(ctx, e) })
}

// stop takes no more runs and hands over what is driven here.
func (d *distributor) stop() {
	if d != nil {
		d.x.Stop()
	}
}

func (d *distributor) close() error {
	if d == nil {
		return nil
	}
	if d.ending != nil {
		d.ending()
	}
	err := d.x.Close()
	d.wg.Wait()
	return err
}
