package check

import (
	"agentd/internal/store"
)

// budgets: what is held is what the holds say, and runs that have ended hold
// nothing.
func (k *checker) budgets() error {
	err := k.query(`SELECT DISTINCT h.run, coalesce(r.id, ''), coalesce(t.id, '') FROM holds h
		LEFT JOIN runs r ON r.key = h.run LEFT JOIN tenants t ON t.key = r.tenant
		WHERE r.key IS NULL OR r.status IN ('completed', 'failed', 'cancelled')`, func(r Row) error {
		where := r.Text(2) + ": run " + r.Text(1)
		if r.Text(1) == "" {
			where = "a run that is gone"
		}
		k.found(store.Finding{Check: "budgets", Severity: store.SeverityWarning, Where: where,
			What:   "it has ended and still holds a part of its budgets: others can not use it",
			Repair: "release it; a call that was never settled counts as used"},
			"UPDATE pots SET money = money + coalesce((SELECT h.money FROM holds h WHERE h.pot = pots.key AND h.run = ? AND h.call IS NOT NULL), 0), "+
				"tokens = tokens + coalesce((SELECT h.tokens FROM holds h WHERE h.pot = pots.key AND h.run = ? AND h.call IS NOT NULL), 0) "+
				"WHERE key IN (SELECT pot FROM holds WHERE run = ?)", r.Int(0), r.Int(0), r.Int(0))
		k.also("DELETE FROM holds WHERE run = ?", r.Int(0))
		k.also(heldAgain + " WHERE " + heldWrong)
		return nil
	})
	if err != nil {
		return err
	}
	return k.query("SELECT pots.kind, pots.id, coalesce(t.id, ''), pots.key FROM pots LEFT JOIN tenants t ON t.key = pots.tenant WHERE "+heldWrong, func(r Row) error {
		k.found(store.Finding{Check: "budgets", Severity: store.SeverityError, Where: r.Text(2) + ": budget of " + r.Text(0) + " " + r.Text(1),
			What: "what it says is held is not what its runs hold", Repair: "sum it up again"}, heldAgain+" WHERE key = ?", r.Int(3))
		return nil
	})
}

const (
	heldMoney  = "coalesce((SELECT sum(money + keep_money) FROM holds WHERE pot = pots.key), 0)"
	heldTokens = "coalesce((SELECT sum(tokens + keep_tokens) FROM holds WHERE pot = pots.key), 0)"
	heldAgain  = "UPDATE pots SET held_money = " + heldMoney + ", held_tokens = " + heldTokens
	heldWrong  = "(held_money <> " + heldMoney + " OR held_tokens <> " + heldTokens + ")"
)

// also adds a statement to the repair of the last finding.
func (k *checker) also(sql string, args ...any) {
	k.repairs = append(k.repairs, Repair{len(k.report.Findings) - 1, sql, args})
}
