package postgres

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

// budgets settles, counts, raises and reserves. Runs are locked first, then all pots
// that are touched, in the order of their kinds and ids, whoever touches them: so no
// two changes wait for each other, and what is read of a pot after that is the newest
// there is and stays so until the commit. A pot that is not there can not be locked;
// those to be written to are made before, in the same order.
func (s *Store) budgets(b *batch, c *change) {
	tx := c.tx
	if len(tx.Settles)+len(tx.Counts)+len(tx.Raises)+len(tx.Reserves) == 0 {
		return
	}
	var runs []string
	var made, named refs
	for i := range tx.Settles {
		runs = append(runs, tx.Settles[i].RunID)
		named = append(named, tx.Settles[i].Pots...)
	}
	for i := range tx.Counts {
		made = append(made, tx.Counts[i].Pots...)
	}
	for i := range tx.Raises {
		made = append(made, tx.Raises[i].PotRef)
	}
	for i := range tx.Reserves {
		runs = append(runs, tx.Reserves[i].RunID)
		made = append(made, refsOf(tx.Reserves[i].Pots)...)
	}
	slices.Sort(runs)
	runs = slices.Compact(runs)
	for _, id := range runs {
		b.add(lockRun, c.tenant, id)
	}
	kinds, ids := made.columns()
	if len(made) > 0 {
		// Who looks first uses up no key for each pot that is there.
		b.add(`INSERT INTO pots (tenant, kind, id, money, tokens, calls, failures, held_money, held_tokens, more_money, more_tokens, more_calls, more_failures, updated)
			SELECT DISTINCT $1::bigint, n.kind, n.id, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM `+namedPots+` WHERE NOT EXISTS (SELECT 1 FROM pots p WHERE p.tenant = $1 AND p.kind = n.kind AND p.id = n.id)
			ORDER BY 2, 3 ON CONFLICT DO NOTHING`, c.tenant, kinds, ids)
	}
	kinds, ids = append(made, named...).columns()
	b.add(`SELECT key FROM pots WHERE key IN (SELECT p.key FROM `+namedPots+` JOIN pots p ON p.tenant = $1 AND p.kind = n.kind AND p.id = n.id
			UNION SELECT h.pot FROM holds h JOIN runs r ON r.key = h.run WHERE r.tenant = $1 AND r.id = ANY ($4::text[]))
		ORDER BY kind, id FOR NO KEY UPDATE`, c.tenant, kinds, ids, runs)
	for i := range tx.Settles {
		s.settlement(b, c, &tx.Settles[i])
	}
	for i := range tx.Counts {
		n := &tx.Counts[i]
		addToPots(b, c, n.Pots, store.Pot{Calls: n.Calls, Failures: n.Failures, Updated: n.Time}, "")
	}
	for i := range tx.Raises {
		r := &tx.Raises[i]
		addToPots(b, c, refs{r.PotRef}, store.Pot{More: r.By, Updated: r.Time}, "")
	}
	for i := range tx.Reserves {
		s.reservation(b, c, i)
	}
}

// refs are names of pots.
type refs []store.PotRef

func refsOf(caps []store.PotCap) refs {
	var rs refs
	for i := range caps {
		rs = append(rs, caps[i].PotRef)
	}
	return rs
}

// columns are two arguments, for namedPots.
func (rs refs) columns() (kinds, ids []string) {
	kinds, ids = []string{}, []string{}
	for _, r := range rs {
		kinds, ids = append(kinds, r.Kind), append(ids, r.ID)
	}
	return kinds, ids
}

// namedPots are the pots whose names are the arrays $2 and $3.
const namedPots = `unnest($2::text[] COLLATE "C", $3::text[] COLLATE "C") WITH ORDINALITY n (kind, id, place)`

// addToPots adds what was used and allowed, where the condition holds: its argument is
// $13, a run's id.
func addToPots(b *batch, c *change, rs refs, p store.Pot, run string) {
	kinds, ids := rs.columns()
	b.add(`INSERT INTO pots AS p (tenant, kind, id, money, tokens, calls, failures, held_money, held_tokens, more_money, more_tokens, more_calls, more_failures, updated)
		SELECT $1::bigint, n.kind, n.id, $4::bigint, $5::bigint, $6::bigint, $7::bigint, 0, 0, $8::bigint, $9::bigint, $10::bigint, $11::bigint, $12::bigint FROM `+namedPots+`
		WHERE NOT EXISTS (SELECT 1 FROM holds WHERE run = (SELECT key FROM runs WHERE tenant = $1 AND id = $13) AND call IS NOT NULL) ORDER BY 2, 3
		ON CONFLICT (tenant, kind, id) DO UPDATE SET money = p.money + excluded.money, tokens = p.tokens + excluded.tokens, calls = p.calls + excluded.calls,
			failures = p.failures + excluded.failures, more_money = p.more_money + excluded.more_money, more_tokens = p.more_tokens + excluded.more_tokens,
			more_calls = p.more_calls + excluded.more_calls, more_failures = p.more_failures + excluded.more_failures, updated = greatest(p.updated, excluded.updated)`,
		c.tenant, kinds, ids, p.Settled.Money, p.Settled.Tokens, p.Calls, p.Failures, p.More.Money, p.More.Tokens, p.More.Calls, p.More.Failures, p.Updated, text(run))
}

