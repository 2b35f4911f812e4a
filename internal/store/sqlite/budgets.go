package sqlite

import (
	"context"
	"math"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

// budgets settles, counts, raises and reserves. A reservation that is refused was
// refused before anything of it was written, so the usual one, which is alone in its
// Tx, costs its group nothing.
func (a *applier) budgets(t int64, tx *store.Tx) error {
	for i := range tx.Settles {
		if err := a.settle(t, &tx.Settles[i]); err != nil {
			return err
		}
	}
	for i := range tx.Counts {
		c := &tx.Counts[i]
		for _, ref := range c.Pots {
			if err := a.addToPot(t, ref, store.Pot{Calls: c.Calls, Failures: c.Failures, Updated: c.Time}); err != nil {
				return err
			}
		}
	}
	for i := range tx.Raises {
		r := &tx.Raises[i]
		if err := a.addToPot(t, r.PotRef, store.Pot{More: r.By, Updated: r.Time}); err != nil {
			return err
		}
	}
	for i := range tx.Reserves {
		if err := a.reserve(t, &tx.Reserves[i]); err != nil {
			return err
		}
	}
	return nil
}

// hold is what a run holds in a pot.
type hold struct {
	pot     int64
	call    string
	amounts store.Amounts
	keep    store.Amounts
	taken   bool // by the reservation that is being made
}

func (a *applier) holds(run int64) ([]hold, error) {
	var hs []hold
	err := a.c.query(context.Background(), "SELECT pot, call, money, tokens, keep_money, keep_tokens FROM holds WHERE run = ? ORDER BY pot", func(r row) error {
		hs = append(hs, hold{pot: r.int(0), call: r.text(1), amounts: store.Amounts{Money: r.int(2), Tokens: r.int(3)},
			keep: store.Amounts{Money: r.int(4), Tokens: r.int(5)}})
		return nil
	}, run)
	return hs, err
}

const potColumns = "SELECT key, kind, id, money, tokens, calls, failures, held_money, held_tokens, more_money, more_tokens, more_calls, more_failures, updated FROM pots "

func potOf(r row) (key int64, p store.Pot) {
	return r.int(0), store.Pot{PotRef: store.PotRef{Kind: r.text(1), ID: r.text(2)}, Settled: store.Amounts{Money: r.int(3), Tokens: r.int(4)},
		Calls: r.int(5), Failures: r.int(6), Held: store.Amounts{Money: r.int(7), Tokens: r.int(8)},
		More: store.PotLimits{Money: r.int(9), Tokens: r.int(10), Calls: r.int(11), Failures: r.int(12)}, Updated: r.int(13)}
}

// pot finds a pot. One that nobody has used has the key 0.
func pot(ctx context.Context, c *conn, t int64, ref store.PotRef) (key int64, p store.Pot, err error) {
	p.PotRef = ref
	err = c.query(ctx, potColumns+"WHERE tenant = ? AND kind = ? AND id = ?", func(r row) error {
		key, p = potOf(r)
		return nil
	}, t, ref.Kind, ref.ID)
	return key, p, err
}

// addToPot adds what was used, held and allowed, and makes the pot if need be.
func (a *applier) addToPot(t int64, ref store.PotRef, p store.Pot) error {
	_, _, err := a.c.exec(`INSERT INTO pots (tenant, kind, id, money, tokens, calls, failures, held_money, held_tokens, more_money, more_tokens, more_calls, more_failures, updated)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (tenant, kind, id) DO UPDATE SET money = money + excluded.money, tokens = tokens + excluded.tokens, calls = calls + excluded.calls,
			failures = failures + excluded.failures, held_money = held_money + excluded.held_money, held_tokens = held_tokens + excluded.held_tokens,
			more_money = more_money + excluded.more_money, more_tokens = more_tokens + excluded.more_tokens, more_calls = more_calls + excluded.more_calls,
			more_failures = more_failures + excluded.more_failures, updated = max(updated, excluded.updated)`,
		t, ref.Kind, ref.ID, p.Settled.Money, p.Settled.Tokens, p.Calls, p.Failures, p.Held.Money, p.Held.Tokens,
		p.More.Money, p.More.Tokens, p.More.Calls, p.More.Failures, p.Updated)
	return err
}

// changePot adds to a pot that is there.
func (a *applier) changePot(key int64, settled, held store.Amounts, now int64) error {
	_, _, err := a.c.exec("UPDATE pots SET money = money + ?, tokens = tokens + ?, held_money = held_money + ?, held_tokens = held_tokens + ?, updated = max(updated, ?) WHERE key = ?",
		settled.Money, settled.Tokens, held.Money, held.Tokens, now, key)
	return err
}

func (a *applier) settle(t int64, s *store.Settlement) error {
	r, err := a.runRow(t, s.RunID)
	if err != nil {
		return err
	}
	hs, err := a.holds(r.key)
	if err != nil {
		return err
	}
	open := false
	for i := range hs {
		h := &hs[i]
		var used, freed store.Amounts
		if h.call != "" {
			open, freed = true, h.amounts
			switch s.How {
			case store.SettledUsed:
				used = s.Used
			case store.SettledFree:
			default:
				used = store.Amounts{Money: max(h.amounts.Money, s.Used.Money), Tokens: max(h.amounts.Tokens, s.Used.Tokens)}
			}
		}
		if s.Last {
			freed = store.Amounts{Money: freed.Money + h.keep.Money, Tokens: freed.Tokens + h.keep.Tokens}
		} else if h.call == "" {
			continue
		}
		if err := a.changePot(h.pot, used, negative(freed), s.Time); err != nil {
			return err
		}
	}
	switch {
	case s.Last && len(hs) > 0:
		_, _, err = a.c.exec("DELETE FROM holds WHERE run = ?", r.key)
	case open:
		_, _, err = a.c.exec("UPDATE holds SET call = NULL, money = 0, tokens = 0 WHERE run = ?", r.key)
	}
	if err != nil || open || s.How == store.SettledFree || s.Used == (store.Amounts{}) {
		return err
	}
	// Nothing was held for it, which should not be; what was used counts all the same.
	for _, ref := range s.Pots {
		if err := a.addToPot(t, ref, store.Pot{Settled: s.Used, Updated: s.Time}); err != nil {
			return err
		}
	}
	return nil
}

func negative(a store.Amounts) store.Amounts {
	return store.Amounts{Money: -a.Money, Tokens: -a.Tokens}
}

func (a *applier) reserve(t int64, r *store.Reservation) error {
	run, err := a.runRow(t, r.RunID)
	if err != nil {
		return err
	}
	if form.Ended(run.status) {
		return refuse(store.ErrConflict, "run %s has ended and reserves nothing", r.RunID)
	}
	hs, err := a.holds(run.key)
	if err != nil {
		return err
	}
	find := func(pot int64) *hold {
		for i := range hs {
			if hs[i].pot == pot {
				return &hs[i]
			}
		}
		return nil
	}
	// First everything is looked at, then something is written.
	keys := make([]int64, len(r.Pots))
	for i := range r.Pots {
		c := &r.Pots[i]
		key, p, err := pot(context.Background(), a.c, t, c.PotRef)
		if err != nil {
			return err
		}
		keys[i] = key
		if h := find(key); h != nil && key != 0 {
			h.taken = true
			p.Own = store.Amounts{Money: h.amounts.Money + h.keep.Money, Tokens: h.amounts.Tokens + h.keep.Tokens}
			lost := h.lost(r.Key)
			p.Settled.Money, p.Settled.Tokens = store.Sum(p.Settled.Money, lost.Money), store.Sum(p.Settled.Tokens, lost.Tokens)
		}
		if e := p.Fits(c.Max, r.Call, r.Keep); e != nil {
			return refuse(e, "run %s", r.RunID)
		}
		if store.Sum(p.Held.Money, p.Settled.Money, r.Call.Money, r.Keep.Money) == math.MaxInt64 || store.Sum(p.Held.Tokens, p.Settled.Tokens, r.Call.Tokens, r.Keep.Tokens) == math.MaxInt64 {
			return invalid("a reservation of run %s that no number holds", r.RunID)
		}
	}
	for i := range hs {
		h := &hs[i]
		own := store.Amounts{Money: h.amounts.Money + h.keep.Money, Tokens: h.amounts.Tokens + h.keep.Tokens}
		if err := a.changePot(h.pot, h.lost(r.Key), negative(own), r.Time); err != nil {
			return err
		}
		if !h.taken {
			if _, _, err := a.c.exec("DELETE FROM holds WHERE run = ? AND pot = ?", run.key, h.pot); err != nil {
				return err
			}
		}
	}
	total := store.Amounts{Money: r.Call.Money + r.Keep.Money, Tokens: r.Call.Tokens + r.Keep.Tokens}
	for i := range r.Pots {
		ref := r.Pots[i].PotRef
		if keys[i] != 0 {
			err = a.changePot(keys[i], store.Amounts{}, total, r.Time)
		} else if err = a.addToPot(t, ref, store.Pot{Held: total, Updated: r.Time}); err == nil {
			keys[i], _, err = pot(context.Background(), a.c, t, ref)
		}
		if err == nil {
			_, _, err = a.c.exec(`INSERT INTO holds (run, pot, call, money, tokens, keep_money, keep_tokens) VALUES (?, ?, ?, ?, ?, ?, ?)
				ON CONFLICT (run, pot) DO UPDATE SET call = excluded.call, money = excluded.money, tokens = excluded.tokens,
					keep_money = excluded.keep_money, keep_tokens = excluded.keep_tokens`,
				run.key, keys[i], r.Key, r.Call.Money, r.Call.Tokens, r.Keep.Money, r.Keep.Tokens)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lost is what a hold is settled at when the call of key takes its place: the call
// that it was for was never settled, and may have been made.
func (h *hold) lost(key string) store.Amounts {
	if h.call == "" || h.call == key {
		return store.Amounts{}
	}
	return h.amounts
}

// Pots implements store.BudgetReader.
func (s *Store) Pots(ctx context.Context, tenant, runID string, refs []store.PotRef) ([]store.Pot, error) {
	out := make([]store.Pot, len(refs))
	err := s.read(ctx, func(c *conn) error {
		var t int64
		if _, err := c.get("SELECT key FROM tenants WHERE id = ?", []any{&t}, tenant); err != nil {
			return err
		}
		for i, ref := range refs {
			key, p, err := pot(ctx, c, t, ref)
			if err != nil {
				return err
			}
			if out[i] = p; key == 0 || runID == "" {
				continue
			}
			own := &out[i].Own
			if _, err := c.get(`SELECT money + keep_money, tokens + keep_tokens FROM holds
				WHERE run = (SELECT key FROM runs WHERE tenant = ? AND id = ?) AND pot = ?`, []any{&own.Money, &own.Tokens}, t, runID, key); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// ListPots implements store.BudgetReader. Newest means used first last.
func (s *Store) ListPots(ctx context.Context, tenant string, f store.PotFilter) (pots []store.Pot, next string, err error) {
	limit, before := limitOr(f.Limit, 50), int64(math.MaxInt64)
	if f.Cursor != "" {
		if err := form.PlaceOf(form.PotList, f.Cursor, &before); err != nil {
			return nil, "", err
		}
	}
	var last int64
	err = s.read(ctx, func(c *conn) error {
		return c.query(ctx, potColumns+`WHERE tenant = (SELECT key FROM tenants WHERE id = ?) AND key < ? AND (? = '' OR kind = ?) AND (? = '' OR id = ?)
			ORDER BY key DESC LIMIT ?`, func(r row) error {
			key, p := potOf(r)
			if len(pots) == limit {
				next = form.Cursor(form.PotList, last)
				return nil
			}
			last, pots = key, append(pots, p)
			return nil
		}, tenant, before, f.Kind, f.Kind, f.ID, f.ID, limit+1)
	})
	return pots, next, err
}
