package check

import (
	"fmt"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

// effects: runs that have ended wait for no call, a call has one of the statuses, and
// one that somebody has says who.
func (k *checker) effects() error {
	if err := k.query(`SELECT e.run, r.id, coalesce(t.id, ''), count(*) FROM effects e JOIN runs r ON r.key = e.run LEFT JOIN tenants t ON t.key = r.tenant
		WHERE r.status IN ('completed', 'failed', 'cancelled') GROUP BY e.run, r.id, t.id ORDER BY e.run`, func(r Row) error {
		k.found(store.Finding{Check: "effects", Severity: store.SeverityWarning, Where: r.Text(2) + ": run " + r.Text(1),
			What: fmt.Sprintf("it has ended, and %d calls that it asked pools for are left over: a node may still make them", r.Int(3)), Repair: "delete them"},
			"DELETE FROM effects WHERE run = ?", r.Int(0))
		return nil
	}); err != nil {
		return err
	}
	if err := k.unserved(); err != nil {
		return err
	}
	return k.query(`SELECT e.key, e.id, coalesce(r.id, ''), coalesce(t.id, ''), e.status FROM effects e JOIN runs r ON r.key = e.run LEFT JOIN tenants t ON t.key = r.tenant
		WHERE r.status NOT IN ('completed', 'failed', 'cancelled')
		AND (e.status NOT IN ('pending', 'started', 'done', 'cancelled') OR e.status = 'started' AND (e.node IS NULL OR e.attempt < 1)) ORDER BY e.key`, func(r Row) error {
		k.found(store.Finding{Check: "effects", Severity: store.SeverityError, Where: r.Text(3) + ": run " + r.Text(2) + ", call " + r.Text(1),
			What: fmt.Sprintf("nobody makes it: it is %s and nobody has it", r.Text(4)), Repair: "delete it; its run takes it for a call in doubt"},
			"DELETE FROM effects WHERE key = ?", r.Int(0))
		return nil
	})
}

// unserved are pools that calls wait for and that no node serves.
func (k *checker) unserved() error {
	if k.o.Now == 0 {
		return nil
	}
	served := map[string]bool{}
	if err := k.query("SELECT pools FROM nodes WHERE until > ?", func(r Row) error {
		for _, p := range form.Words(r.Text(0)) {
			served[p] = true
		}
		return nil
	}, k.o.Now); err != nil {
		return err
	}
	return k.query("SELECT pool, count(*) FROM effects WHERE status = 'pending' GROUP BY pool ORDER BY pool", func(r Row) error {
		if !served["*"] && !served[r.Text(0)] {
			k.found(store.Finding{Check: "effects", Severity: store.SeverityNotice, Where: "pool " + r.Text(0),
				What:   fmt.Sprintf("%d calls wait for it, and no node serves it now: each fails after cluster.pool_wait", r.Int(1)),
				Advice: "Start a node that does (agentd worker --pools " + r.Text(0) + ")."}, "")
		}
		return nil
	})
}
