package agentd

import (
	"context"
	"fmt"
	"os"

	"agentd/internal/engine"
	"agentd/internal/profile"
	"agentd/internal/server"
	"agentd/internal/store"
	"agentd/internal/store/postgres"
)

// clusterOf makes a runtime one of those that share a PostgreSQL store. It is nil for
// an embedded store, and for who only looks. close ends the bus between them.
func clusterOf(cfg *Config, c *profile.Cluster, st store.Store) (node *engine.Cluster, closing func() error) {
	closing = func() error { return nil }
	pg, ok := st.(*postgres.Store)
	if !ok || cfg.ReadOnly {
		return nil, closing
	}
	name := c.Name
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "node"
		}
		name = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	bus := pg.Bus()
	return &engine.Cluster{Name: name, Bus: bus, Worker: !cfg.NoWorker && !cfg.Dormant, Named: cfg.Dormant,
		Lease: c.Lease.Std(), Poll: c.PollInterval.Std(), DrainTimeout: c.DrainTimeout.Std()}, bus.Close
}

// Drain prepares a runtime that shares its store for its end: it takes up no more runs,
// lets calls under way finish for as long as cluster.drain_timeout says, and gives what
// is left to others. It goes on to answer requests until Close. Alone it does nothing.
func (rt *Runtime) Drain(ctx context.Context) error {
	rt.distributor.stop()
	return rt.engine.Drain(ctx)
}

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
