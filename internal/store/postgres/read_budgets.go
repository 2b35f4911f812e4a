package postgres

import (
	"context"
	"math"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

const potColumns = "p.kind, p.id, p.money, p.tokens, p.calls, p.failures, p.held_money, p.held_tokens, p.more_money, p.more_tokens, p.more_calls, p.more_failures, p.updated"

func potOf(r row) store.Pot {
	return store.Pot{PotRef: store.PotRef{Kind: r.Text(0), ID: r.Text(1)}, Settled: store.Amounts{Money: r.Int(2), Tokens: r.Int(3)},
		Calls: r.Int(4), Failures: r.Int(5), Held: store.Amounts{Money: r.Int(6), Tokens: r.Int(7)},
		More: store.PotLimits{Money: r.Int(8), Tokens: r.Int(9), Calls: r.Int(10), Failures: r.Int(11)}, Updated: r.Int(12)}
}

// Pots implements store.BudgetReader. All are of one moment.
func (s *Store) Pots(ctx context.Context, tenant, runID string, rs []store.PotRef) ([]store.Pot, error) {
	kinds, ids := refs(rs).columns()
	out, err := list(ctx, s, "SELECT "+potColumns+`, h.money + h.keep_money, h.tokens + h.keep_tokens FROM (SELECT key FROM tenants WHERE id = $1) t
			CROSS JOIN `+namedPots+` LEFT JOIN pots p ON p.tenant = t.key AND p.kind = n.kind AND p.id = n.id
			LEFT JOIN holds h ON h.pot = p.key AND h.run = (SELECT key FROM runs WHERE tenant = t.key AND id = $4) ORDER BY n.place`, func(r row) store.Pot {
		p := potOf(r)
		p.Own = store.Amounts{Money: r.Int(13), Tokens: r.Int(14)}
		return p
	}, tenant, kinds, ids, runID)
	if err = unknownIsNone(err); err != nil {
		return nil, err
	}
	if len(out) == 0 { // a tenant that has nothing yet
		out = make([]store.Pot, len(rs))
	}
	for i := range out {
		out[i].PotRef = rs[i]
	}
	return out, nil
}

// ListPots implements store.BudgetReader. Newest means used first last.
func (s *Store) ListPots(ctx context.Context, tenant string, f store.PotFilter) ([]store.Pot, string, error) {
	limit, before := limitOr(f.Limit, 50), int64(math.MaxInt64)
	if f.Cursor != "" {
		if err := form.PlaceOf(form.PotList, f.Cursor, &before); err != nil {
			return nil, "", err
		}
	}
	w := &where{sql: "SELECT " + potColumns + ", p.key FROM pots p WHERE p.tenant = (SELECT key FROM tenants WHERE id = $1)", args: []any{tenant}}
	w.and("p.key < $%d", before)
	if f.Kind != "" {
		w.and("p.kind = $%d", f.Kind)
	}
	if f.ID != "" {
		w.and("p.id = $%d", f.ID)
	}
	type keyed struct {
		store.Pot
		key int64
	}
	rows, err := list(ctx, s, w.limit("p.key DESC", limit+1), func(r row) keyed { return keyed{potOf(r), r.Int(13)} }, w.args...)
	if err = unknownIsNone(err); err != nil {
		return nil, "", err
	}
	next := ""
	if len(rows) > limit {
		rows = rows[:limit]
		next = form.Cursor(form.PotList, rows[limit-1].key)
	}
	var out []store.Pot
	for _, r := range rows {
		out = append(out, r.Pot)
	}
	return out, next, nil
}
