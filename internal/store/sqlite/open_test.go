package sqlite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"agentd/fault"
	"agentd/internal/store"
)

// wantError wants an error of a kind whose text and hint hold all of parts.
func wantError(t *testing.T, err error, kind fault.Kind, parts ...string) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind {
		t.Fatalf("got error %v (%s), want one of kind %s", err, fault.KindOf(err), kind)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error()+" | "+fault.HintOf(err), p) {
			t.Errorf("error %q, hint %q: want %q in it", err, fault.HintOf(err), p)
		}
	}
}

func TestOpenCreatesPrivateFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "x.db")
	s := openTest(t, path, nil)
	commit(t, s, newSteps("s", "r", 1).start())
	if runtime.GOOS == "windows" {
		return // no such permissions
	}
	for p, want := range map[string]os.FileMode{path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600, path + ".lock": 0o600,
		filepath.Dir(path): 0o700 | os.ModeDir, filepath.Dir(filepath.Dir(path)): 0o700 | os.ModeDir} {
		fi, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if fi.Mode() != want {
			t.Errorf("%s has mode %v, want %v", p, fi.Mode(), want)
		}
	}
}

func TestSettings(t *testing.T) {
	for durability, synchronous := range map[Durability]int64{"": 2, Full: 2, Process: 1} {
		s := openTest(t, filepath.Join(t.TempDir(), "x.db"), &Options{Durability: durability})
		for pragma, want := range map[string]int64{"synchronous": synchronous, "page_size": pageSize, "busy_timeout": 5000, "fullfsync": 1,
			"wal_autocheckpoint": autocheckpoint, "application_id": applicationID} {
			var got int64
			if _, err := s.writer.get("PRAGMA "+pragma, []any{&got}); err != nil || got != want {
				t.Errorf("%q: %s is %d, want %d (%v)", durability, pragma, got, want, err)
			}
		}
		var mode string
		if _, err := s.writer.get("PRAGMA journal_mode", []any{&mode}); err != nil || mode != "wal" {
			t.Errorf("journal_mode is %q (%v)", mode, err)
		}
	}
}

func TestOpenRefusesBadOptions(t *testing.T) {
	_, err := Open("", nil)
	wantError(t, err, fault.Invalid, "path")
	_, err = Open(Memory, &Options{Durability: "sometimes"})
	wantError(t, err, fault.Invalid, "sometimes", "process")
	_, err = Open(Memory, &Options{ReadOnly: true})
	wantError(t, err, fault.Invalid, "memory")
	_, err = Open(filepath.Join(t.TempDir(), "no.db"), &Options{ReadOnly: true})
	wantError(t, err, fault.NotFound, "no.db")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = Open(filepath.Join(file, "x.db"), nil); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a folder that is a file: %v", err)
	}
}

func TestSecondWriterIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	s := openTest(t, path, nil)
	_, err := Open(path, nil)
	wantError(t, err, fault.Conflict, path, fmt.Sprint("process ", os.Getpid()), "--data")
	// The one that was refused has disturbed nothing.
	commit(t, s, newSteps("s", "r", 1).start())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openTest(t, path, nil)
}

func TestLockWithoutHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	openTest(t, path, nil)
	for _, content := range []string{"", "not a number", "-1", strings.Repeat("9", 100)} {
		if err := os.WriteFile(path+".lock", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path, nil)
		wantError(t, err, fault.Conflict, path, "another process")
	}
}

func TestReadOnlyBesideWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	w := openTest(t, path, nil)
	r := openTest(t, path, &Options{ReadOnly: true})
	st := newSteps("s", "r", 1)
	for range 3 {
		if st.seq == 0 {
			commit(t, w, st.start())
		} else {
			commit(t, w, st.step(1)...)
		}
		es, err := r.Events(t.Context(), store.DefaultTenant, "r", 0, 0)
		if err != nil || int64(len(es)) != st.seq {
			t.Fatalf("the reader sees %d of %d events: %v", len(es), st.seq, err)
		}
	}
	wantError(t, r.Commit(t.Context(), st.start()), fault.Unsupported, "reading")
}

func TestNewerSchemaIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	s := openTest(t, path, nil)
	if _, _, err := s.writer.exec("UPDATE schema_version SET version = 99"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ms, err := loadMigrations(migrations)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []*Options{nil, {ReadOnly: true}} {
		_, err := Open(path, o)
		wantError(t, err, fault.Unsupported, "version 99", fmt.Sprint("up to ", len(ms)))
		if !errors.Is(err, store.ErrTooNew) {
			t.Errorf("not ErrTooNew: %v", err)
		}
	}
}

func TestDamagedFile(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.db")
	s := openTest(t, good, nil)
	commit(t, s, newSteps("s", "r", 1).start())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"text":            []byte(strings.Repeat("this is not a database\n", 500)),
		"zeros":           make([]byte, 8192),
		"damaged header":  append([]byte("SQLite format 4\x00"), b[16:]...),
		"damaged schema":  append(append(append([]byte{}, b[:100]...), bytes.Repeat([]byte{0xff}, 3900)...), b[4000:]...),
		"only the header": b[:100],
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.db")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Open(path, nil)
			wantError(t, err, fault.Internal, path, "backup")
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(after, content) {
				t.Errorf("the damaged file was changed (%v)", err)
			}
		})
	}
}

