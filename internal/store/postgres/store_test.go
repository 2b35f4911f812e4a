package postgres

import (
	"testing"

	"agentd/internal/store"
	"agentd/internal/store/postgres/pgtest"
	"agentd/internal/store/storetest"
)

func openTest(t testing.TB, url string, o *Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// reopen opens what s wrote once more.
func reopen(t *testing.T, s store.Store, url string, o *Options) store.Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return openTest(t, url, o)
}

func TestConformance(t *testing.T) {
	for name, o := range map[string]*Options{"": nil, "one connection": {Connections: 1}} {
		t.Run(name, func(t *testing.T) {
			// Each case has a schema of its own: with fsync most of the time would be its files'.
			c := pgtest.Start(t, "fsync = off")
			urls := map[store.Store]string{}
			storetest.Run(t, func(t *testing.T) store.Store {
				url := c.NewURL()
				s := openTest(t, url, o)
				urls[s] = url
				return s
			}, func(t *testing.T, s store.Store) store.Store {
				n := reopen(t, s, urls[s], o)
				urls[n] = urls[s]
				return n
			})
		})
	}
}
