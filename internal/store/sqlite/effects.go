package sqlite

import (
	"context"
	"errors"
	"strings"

	"agentd/internal/store"
)

// effects applies what a Tx has of calls for pools.
func (a *applier) effects(t int64, tx *store.Tx) error {
	for i := range tx.Effects {
		if err := a.effect(t, &tx.Effects[i]); err != nil {
			return err
		}
	}
	for i := range tx.Runs {
		if r := &tx.Runs[i]; r.Ended > 0 {
			row, err := a.runRow(t, r.ID)
			if err != nil {
				return err
			}
			if _, _, err := a.c.exec("DELETE FROM effects WHERE run = ?", row.key); err != nil {
				return err
			}
		}
	}
	return nil
}

// freeEffect is the condition of an effect that may be taken; ? is the time.
const freeEffect = `(e.status = 'pending' OR e.status = 'started' AND e.stop = 0 AND e.class <> 'once'
	AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = e.node AND n.until > ?))`

func (a *applier) effect(t int64, x *store.EffectChange) error {
	var n int64
	var err error
	switch x.Op {
	case store.AskEffect, store.StopEffect, store.CancelEffect, store.DropEffect:
		r, err := a.runRow(t, x.RunID)
		if err != nil {
			return err
		}
		switch {
		case x.Op == store.AskEffect:
			_, _, err = a.c.exec(`INSERT INTO effects (run, id, kind, pool, class, version, status, stop, node, attempt, body, result, created, started, ended)
				VALUES (?, ?, ?, ?, ?, ?, 'pending', 0, NULL, 0, ?, NULL, ?, 0, 0) ON CONFLICT (run, id) DO NOTHING`,
				r.key, x.ID, x.Kind, x.Pool, x.Class, x.Version, blob(x.Body), x.Created)
		case x.Op == store.StopEffect:
			_, _, err = a.c.exec(`UPDATE effects SET stop = 1, status = CASE status WHEN 'pending' THEN 'cancelled' ELSE status END
				WHERE run = ? AND id = ? AND status IN ('pending', 'started')`, r.key, x.ID)
		case x.Op == store.CancelEffect:
			_, _, err = a.c.exec("UPDATE effects SET stop = 1, status = 'cancelled' WHERE run = ? AND id = ? AND status = 'pending'", r.key, x.ID)
		case x.ID == "":
			_, _, err = a.c.exec("DELETE FROM effects WHERE run = ? AND kind = ?", r.key, x.Kind)
		default:
			_, _, err = a.c.exec("DELETE FROM effects WHERE run = ? AND id = ?", r.key, x.ID)
		}
		return err
	case store.TakeEffect:
		if ok, err := a.leased(x.Node, x.Now); err != nil || !ok {
			return orRefuse(err, store.ErrLapsed, "node %s", x.Node)
		}
		n, _, err = a.c.exec("UPDATE effects AS e SET status = 'started', node = ?, attempt = attempt + 1, started = ? WHERE key = ? AND "+freeEffect, x.Node, x.Now, x.Key, x.Now)
	case store.FinishEffect:
		n, _, err = a.c.exec("UPDATE effects SET status = 'done', result = ?, ended = ? WHERE key = ? AND status = 'started'", blob(x.Result), x.Ended, x.Key)
	case store.FreeEffect:
		_, _, err = a.c.exec(`UPDATE effects SET status = CASE stop WHEN 0 THEN 'pending' ELSE 'cancelled' END, node = NULL
			WHERE key = ? AND status = 'started' AND node = ? AND attempt = ?`, x.Key, x.Node, x.Attempt)
		return err
	}
	if err == nil && n == 0 {
		err = refuse(store.ErrConflict, "call %d is not there any more, or is somebody else's", x.Key)
	}
	return err
}

// effectColumns: ?1 is the time.
const effectColumns = `SELECT e.key, t.id, r.id, e.id, e.kind, e.version, e.pool, e.class, e.status, e.node, e.attempt, e.stop, e.result, e.created, e.started, e.ended,
	e.status = 'started' AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = e.node AND n.until > ?1) AS lost, %
	FROM effects e JOIN runs r ON r.key = e.run JOIN tenants t ON t.key = r.tenant WHERE `

