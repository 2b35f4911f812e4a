package storetest

import (
	"errors"
	"fmt"

	"agentd/internal/store"
)

// keyedSession is a session with an idempotency key.
func keyedSession(id, key, hash string) *store.Session {
	s := session(id)
	s.IdempotencyKey, s.RequestHash = key, hash
	return s
}

func testSessionIdempotency(f *fixture) {
	create := func(id, key, hash string) *store.Tx {
		return &store.Tx{NewSessions: []*store.Session{keyedSession(id, key, hash)}}
	}
	f.commit(create("s1", "key", "hash"))
	for range 2 {
		for _, c := range []struct {
			id, hash string
			same     bool
		}{{"s2", "hash", true}, {"s2", "other", false}, {"s2", "", false}, {"s1", "hash", true}} {
			var exists *store.ExistsError
			err := f.commitIn(f.Context(), create(c.id, "key", c.hash))
			if !errors.As(err, &exists) || exists.SessionID != "s1" || exists.RunID != "" || exists.SameRequest != c.same {
				f.Fatalf("hash %q: got error %v (%+v), want session s1, same %v", c.hash, err, exists, c.same)
			}
		}
		f.again()
	}
	// The refused Tx is refused whole.
	tx := create("s3", "", "")
	tx.NewSessions = append(tx.NewSessions, keyedSession("s4", "key", "hash"))
	if err := f.commitIn(f.Context(), tx); err == nil {
		f.Fatal("a key was used twice")
	}
	if _, err := f.store.Session(f.Context(), tenant, "s3"); !errors.Is(err, store.ErrNotFound) {
		f.Fatalf("half a Tx: %v", err)
	}
	// The id decides where the key is free.
	f.refused(create("s1", "key2", "hash"), store.ErrConflict)
	f.refused(create("s1", "", ""), store.ErrConflict)
	// Other keys, no key, the keys of runs and those of other tenants are free,
	// and a key is free again when its session is gone.
	f.commit(create("s2", "key2", "hash"))
	f.commit(create("s5", "", ""))
	f.commit(create("s6", "", ""))
	r := run("r1", "s1", "queued")
	r.IdempotencyKey, r.RequestHash = "key", "other"
	f.commit(&store.Tx{NewRuns: []*store.Run{r}})
	tx = create("s1", "key", "other")
	tx.Tenant = "tenant-b"
	f.commit(tx)
	f.refused(&store.Tx{DropSessions: []string{"s1"}}, store.ErrSessionBusy)
	f.end("r1")
	f.commit(&store.Tx{DropSessions: []string{"s1"}})
	f.commit(create("s7", "key", "other"))
	equal(f, "session", ok[*store.Session](f)(f.store.Session(f.Context(), tenant, "s7")), keyedSession("s7", "key", "other"))
}

func testSessionIdempotencyRace(f *fixture) {
	f.oneWinner(race(16, func(i int) error {
		return f.commitIn(f.Context(), &store.Tx{NewSessions: []*store.Session{keyedSession(fmt.Sprint("s", i), "key", "hash")}})
	}), func(err error) bool {
		var exists *store.ExistsError
		return errors.As(err, &exists) && exists.SameRequest
	})
	all, _, err := f.store.Sessions(f.Context(), tenant, store.SessionFilter{})
	if err != nil || len(all) != 1 {
		f.Fatalf("%d sessions, %v", len(all), err)
	}
}
