package sqlite

import (
	"bytes"
	"encoding/hex"
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
	"agentd/internal/store/form"
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
	ms, err := form.Migrations(migrations, 1)
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

// A row that is damaged in a way that SQLite cannot know costs what is in it, and
// not the rest of its run.
func TestDamagedRow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	s := openTest(t, path, nil)
	st := newSteps("s", "r", 1)
	commit(t, s, st.start())
	for i := range 3 {
		commit(t, s, st.step(i+1)...)
	}
	ctx := t.Context()
	events := func() (seqs []int64, lost []int64) {
		t.Helper()
		es, err := s.Events(ctx, store.DefaultTenant, "r", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range es {
			if n := len(seqs); n > 0 && e.Seq <= seqs[n-1] {
				t.Fatalf("event %d after %d", e.Seq, seqs[n-1])
			}
			seqs = append(seqs, e.Seq)
			if e.Type == "events_lost" {
				lost = append(lost, e.Seq)
			}
		}
		return seqs, lost
	}
	whole, lost := events()
	if len(lost) > 0 {
		t.Fatalf("lost %d of a store that is whole", len(lost))
	}
	before, err := s.Trace(ctx, store.DefaultTenant, "r", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	set := func(sql string, args ...any) {
		t.Helper()
		if n, _, err := s.writer.exec(sql, args...); err != nil || n == 0 {
			t.Fatalf("%s: %d rows, %v", sql, n, err)
		}
	}
	var key, last int64
	if _, err := s.writer.get("SELECT key, last_seq FROM journal WHERE entries > 0 AND last_seq IS NOT NULL ORDER BY key LIMIT 1", []any{&key, &last}); err != nil || key == 0 {
		t.Fatalf("no row with a dictionary: %v", err)
	}
	var body, word string
	if _, err := s.writer.get("SELECT hex(body) FROM journal WHERE key = ?", []any{&body}, key); err != nil {
		t.Fatal(err)
	}
	for _, d := range []struct {
		name   string
		damage func()
	}{
		{"the row", func() { set("UPDATE journal SET body = ? WHERE key = ?", []byte{2, 200, 1, 0xff, 0xff}, key) }},
		{"numbers", func() {
			set("UPDATE journal SET body = ? WHERE key = ?", s.codec.Pack(nil, []byte{1, 9, 0, 0, 0, 0, 0}, []byte("r")), key)
		}},
		{"an entry is damaged", func() {
			set("UPDATE entries SET body = ? WHERE key = (SELECT entry FROM journal WHERE key = ?)", []byte{2, 200, 1, 0xff}, key)
		}},
		{"an entry is gone", func() { set("DELETE FROM entries WHERE key = (SELECT entry FROM journal WHERE key = ?)", key) }},
	} {
		name := d.name
		d.damage()
		seqs, lost := events()
		if len(lost) != 1 || lost[0] != last || seqs[len(seqs)-1] != whole[len(whole)-1] || seqs[0] > whole[0] && seqs[0] != last {
			t.Errorf("%s: lost %v, have %v of %v", name, lost, seqs, whole)
		}
		after, err := s.Trace(ctx, store.DefaultTenant, "r", 0, 0)
		if err != nil || len(after) == 0 || len(after) > len(before) {
			t.Errorf("%s: %d rows of trace of %d, %v", name, len(after), len(before), err)
		}
		if page, err := s.Events(ctx, store.DefaultTenant, "r", last-1, 2); err != nil || len(page) != 2 || page[0].Seq != last {
			t.Errorf("%s: %v, %v", name, page, err)
		}
		r, err := s.Check(ctx, store.CheckOptions{})
		if err != nil {
			t.Fatal(err)
		}
		told := false
		for _, f := range r.Findings {
			told = told || f.Check == "journal" || f.Check == "events"
		}
		if !told {
			t.Errorf("%s: the check says %+v", name, r.Findings)
		}
		if word = body; strings.HasPrefix(name, "an entry") {
			continue
		}
		raw, err := hex.DecodeString(word)
		if err != nil {
			t.Fatal(err)
		}
		set("UPDATE journal SET body = ? WHERE key = ?", raw, key)
	}
	set("UPDATE run_specs SET spec = ?", []byte{77, 1, 1})
	set("UPDATE runs SET state = ?", []byte{2, 9})
	// Whoever needs them finds that they can not be decoded; the rest is there.
	r, err := s.Run(ctx, store.DefaultTenant, "r")
	if err != nil || r.ID != "r" || json.Valid(r.State) || json.Valid(r.Spec) || len(r.State) == 0 {
		t.Errorf("%+v, %v", r, err)
	}
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
	ms, err := form.Migrations(migrations, 1)
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
	next := append(ms, form.Migration{Version: len(ms) + 1, SQL: "CREATE TABLE later (x INTEGER) STRICT; INSERT INTO no_such_table VALUES (1);"})
	if err := applyMigrations(s.writer, next); err == nil {
		t.Fatal("a broken migration ran")
	}
	if v, err := schemaVersion(s.writer); err != nil || v != len(ms) {
		t.Fatalf("version %d after a broken migration (%v)", v, err)
	}
	next[len(ms)].SQL = "CREATE TABLE later (x INTEGER) STRICT; INSERT INTO later VALUES (1);"
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

// Artifacts from before retention have their facts, and are swept like others.
func TestMigrationOfArtifacts(t *testing.T) {
	ms, err := form.Migrations(migrations, 1)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.db")
	c, err := openConn(dsn(path, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := applyMigrations(c, ms[:9]); err != nil {
		t.Fatal(err)
	}
	if err := c.script(`INSERT INTO tenants (id) VALUES ('default');
		INSERT INTO sessions (tenant, id, created, minute, updated) VALUES (1, 's', 1, 0, 1);
		INSERT INTO blobs (tenant, hash, mime_type, name, created, data) VALUES (1, x'aa', 'text/plain', 'a.txt', 7, x'0102'), (1, x'bb', NULL, NULL, 8, NULL);
		INSERT INTO blob_uses (session, blob) VALUES (1, 1), (0, 2);`); err != nil {
		t.Fatal(err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	s := openTest(t, path, nil)
	got, err := s.Artifacts(t.Context(), store.DefaultTenant, "s")
	if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], &store.Artifact{SessionID: "s", ID: "aa", Name: "a.txt", MimeType: "text/plain", Size: 2, Created: 7}) {
		t.Errorf("%+v, %v", got, err)
	}
	commit(t, s, &store.Tx{Tenant: store.DefaultTenant, ExpireArtifacts: []store.ArtifactExpiry{{SessionID: "s", ID: "aa", At: 9}}})
	if _, err := s.Blob(t.Context(), store.DefaultTenant, "aa"); err == nil {
		t.Error("its content is still there")
	}
	if _, err := s.Blob(t.Context(), store.DefaultTenant, "bb"); err != nil {
		t.Error(err)
	}
}

func TestMigrationFilesAreNumbered(t *testing.T) {
	for name, files := range map[string][]string{
		"gap": {"0001_a.sql", "0003_b.sql"}, "from two": {"0002_a.sql"}, "no number": {"a.sql"}, "words": {"init_a.sql"}, "twice": {"0001_a.sql", "0001_b.sql"},
	} {
		fsys := fstest.MapFS{}
		for _, f := range files {
			fsys["migrations/"+f] = &fstest.MapFile{}
		}
		if ms, err := form.Migrations(fsys, 1); err == nil {
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
