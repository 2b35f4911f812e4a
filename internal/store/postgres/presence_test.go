package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"agentd/internal/store/postgres/pgtest"
)

// A store that is closed is free at once, not when the server has noticed: who repairs
// or copies it opens it right afterwards.
func TestAClosedStoreIsFree(t *testing.T) {
	url := pgtest.Start(t).NewURL()
	openTest(t, url, nil).Close() // it waits until the server is up
	look, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeSoon(look) })
	held := 0
	for i := range 50 {
		s, err := Open(t.Context(), url, &Options{Exclusive: i%2 == 0})
		if err != nil {
			t.Fatalf("at %d: %v", i, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		var locks int
		if err := look.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = $1", uint32(lockClass)).Scan(&locks); err != nil {
			t.Fatal(err)
		}
		held += locks
	}
	if held > 0 {
		t.Errorf("the lock of %d closed stores was held on", held)
	}
}