// settlement is one Settlement. The run is locked, so its holds are what they are.
func (s *Store) settlement(b *batch, c *change, x *store.Settlement) {
	b.add(`UPDATE pots p SET money = p.money + h.used_money, tokens = p.tokens + h.used_tokens,
			held_money = p.held_money - h.free_money, held_tokens = p.held_tokens - h.free_tokens, updated = greatest(p.updated, $7)
		FROM (SELECT pot,
				CASE WHEN call IS NULL OR $3 = 'free' THEN 0 WHEN $3 = 'used' THEN $4::bigint ELSE greatest(money, $4) END AS used_money,
				CASE WHEN call IS NULL OR $3 = 'free' THEN 0 WHEN $3 = 'used' THEN $5::bigint ELSE greatest(tokens, $5) END AS used_tokens,
				CASE WHEN call IS NULL THEN 0 ELSE money END + CASE WHEN $6 THEN keep_money ELSE 0 END AS free_money,
				CASE WHEN call IS NULL THEN 0 ELSE tokens END + CASE WHEN $6 THEN keep_tokens ELSE 0 END AS free_tokens
			FROM holds WHERE run = `+runIs+` AND (call IS NOT NULL OR $6)) h WHERE p.key = h.pot`,
		c.tenant, x.RunID, x.How, x.Used.Money, x.Used.Tokens, x.Last, x.Time)
	if x.How != store.SettledFree && x.Used != (store.Amounts{}) {
		// If nothing was held for it, which should not be, what was used counts all the same.
		addToPots(b, c, x.Pots, store.Pot{Settled: x.Used, Updated: x.Time}, x.RunID)
	}
	if x.Last {
		b.add("DELETE FROM holds WHERE run = "+runIs, c.tenant, x.RunID)
	} else {
		b.add("UPDATE holds SET call = NULL, money = 0, tokens = 0 WHERE run = "+runIs+" AND call IS NOT NULL", c.tenant, x.RunID)
	}
}