func effectOf(r row) *store.Effect {
	return &store.Effect{Key: r.int(0), Tenant: r.text(1), RunID: r.text(2), ID: r.text(3), Kind: r.text(4), Version: int(r.int(5)), Pool: r.text(6), Class: r.text(7),
		Status: r.text(8), Node: r.text(9), Attempt: int(r.int(10)), Stop: r.int(11) != 0, Result: r.blob(12), Created: r.int(13), Started: r.int(14), Ended: r.int(15),
		Lost: r.int(16) != 0, Body: r.blob(17)}
}

// effectsMost is how many effects are looked at for a claim.
const effectsMost = 256

// ClaimEffects implements store.Effects: candidates are read, and each is taken by a
// commit that is refused if somebody was faster.
func (s *Store) ClaimEffects(ctx context.Context, q store.EffectClaim) ([]*store.Effect, error) {
	var free []store.EffectPlace
	err := s.read(ctx, func(c *conn) error {
		pools, args := "", []any{q.Now, q.Version}
		in := func(names []string) string {
			for _, p := range names {
				args = append(args, p)
			}
			return "e.pool IN (" + strings.TrimSuffix(strings.Repeat("?, ", len(names)), ", ") + ")"
		}
		if !q.Any {
			pools += " AND " + in(q.Pools)
		}
		pools += " AND NOT " + in(q.Full())
		return c.query(ctx, `SELECT x.key, t.id, x.pool, x.attempt, x.status FROM (SELECT e.key, e.run, e.pool, e.attempt, e.status, row_number() OVER (PARTITION BY e.pool, e.run ORDER BY e.key) AS turn
			FROM effects e WHERE e.status IN ('pending', 'started') AND `+freeEffect+` AND e.version <= ?`+pools+`) x
			JOIN runs r ON r.key = x.run JOIN tenants t ON t.key = r.tenant ORDER BY x.turn, x.key LIMIT ?`, func(r row) error {
			free = append(free, store.EffectPlace{Key: r.int(0), Tenant: r.text(1), Pool: r.text(2), Attempt: int(r.int(3)), Status: r.text(4)})
			return nil
		}, append(args, effectsMost)...)
	})
	if err != nil {
		return nil, err
	}
	var out []*store.Effect
	for _, f := range q.Choose(free) {
		err := s.Commit(ctx, &store.Tx{Tenant: f.Tenant, Effects: []store.EffectChange{{Op: store.TakeEffect, Now: q.Now, Effect: store.Effect{Key: f.Key, Node: q.Node}}}})
		switch {
		case errors.Is(err, store.ErrConflict):
			continue
		case err != nil:
			return out, err
		}
		if err := s.read(ctx, func(c *conn) error {
			return c.query(ctx, strings.Replace(effectColumns, "%", "e.body", 1)+"e.key = ?2", func(r row) error {
				out = append(out, effectOf(r))
				return nil
			}, q.Now, f.Key)
		}); err != nil {
			return out, err
		}
	}
	return out, nil
}

// Effects implements store.Effects.
func (s *Store) Effects(ctx context.Context, f store.EffectFilter) ([]*store.Effect, error) {
	where, args := "t.id = ?2 AND r.id = ?3", []any{f.Now, f.Tenant, f.RunID}
	switch {
	case f.Node != "":
		where, args = "e.status = 'started' AND e.node = ?2", []any{f.Now, f.Node}
	case f.Lost:
		where, args = "e.status = 'started' AND (e.class = 'once' OR e.stop = 1) AND lost", []any{f.Now}
	case f.ID != "":
		where += " AND e.id = ?4"
		args = append(args, f.ID)
	}
	var out []*store.Effect
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, strings.Replace(effectColumns, "%", "NULL", 1)+where+" ORDER BY e.key", func(r row) error {
			out = append(out, effectOf(r))
			return nil
		}, args...)
	})
	return out, err
}

// Pools implements store.Effects.
func (s *Store) Pools(ctx context.Context) ([]store.PoolLoad, error) {
	var out []store.PoolLoad
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, poolLoads, func(r row) error {
			out = append(out, store.PoolLoad{Pool: r.text(0), Pending: int(r.int(1)), Started: int(r.int(2)), Oldest: r.int(3)})
			return nil
		})
	})
	return out, err
}

const poolLoads = `SELECT pool, sum(CASE status WHEN 'pending' THEN 1 ELSE 0 END), sum(CASE status WHEN 'started' THEN 1 ELSE 0 END),
	coalesce(min(CASE status WHEN 'pending' THEN created END), 0) FROM effects WHERE status IN ('pending', 'started') GROUP BY pool ORDER BY pool`
