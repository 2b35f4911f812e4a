package postgres

import (
	"context"
	"testing"
	"time"

	"agentd/internal/store"
	"agentd/internal/store/postgres/pgtest"
)

// A lease is renewed, and others are told things, while everything else waits for a
// connection: a node that lost its lease because it has much to do would stop all of it.
func TestALeaseWaitsForNobody(t *testing.T) {
	c := pgtest.Start(t, "fsync = off")
	s := openTest(t, c.NewURL(), &Options{Connections: 2})
	change := func(n store.NodeChange) error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		return s.Commit(ctx, &store.Tx{Tenant: tenant, Nodes: []store.NodeChange{n}})
	}
	if err := change(store.NodeChange{Join: true, For: 60_000, Node: store.Node{ID: "n1"}}); err != nil {
		t.Fatal(err)
	}
	bus := s.Bus()
	defer bus.Close()
	heard := make(chan string, 100)
	defer bus.Subscribe(func(m []byte) { heard <- string(m) })()
	for range 2 {
		conn, err := s.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
	if err := change(store.NodeChange{For: 60_000, Node: store.Node{ID: "n1"}}); err != nil {
		t.Error(err)
	}
	late := time.After(20 * time.Second)
	for {
		bus.Publish([]byte("note"))
		select {
		case <-heard:
			return
		case <-late:
			t.Fatal("nothing was heard")
		case <-time.After(100 * time.Millisecond): // it may not listen yet
		}
	}
}
