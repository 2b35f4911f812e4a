package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/internal/store/form"
)

func entryTx(session, id string) *store.Tx {
	return &store.Tx{Tenant: store.DefaultTenant, Entries: []*store.Entry{{SessionID: session, ID: id, Kind: "message", Created: 1, Body: []byte(`{}`)}}}
}

// A panic while a group is committed is the error of that group. Whoever led it may
// live on, and so must the store.
func TestPanicInAGroup(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "x.db"), nil)
	err := s.Commit(t.Context(), &store.Tx{Tenant: store.DefaultTenant, Usage: []*store.Usage{nil}})
	if err == nil || !strings.Contains(err.Error(), "panicked") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Commit(ctx, newSteps("s", "r", 1).start()); err != nil {
		t.Errorf("the next commit: %v", err)
	}
}

// What a kill right after an acknowledged commit leaves has that commit, also one
// that did not fit into the page cache.
func TestLargeCommitsAreInTheFileWhenAcknowledged(t *testing.T) {
	for _, d := range []Durability{Full, Process} {
		t.Run(string(d), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "x.db")
			s := openTest(t, path, &Options{Durability: d})
			commit(t, s, &store.Tx{Tenant: store.DefaultTenant, NewSessions: []*store.Session{{ID: "s", Created: 1, Updated: 1}}})
			total := 0
			for n := range 10 {
				count := 1500
				if n < 4 {
					count = 5000
				}
				total += count
				tx := &store.Tx{Tenant: store.DefaultTenant}
				src := rand.NewChaCha8([32]byte{byte(n)})
				for i := range count {
					b := make([]byte, 40)
					_, _ = src.Read(b)
					id := sha256.Sum256(fmt.Append(nil, n, " ", i))
					tx.Entries = append(tx.Entries, &store.Entry{SessionID: "s", ID: hex.EncodeToString(id[:]), Kind: "message", Created: 1,
						Body: []byte(`"` + hex.EncodeToString(b) + `"`)})
				}
				commit(t, s, tx)
				killed := filepath.Join(dir, fmt.Sprint("killed", n, ".db"))
				for _, suffix := range []string{"", "-wal"} {
					data, err := os.ReadFile(path + suffix)
					if err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(killed+suffix, data, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				c := openTest(t, killed, nil)
				if es, err := c.Entries(t.Context(), store.DefaultTenant, "s", "", 0); err != nil || len(es) != total {
					t.Fatalf("after commit %d the files hold %d entries of %d, %v", n, len(es), total, err)
				}
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Keys of sessions that are used again must not make a group slower than it is: they
// are refused before anything is written.
func TestRepeatedKeysInAGroup(t *testing.T) {
	s := openTest(t, Memory, nil)
	with := func(id string) *store.Tx {
		return &store.Tx{Tenant: store.DefaultTenant, NewSessions: []*store.Session{{ID: id, IdempotencyKey: "key", RequestHash: "h"}}}
	}
	commit(t, s, with("first"))
	var txs []*store.Tx
	for i := range 20 {
		txs = append(txs, newSteps(fmt.Sprint("s", i), fmt.Sprint("r", i), 1).start(), with(fmt.Sprint("k", i)))
	}
	errs, stats := together(t, s, txs)
	for i, err := range errs {
		if (err != nil) != (i%2 == 1) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if stats.Commits != 20 || stats.Groups != 1 {
		t.Errorf("%+v, want 20 commits in a group", stats)
	}
}

// When the transaction of a group does not happen, nobody in it is told a reason that
// rests on it.
func TestRefusalsOfATransactionThatFailed(t *testing.T) {
	var group []*job
	for i := range 3 {
		group = append(group, &job{err: map[int]error{1: store.ErrConflict}[i]})
	}
	want := fault.New(fault.Unavailable, "the disk is full")
	fail(group, want)
	for i, j := range group {
		if j.err != want {
			t.Errorf("job %d: %v", i, j.err)
		}
	}
}

// Blobs of before uses were noted stay, whoever else used the same content.
func TestOldBlobsStay(t *testing.T) {
	ms, err := form.Migrations(migrations, 1)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.db")
	c, err := openConn(dsn(path, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := applyMigrations(c, ms[:1]); err != nil {
		t.Fatal(err)
	}
	data := []byte("the result")
	sum := sha256.Sum256(data)
	id := hex.EncodeToString(sum[:])
	if err := c.script("INSERT INTO tenants (id) VALUES ('default')"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.exec("INSERT INTO blobs (tenant, hash, created, data) VALUES (1, ?, 1, ?)", sum[:], data); err != nil {
		t.Fatal(err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	s := openTest(t, path, nil)
	commit(t, s, &store.Tx{Tenant: store.DefaultTenant, NewSessions: []*store.Session{{ID: "new"}}, Blobs: []*store.Blob{{ID: id, Data: data}},
		BlobUses: []store.BlobUse{{SessionID: "new", BlobID: id}}}, &store.Tx{Tenant: store.DefaultTenant, DropSessions: []string{"new"}})
	if _, err := s.Blob(t.Context(), store.DefaultTenant, id); err != nil {
		t.Error(err)
	}
}