// reservation is tx.Reserves[at]: what it depends on, and then, if nothing is in the
// way, what it changes.
func (s *Store) reservation(b *batch, c *change, at int) {
	r := &c.tx.Reserves[at]
	b.add(`SELECT agentd_refuse('AG409', 'run ' || $2 || ' has ended and reserves nothing') FROM runs
		WHERE tenant = $1 AND id = $2 AND status IN ('completed', 'failed', 'cancelled')`, c.tenant, r.RunID)
	kinds, ids := refsOf(r.Pots).columns()
	var money, tokens, calls, failures []int64
	for i := range r.Pots {
		m := &r.Pots[i].Max
		money, tokens, calls, failures = append(money, m.Money), append(tokens, m.Tokens), append(calls, m.Calls), append(failures, m.Failures)
	}
	need := store.Amounts{Money: store.Sum(r.Call.Money, r.Keep.Money), Tokens: store.Sum(r.Call.Tokens, r.Keep.Tokens)}
	// What own holds takes the place of is not in the way; a call that was never
	// settled and is not this one counts as used. See store.Pot.Fits, which tells from
	// these numbers what the error is. Sums are numeric: they may be larger than any
	// bigint. A pot that was deleted between making and locking it is tried again.
	b.add(`SELECT CASE WHEN key IS NULL THEN agentd_refuse('40001', 'a pot is gone') ELSE agentd_refuse('AG402', concat_ws(' ', $5::bigint, place - 1,
			money, tokens, calls, failures, held_money, held_tokens, more_money, more_tokens, more_calls, more_failures, own_money, own_tokens)) END
		FROM (SELECT n.place, p.key, p.calls, p.failures, p.held_money, p.held_tokens, p.more_money, p.more_tokens, p.more_calls, p.more_failures,
				p.money::numeric + CASE WHEN h.call <> $6 THEN h.money ELSE 0 END AS money, p.tokens::numeric + CASE WHEN h.call <> $6 THEN h.tokens ELSE 0 END AS tokens,
				coalesce(h.money::numeric + h.keep_money, 0) AS own_money, coalesce(h.tokens::numeric + h.keep_tokens, 0) AS own_tokens,
				($9::bigint[])[n.place] AS max_money, ($10::bigint[])[n.place] AS max_tokens, ($11::bigint[])[n.place] AS max_calls, ($12::bigint[])[n.place] AS max_failures
			FROM `+namedPots+` LEFT JOIN pots p ON p.tenant = $1 AND p.kind = n.kind AND p.id = n.id
			LEFT JOIN holds h ON h.pot = p.key AND h.run = (SELECT key FROM runs WHERE tenant = $1 AND id = $4)) x
		WHERE key IS NULL
			OR max_failures <> 0 AND failures >= max_failures::numeric + more_failures
			OR max_calls <> 0 AND calls > max_calls::numeric + more_calls
			OR max_money <> 0 AND money + held_money - own_money + $7::bigint > max_money::numeric + more_money
			OR max_tokens <> 0 AND tokens + held_tokens - own_tokens + $8::bigint > max_tokens::numeric + more_tokens
			OR money + held_money + $7::bigint >= `+most+` OR tokens + held_tokens + $8::bigint >= `+most+`
		ORDER BY place LIMIT 1`,
		c.tenant, kinds, ids, r.RunID, at, r.Key, need.Money, need.Tokens, money, tokens, calls, failures)
	// Each pot's row is changed once: what was held goes, what is held comes.
	b.add(`UPDATE pots p SET money = p.money + x.lost_money, tokens = p.tokens + x.lost_tokens,
			held_money = p.held_money - x.own_money + CASE WHEN x.named THEN $6::bigint ELSE 0 END, held_tokens = p.held_tokens - x.own_tokens + CASE WHEN x.named THEN $7::bigint ELSE 0 END,
			updated = greatest(p.updated, $8::bigint)
		FROM (SELECT coalesce(n.key, h.pot) AS key, n.key IS NOT NULL AS named, coalesce(h.money + h.keep_money, 0) AS own_money, coalesce(h.tokens + h.keep_tokens, 0) AS own_tokens,
				CASE WHEN h.call <> $5 THEN h.money ELSE 0 END AS lost_money, CASE WHEN h.call <> $5 THEN h.tokens ELSE 0 END AS lost_tokens
			FROM (`+keysOfPots+`) n FULL JOIN (SELECT * FROM holds WHERE run = (SELECT key FROM runs WHERE tenant = $1 AND id = $4)) h ON h.pot = n.key) x
		WHERE p.key = x.key`, c.tenant, kinds, ids, r.RunID, r.Key, need.Money, need.Tokens, r.Time)
	b.add(`DELETE FROM holds WHERE run = (SELECT key FROM runs WHERE tenant = $1 AND id = $4) AND pot NOT IN (`+keysOfPots+`)`, c.tenant, kinds, ids, r.RunID)
	b.add(`INSERT INTO holds (run, pot, call, money, tokens, keep_money, keep_tokens)
		SELECT (SELECT key FROM runs WHERE tenant = $1 AND id = $4), n.key, $5::text, $6::bigint, $7::bigint, $8::bigint, $9::bigint FROM (`+keysOfPots+`) n
		ON CONFLICT (run, pot) DO UPDATE SET call = excluded.call, money = excluded.money, tokens = excluded.tokens,
			keep_money = excluded.keep_money, keep_tokens = excluded.keep_tokens`,
		c.tenant, kinds, ids, r.RunID, r.Key, r.Call.Money, r.Call.Tokens, r.Keep.Money, r.Keep.Tokens)
}

// keysOfPots are the keys of the pots named by $2 and $3, each once.
const keysOfPots = `SELECT DISTINCT p.key FROM ` + namedPots + ` JOIN pots p ON p.tenant = $1 AND p.kind = n.kind AND p.id = n.id`

// most is the first number that is too large for a pot.
const most = "9223372036854775807"

// exhausted is the error of a reservation that the check above refused, made of what
// it read.
func (c *change) exhausted(message string) error {
	var at, place int
	var p store.Pot
	n, err := fmt.Sscan(message, &at, &place, saturated{&p.Settled.Money}, saturated{&p.Settled.Tokens}, &p.Calls, &p.Failures, &p.Held.Money, &p.Held.Tokens,
		&p.More.Money, &p.More.Tokens, &p.More.Calls, &p.More.Failures, saturated{&p.Own.Money}, saturated{&p.Own.Tokens})
	if err != nil || at >= len(c.tx.Reserves) || place >= len(c.tx.Reserves[at].Pots) {
		return fmt.Errorf("a reservation was refused without a reason that can be read (%q, %d numbers): %w", message, n, store.ErrExhausted)
	}
	r := &c.tx.Reserves[at]
	max := &r.Pots[place]
	p.PotRef = max.PotRef
	if e := p.Fits(max.Max, r.Call, r.Keep); e != nil {
		return form.Refuse(e, "run %s", r.RunID)
	}
	return form.Invalid("a reservation of run %s that no number holds", r.RunID)
}

// saturated reads a number that may be too large; it is the largest then.
type saturated struct{ to *int64 }

// Scan implements fmt.Scanner.
func (s saturated) Scan(state fmt.ScanState, _ rune) error {
	word, err := state.Token(true, nil)
	if err != nil {
		return err
	}
	if len(strings.TrimLeft(string(word), "0")) > len(most)-1 {
		*s.to = math.MaxInt64
		return nil
	}
	if _, err = fmt.Sscan(string(word), s.to); err != nil {
		*s.to = math.MaxInt64
	}
	return nil
}
