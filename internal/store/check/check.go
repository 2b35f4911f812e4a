package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

// DB is a store's database as the checks need it. Its tables have the names and
// columns of package sqlite's.
type DB interface {
	// Query calls each for every row of a query in the SQL that the databases have
	// in common, with ? for args.
	Query(ctx context.Context, sql string, each func(Row) error, args ...any) error
	// Journal calls each with the key, the last event's number and the content of the
	// rows of a run's journal after a key, in their order, and gives how many these
	// are: at most limit. damage is why a content can not be read. runID is the id of the run with the key run.
	Journal(ctx context.Context, runID string, run, after int64, limit int, each func(key, lastSeq int64, content []byte, damage error) error) (n int, err error)
	// Failed is whether err is of the database and not of what is stored in it.
	Failed(err error) bool
}

// Row is one row of a result. What is NULL, or of another type, is zero; a boolean
// is 0 or 1.
type Row interface {
	Int(column int) int64
	Text(column int) string
	Blob(column int) []byte
}

// Repair is a statement that repairs a finding.
type Repair struct {
	// Finding is its place in the report.
	Finding int
	SQL     string
	Args    []any
}

// Run looks at everything and adds to the report. It changes nothing: the repairs
// that it returns are for one transaction.
func Run(ctx context.Context, db DB, o store.CheckOptions, report *store.Report) ([]Repair, error) {
	k := &checker{db: db, codec: form.NewCodec(), ctx: ctx, o: o, report: report, counts: map[string]int{}}
	if err := k.all(); err != nil {
		return nil, err
	}
	return k.repairs, nil
}

// maxFindings bounds the findings of one check: a thousand rows with one cause
// say no more than a hundred.
const maxFindings = 100

// journalChunk is how many rows of the journal are in memory at a time.
const journalChunk = 64

// checker is one Check under way.
type checker struct {
	db      DB
	codec   *form.Codec
	ctx     context.Context
	o       store.CheckOptions
	report  *store.Report
	counts  map[string]int
	repairs []Repair
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
			k.repairs = append(k.repairs, Repair{len(k.report.Findings) - 1, sql, args})
		}
		return
	}
	k.report.Findings = append(k.report.Findings, f)
	if sql != "" {
		k.repairs = append(k.repairs, Repair{len(k.report.Findings) - 1, sql, args})
	}
}

func (k *checker) query(sql string, each func(Row) error, args ...any) error {
	if err := k.ctx.Err(); err != nil {
		return err
	}
	return k.db.Query(k.ctx, sql, each, args...)
}

// get reads the first row of a query, if there is one, into to.
func (k *checker) get(sql string, to []*int64, args ...any) error {
	err := k.query(sql, func(r Row) error {
		for i, p := range to {
			*p = r.Int(i)
		}
		return io.EOF
	}, args...)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

func (k *checker) all() error {
	for _, check := range []func() error{k.sizes, k.orphans, k.sessions, k.entries, k.runs, k.interrupts, k.artifacts, k.usage, k.budgets, k.effects} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (k *checker) sizes() error {
	r := k.report
	return k.get(`SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM runs), (SELECT count(*) FROM entries),
		(SELECT count(*) FROM interrupts), (SELECT count(*) FROM blobs)`, []*int64{&r.Sessions, &r.Runs, &r.Entries, &r.Interrupts, &r.Blobs})
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
		{"effects", "run NOT IN (SELECT key FROM runs)", "calls for pools without their run"},
		{"mail", "run NOT IN (SELECT key FROM runs)", "wishes of a run without it"},
		{"claims", "run NOT IN (SELECT key FROM runs)", "claims of nodes without their run"},
		{"artifacts", "session NOT IN (SELECT key FROM sessions)", "facts of artifacts without their session"},
		{"quarantine", "session NOT IN (SELECT key FROM sessions)", "notes of what requests leave out, without their session"},
		{"memories", "tenant NOT IN (SELECT key FROM tenants)", "documents of the memory without their tenant"},
		{"blob_uses", "session NOT IN (SELECT key FROM sessions) OR blob NOT IN (SELECT key FROM blobs)", "uses of artifacts without session or artifact"},
	} {
		var n int64
		if err := k.get("SELECT count(*) FROM "+o.table+" WHERE "+o.where, []*int64{&n}); err != nil {
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
	err := k.query("SELECT s.key, s.id, s.leaf, t.id FROM sessions s LEFT JOIN tenants t ON t.key = s.tenant ORDER BY s.key", func(r Row) error {
		all = append(all, session{r.Int(0), r.Text(1), r.Text(2), r.Text(3)})
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
		var order, apart []string
		if err := k.query("SELECT id, parent, run FROM entries WHERE session = ? ORDER BY id", func(r Row) error {
			parents[r.Text(0)] = r.Text(1)
			order = append(order, r.Text(0))
			if r.Int(2) == 0 {
				apart = append(apart, r.Text(0))
			}
			return nil
		}, s.key); err != nil {
			return err
		}
		k.tree(where, parents, apart)
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
	return k.query(`SELECT e.id, e.body, s.id, t.id, e.kind FROM entries e JOIN sessions s ON s.key = e.session LEFT JOIN tenants t ON t.key = s.tenant`, func(r Row) error {
		body, err := k.codec.UnpackBody(r.Blob(1))
		if err == nil && (len(body) > 0 || r.Text(4) == "message") && !json.Valid(body) {
			err = errors.New("it is not JSON")
		}
		if err != nil {
			k.found(store.Finding{Check: "entries", Severity: store.SeverityError, Where: r.Text(3) + ": session " + r.Text(2) + ", entry " + r.Text(0),
				What: "the message can not be read (" + err.Error() + "): the conversation goes on without it", Advice: "Restore the file from a backup if the message matters."}, "")
		}
		return k.ctx.Err()
	})
}

// usage: what was summed by minute is not less than what the runs' steps say.
func (k *checker) usage() error {
	return k.query("SELECT u.tenant, u.run, m.key FROM usage u LEFT JOIN models m ON m.key = u.model WHERE m.key IS NULL LIMIT 1", func(r Row) error {
		k.found(store.Finding{Check: "usage", Severity: store.SeverityWarning, What: "there is usage of a model whose name is gone: sums by model leave it out",
			Advice: "Restore the file from a backup if the sums matter."}, "")
		return nil
	})
}
