package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"agentd/internal/store"
)

// maxFindings bounds the findings of one check: a thousand rows with one cause
// say no more than a hundred.
const maxFindings = 100

// Check implements store.Checker. It needs the store for itself if it repairs;
// without that it sees one state of it.
func (s *Store) Check(ctx context.Context, o store.CheckOptions) (*store.Report, error) {
	k := &checker{s: s, ctx: ctx, o: o, report: &store.Report{}, counts: map[string]int{}}
	err := s.read(ctx, func(c *conn) error {
		k.c = c
		return k.all()
	})
	if err != nil {
		return nil, err
	}
	if o.Repair && len(k.repairs) > 0 {
		if err := s.repair(k); err != nil {
			return nil, err
		}
	}
	return k.report, nil
}

// repair does all repairs in one transaction.
func (s *Store) repair(k *checker) (err error) {
	if s.writer == nil {
		return errors.New("the store was opened for reading alone")
	}
	s.memoryMu.Lock()
	defer s.memoryMu.Unlock()
	if _, _, err := s.writer.exec("BEGIN IMMEDIATE"); err != nil {
		return s.readError(err)
	}
	defer func() {
		if err != nil {
			_, _, e := s.writer.exec("ROLLBACK")
			err = errors.Join(s.readError(err), e)
		}
	}()
	for _, r := range k.repairs {
		if _, _, err := s.writer.exec(r.sql, r.args...); err != nil {
			return fmt.Errorf("%s: %w", r.sql, err)
		}
		k.report.Findings[r.finding].Repaired = true
	}
	_, _, err = s.writer.exec("COMMIT")
	return err
}

// checker is one Check under way.
type checker struct {
	s       *Store
	ctx     context.Context
	c       *conn
	o       store.CheckOptions
	report  *store.Report
	counts  map[string]int
	repairs []repair
}

type repair struct {
	finding int
	sql     string
	args    []any
}

// found notes a finding, with the statement that repairs it if there is one.
func (k *checker) found(f store.Finding, sql string, args ...any) {
	k.counts[f.Check]++
	switch n := k.counts[f.Check]; {
	case n == maxFindings+1:
		k.report.Findings = append(k.report.Findings, store.Finding{Check: f.Check, Severity: f.Severity, What: "there are more of these"})
		fallthrough
	case n > maxFindings:
		if sql != "" { // the others are repaired too, told of by that one
			k.repairs = append(k.repairs, repair{len(k.report.Findings) - 1, sql, args})
		}
		return
	}
	k.report.Findings = append(k.report.Findings, f)
	if sql != "" {
		k.repairs = append(k.repairs, repair{len(k.report.Findings) - 1, sql, args})
	}
}

func (k *checker) query(sql string, each func(row) error, args ...any) error {
	if err := k.ctx.Err(); err != nil {
		return err
	}
	return k.c.query(k.ctx, sql, each, args...)
}

