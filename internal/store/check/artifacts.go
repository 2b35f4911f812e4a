package check

import (
	"agentd/internal/store"
)

// artifacts: what a session has can be read, and what requests leave out is told.
func (k *checker) artifacts() error {
	if err := k.query(`SELECT t.id, s.id, a.name, a.key FROM artifacts a JOIN sessions s ON s.key = a.session LEFT JOIN tenants t ON t.key = s.tenant
		WHERE a.expired = 0 AND NOT EXISTS (SELECT 1 FROM blobs b JOIN blob_uses u ON u.blob = b.key WHERE b.tenant = s.tenant AND b.hash = a.hash AND u.session = s.key)`, func(r Row) error {
		k.found(store.Finding{Check: "artifacts", Severity: store.SeverityWarning, Where: r.Text(0) + ": session " + r.Text(1),
			What: "the content of its artifact " + r.Text(2) + " is gone: who asks for it is told that there is none", Repair: "say so in what is known of it"},
			"UPDATE artifacts SET expired = ?, why = 'its content was lost' WHERE key = ?", max(k.o.Now, 1), r.Int(3))
		return nil
	}); err != nil {
		return err
	}
	return k.query(`SELECT t.id, s.id, q.entry, q.what, q.reason, q.run_id FROM quarantine q JOIN sessions s ON s.key = q.session LEFT JOIN tenants t ON t.key = s.tenant ORDER BY q.key`, func(r Row) error {
		what := "what it says"
		switch r.Text(3) {
		case "images":
			what = "its images"
		case "text":
			what = "more than the beginning of its text"
		}
		k.found(store.Finding{Check: "quarantine", Severity: store.SeverityNotice, Where: r.Text(0) + ": session " + r.Text(1) + ", entry " + r.Text(2),
			What: "models are not shown " + what + " any more, since run " + r.Text(5) + ": " + r.Text(4)}, "")
		return nil
	})
}
