package agentd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/profile"
	"agentd/internal/server"
	"agentd/internal/store"
	"agentd/internal/store/postgres"
	"agentd/internal/uptime"
)

// clusterOf makes a runtime one of those that share a PostgreSQL store. It is nil for
// an embedded store, and for who only looks. close ends the bus between them.
func clusterOf(cfg *Config, c *profile.Cluster, st store.Store) (node *engine.Cluster, closing func() error, err error) {
	closing = func() error { return nil }
	pools, err := profile.ServedPools(cfg.Pools)
	if err != nil {
		return nil, closing, err
	}
	pg, ok := st.(*postgres.Store)
	switch {
	case !ok && pools != nil && !cfg.ReadOnly:
		return nil, closing, &fault.Error{Op: "agentd.Open", Kind: fault.Invalid, Field: "pools", Err: errors.New("this store has one process alone, which does everything"),
			Hint: "Leave the pools out (--pools), or name a PostgreSQL database as the store."}
	case !ok || cfg.ReadOnly:
		return nil, closing, nil
	case pools == nil && cfg.NoWorker:
		pools = []string{}
	case pools == nil && c.Pools != nil:
		pools = slices.Clone(c.Pools)
	}
	drives := !cfg.NoWorker && (pools == nil || slices.Contains(pools, profile.PoolRun))
	name := c.Name
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "node"
		}
		name = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	bus, err := busOf(cfg, c, name, pg)
	if err != nil {
		return nil, closing, err
	}
	return &engine.Cluster{Name: name, Bus: bus, Worker: drives && !cfg.Dormant, Named: cfg.Dormant, Pools: pools, PoolCalls: c.MaxPoolCalls, PoolWait: c.PoolWait.Std(),
		Lease: c.Lease.Std(), Poll: c.PollInterval.Std(), Clock: uptime.Clock(), DrainTimeout: c.DrainTimeout.Std()}, bus.Close, nil
}

// closingBus is a bus that somebody has to close.
type closingBus interface {
	engine.Bus
	Close() error
}

// busOf is the bus that the configuration names.
func busOf(cfg *Config, c *profile.Cluster, name string, pg *postgres.Store) (closingBus, error) {
	if c.Bus != "nats" {
		return pg.Bus(), nil
	}
	secret := ""
	if c.NATS.SecretEnv != "" {
		env := cfg.Env
		if env == nil {
			env = os.LookupEnv
		}
		if secret, _ = env(c.NATS.SecretEnv); secret == "" {
			return nil, &fault.Error{Op: "agentd.Open", Kind: fault.Invalid, Field: "cluster.nats.secret_env", Err: fmt.Errorf("the environment variable %s is not set", c.NATS.SecretEnv),
				Hint: "Put the secret of the nodes, or the token of the servers, into it, or leave cluster.nats.secret_env out."}
		}
	}
	return natsBus(&c.NATS, name, secret, cfg.Dormant)
}

// Drain prepares a runtime that shares its store for its end: it takes up no more runs,
// lets calls under way finish for as long as cluster.drain_timeout says, and gives what
// is left to others. It goes on to answer requests until Close. Alone it does nothing.
func (rt *Runtime) Drain(ctx context.Context) error {
	rt.distributor.stop()
	return rt.engine.Drain(ctx)
}

// Pools is what the runtime does among those that share its store: nil is everything.
// drives is whether it drives runs.
func (rt *Runtime) Pools() (pools []string, drives bool) { return rt.engine.Pools() }

// Shared is whether the runtime shares its store with others.
func (rt *Runtime) Shared() bool { return rt.shared }

// WorkerServer is a server with nothing but /healthz, /readyz and /metrics, for a
// process that drives runs and takes no requests.
func (rt *Runtime) WorkerServer() (*server.Server, error) {
	if err := rt.writable("WorkerServer"); err != nil {
		return nil, err
	}
	o := rt.serverOptions()
	o.Paths = []string{"/healthz", "/readyz", "/metrics"}
	o.Delay = 0 // nobody sends it requests that would go elsewhere
	return server.New(rt.engine, o), nil
}

// poolLoads is what there is to do for pools; nothing if the store does not answer soon.
func (rt *Runtime) poolLoads() []engine.PoolLoad {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	loads, err := rt.engine.PoolLoads(ctx)
	if err != nil {
		return nil
	}
	return loads
}