func (k *checker) all() error {
	if ok, err := k.file(); err != nil || !ok {
		return err
	}
	for _, check := range []func() error{k.sizes, k.orphans, k.sessions, k.entries, k.runs, k.interrupts, k.artifacts, k.usage, k.budgets} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// file asks SQLite about its file. If pages are damaged the rows are not looked
// at: what they say would be noise.
func (k *checker) file() (ok bool, err error) {
	ok = true
	err = k.query("PRAGMA integrity_check(20)", func(r row) error {
		what := r.text(0)
		if what == "ok" {
			return nil
		}
		ok = false
		k.found(store.Finding{Check: "file", Severity: store.SeverityError, Where: k.s.path, What: "SQLite says: " + what,
			Advice: "Restore the file from a backup. Without one, the sqlite3 program's .recover saves what can be read."}, "")
		return nil
	})
	if code(err) != 0 {
		k.found(store.Finding{Check: "file", Severity: store.SeverityError, Where: k.s.path, What: "SQLite can not read the file: " + err.Error(),
			Advice: "Restore the file from a backup."}, "")
		return false, nil
	}
	return ok, err
}

func (k *checker) sizes() error {
	r := k.report
	_, err := k.c.get(`SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM runs), (SELECT count(*) FROM entries),
		(SELECT count(*) FROM interrupts), (SELECT count(*) FROM blobs)`, []any{&r.Sessions, &r.Runs, &r.Entries, &r.Interrupts, &r.Blobs})
	return err
}

// orphans are rows whose owner is gone: nobody can reach them, so they go.
func (k *checker) orphans() error {
	for _, o := range []struct{ table, where, what string }{
		{"entries", "session NOT IN (SELECT key FROM sessions)", "entries without their session"},
		{"runs", "session NOT IN (SELECT key FROM sessions)", "runs without their session"},
		{"run_specs", "run NOT IN (SELECT key FROM runs)", "requests without their run"},
		{"inputs", "run NOT IN (SELECT key FROM runs)", "queued messages without their run"},
		{"journal", "run NOT IN (SELECT key FROM runs)", "events and trace without their run"},
		{"interrupts", "run NOT IN (SELECT key FROM runs)", "interrupts without their run"},
		{"artifacts", "session NOT IN (SELECT key FROM sessions)", "facts of artifacts without their session"},
		{"quarantine", "session NOT IN (SELECT key FROM sessions)", "notes of what requests leave out, without their session"},
		{"blob_uses", "session NOT IN (SELECT key FROM sessions) OR blob NOT IN (SELECT key FROM blobs)", "uses of artifacts without session or artifact"},
	} {
		var n int64
		if _, err := k.c.get("SELECT count(*) FROM "+o.table+" WHERE "+o.where, []any{&n}); err != nil {
			return err
		}
		if n > 0 {
			k.found(store.Finding{Check: "orphans", Severity: store.SeverityWarning, Where: "table " + o.table,
				What: fmt.Sprintf("%d %s: nothing can reach them", n, o.what), Repair: "delete them"}, "DELETE FROM "+o.table+" WHERE "+o.where)
		}
	}
	return nil
}

// sessions: the leaf is there, and the way from it to the root has no gap and no
// circle.
func (k *checker) sessions() error {
	type session struct {
		key      int64
		id, leaf string
		tenant   string
	}
	var all []session
	err := k.query("SELECT s.key, s.id, s.leaf, t.id FROM sessions s LEFT JOIN tenants t ON t.key = s.tenant ORDER BY s.key", func(r row) error {
		all = append(all, session{r.int(0), r.text(1), r.text(2), r.text(3)})
		return nil
	})
	if err != nil {
		return err
	}
	for _, s := range all {
		where := s.tenant + ": session " + s.id
		if s.tenant == "" {
			k.found(store.Finding{Check: "tenant", Severity: store.SeverityError, Where: "session " + s.id, What: "its tenant is gone: nobody can read it",
				Advice: "Restore the file from a backup."}, "")
		}
		if s.leaf == "" {
			continue
		}
		parents := map[string]string{}
		var order []string
		if err := k.query("SELECT id, parent FROM entries WHERE session = ? ORDER BY id", func(r row) error {
			parents[r.text(0)] = r.text(1)
			order = append(order, r.text(0))
			return nil
		}, s.key); err != nil {
			return err
		}
		at := broken(parents, s.leaf)
		if at == "" {
			continue
		}
		// The newest entry with an unbroken way to the root.
		best := ""
		for i := len(order) - 1; i >= 0 && best == ""; i-- {
			if broken(parents, order[i]) == "" {
				best = order[i]
			}
		}
		f := store.Finding{Check: "leaf", Severity: store.SeverityError, Where: where,
			What: fmt.Sprintf("the conversation can not be read: the way from its leaf %s breaks at entry %s", s.leaf, at)}
		if best == "" {
			f.Advice = "No entry has a way to a root. Restore the file from a backup, or delete the session."
			k.found(f, "")
			continue
		}
		f.Repair = "go back to entry " + best + ", the newest one that can be read; the others stay stored"
		k.found(f, "UPDATE sessions SET leaf = ? WHERE key = ?", best, s.key)
	}
	return nil
}

// broken is where the way from an entry to its root breaks, or "".
func broken(parents map[string]string, id string) string {
	for n := 0; id != ""; n++ {
		parent, ok := parents[id]
		if !ok || n > len(parents) {
			return id
		}
		id = parent
	}
	return ""
}

// entries: their bodies can be unpacked and are JSON.
func (k *checker) entries() error {
	return k.query(`SELECT e.id, e.body, s.id, t.id, e.kind FROM entries e JOIN sessions s ON s.key = e.session LEFT JOIN tenants t ON t.key = s.tenant`, func(r row) error {
		body, err := k.s.codec.unpackBody(r.blob(1))
		if err == nil && (len(body) > 0 || r.text(4) == "message") && !json.Valid(body) {
			err = errors.New("it is not JSON")
		}
		if err != nil {
			k.found(store.Finding{Check: "entries", Severity: store.SeverityError, Where: r.text(3) + ": session " + r.text(2) + ", entry " + r.text(0),
				What: "the message can not be read (" + err.Error() + "): the conversation goes on without it", Advice: "Restore the file from a backup if the message matters."}, "")
		}
		return k.ctx.Err()
	})
}

// usage: what was summed by minute is not less than what the runs' steps say.
func (k *checker) usage() error {
	return k.query("SELECT u.tenant, u.run, m.key FROM usage u LEFT JOIN models m ON m.key = u.model WHERE m.key IS NULL LIMIT 1", func(r row) error {
		k.found(store.Finding{Check: "usage", Severity: store.SeverityWarning, What: "there is usage of a model whose name is gone: sums by model leave it out",
			Advice: "Restore the file from a backup if the sums matter."}, "")
		return nil
	})
}