// TestDamagedRow damages a row that SQLite cannot know to be wrong.
func TestDamagedRow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	s := openTest(t, path, nil)
	st := newSteps("s", "r", 1)
	commit(t, s, st.start())
	if _, _, err := s.writer.exec("UPDATE journal SET body = ?", []byte{2, 200, 1, 0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Events(t.Context(), store.DefaultTenant, "r", 0, 0)
	wantError(t, err, fault.Internal, path, "events of run r", "backup")
	_, err = s.Trace(t.Context(), store.DefaultTenant, "r", 0, 0)
	wantError(t, err, fault.Internal, path, "trace of run r")
	if _, _, err := s.writer.exec("UPDATE run_specs SET spec = ?", []byte{77, 1, 1}); err != nil {
		t.Fatal(err)
	}
	_, err = s.Run(t.Context(), store.DefaultTenant, "r")
	wantError(t, err, fault.Internal, path, "spec of run r")
}

func TestForeignDatabaseIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	c, err := openConn(dsn(path, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.script("CREATE TABLE schema_version (version INTEGER); INSERT INTO schema_version VALUES (1);"); err != nil {
		t.Fatal(err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	_, err = Open(path, nil)
	wantError(t, err, fault.Invalid, "another program")
}

func TestMigrations(t *testing.T) {
	ms, err := loadMigrations(migrations)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.db")
	s := openTest(t, path, nil)
	// Again is nothing.
	if err := migrate(s.writer); err != nil {
		t.Fatal(err)
	}
	// A later version that fails leaves the old one; once it is mended it runs.
	next := append(ms, migration{version: len(ms) + 1, sql: "CREATE TABLE later (x INTEGER) STRICT; INSERT INTO no_such_table VALUES (1);"})
	if err := applyMigrations(s.writer, next); err == nil {
		t.Fatal("a broken migration ran")
	}
	if v, err := schemaVersion(s.writer); err != nil || v != len(ms) {
		t.Fatalf("version %d after a broken migration (%v)", v, err)
	}
	next[len(ms)].sql = "CREATE TABLE later (x INTEGER) STRICT; INSERT INTO later VALUES (1);"
	for range 2 {
		if err := applyMigrations(s.writer, next); err != nil {
			t.Fatal(err)
		}
	}
	var n int64
	if _, err := s.writer.get("SELECT count(*) FROM later", []any{&n}); err != nil || n != 1 {
		t.Fatalf("the migration ran %d times (%v)", n, err)
	}
}

// A store of the first version is brought up to date with what is in it; which
// sessions are ephemeral was in their metadata.
func TestMigrationFromTheFirstVersion(t *testing.T) {
	ms, err := loadMigrations(migrations)
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
	if err := c.script(`INSERT INTO tenants (id) VALUES ('default');
		INSERT INTO sessions (tenant, id, created, minute, updated, metadata) VALUES
		(1, 'old', 1, 0, 1, CAST('{"ephemeral":true}' AS BLOB)), (1, 'kept', 1, 0, 1, CAST('{"a":1}' AS BLOB)), (1, 'bare', 1, 0, 1, NULL);`); err != nil {
		t.Fatal(err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	s := openTest(t, path, nil)
	for id, want := range map[string]store.Session{"old": {Ephemeral: true}, "kept": {Metadata: []byte(`{"a":1}`)}, "bare": {}} {
		want.ID, want.Created, want.Updated = id, 1, 1
		if got, err := s.Session(t.Context(), store.DefaultTenant, id); err != nil || !reflect.DeepEqual(got, &want) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	commit(t, s, &store.Tx{Tenant: store.DefaultTenant, NewSessions: []*store.Session{{ID: "t", IdempotencyKey: "k"}, {ID: "u"}}})
}

func TestMigrationFilesAreNumbered(t *testing.T) {
	for name, files := range map[string][]string{
		"gap": {"0001_a.sql", "0003_b.sql"}, "from two": {"0002_a.sql"}, "no number": {"a.sql"}, "words": {"init_a.sql"}, "twice": {"0001_a.sql", "0001_b.sql"},
	} {
		fsys := fstest.MapFS{}
		for _, f := range files {
			fsys["migrations/"+f] = &fstest.MapFile{}
		}
		if ms, err := loadMigrations(fsys); err == nil {
			t.Errorf("%s: %v", name, ms)
		}
	}
}

// A body that can not be unpacked does not take its session with it: the entry is
// there, as something that nobody takes for a message.
func TestDamagedEntry(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "x.db"), nil)
	st := newSteps("s", "r", 1)
	commit(t, s, st.start())
	commit(t, s, st.step(1)...)
	commit(t, s, st.step(2)...)
	if _, _, err := s.writer.exec("UPDATE entries SET body = ? WHERE key = 2", []byte{2, 200, 1, 0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	path, err := s.Path(t.Context(), store.DefaultTenant, "s", st.leaf)
	if err != nil || len(path) != 4 {
		t.Fatalf("%d entries, %v", len(path), err)
	}
	for i, e := range path {
		if json.Valid(e.Body) == (i == 1) {
			t.Errorf("entry %d: %q", i, e.Body)
		}
	}
}
