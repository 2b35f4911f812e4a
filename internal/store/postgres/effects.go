package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

// effects makes what a Tx has of calls for pools.
func (s *Store) effects(b *batch, c *change) {
	for i := range c.tx.Effects {
		s.effect(b, c, &c.tx.Effects[i])
	}
	for i := range c.tx.Runs {
		if r := &c.tx.Runs[i]; r.Ended > 0 {
			b.add("DELETE FROM effects WHERE run = "+runKey, c.tenant, r.ID)
		}
	}
}

// freeEffect is the condition of an effect that may be taken.
const freeEffect = `(e.status = 'pending' OR e.status = 'started' AND e.stop = 0 AND e.class <> 'once'
	AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = e.node AND n.until > ` + serverNow + `))`

func (s *Store) effect(b *batch, c *change, x *store.EffectChange) {
	const gone = ` RETURNING 1) SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM u) THEN agentd_refuse('AG409', 'call ' || $1::bigint || ' is not there any more, or is somebody else''s') END`
	switch x.Op {
	case store.AskEffect:
		b.add(`INSERT INTO effects (run, id, kind, pool, class, version, status, stop, node, attempt, body, result, created, started, ended)
			VALUES (`+runKey+`, $3, $4, $5, $6, $7, 'pending', 0, NULL, 0, $8, NULL, $9, 0, 0) ON CONFLICT (run, id) DO NOTHING`,
			c.tenant, x.RunID, x.ID, x.Kind, x.Pool, x.Class, x.Version, blob(x.Body), x.Created)
	case store.StopEffect:
		b.add(`UPDATE effects SET stop = 1, status = CASE status WHEN 'pending' THEN 'cancelled' ELSE status END
			WHERE run = `+runKey+` AND id = $3 AND status IN ('pending', 'started')`, c.tenant, x.RunID, x.ID)
	case store.CancelEffect:
		b.add("UPDATE effects SET stop = 1, status = 'cancelled' WHERE run = "+runKey+" AND id = $3 AND status = 'pending'", c.tenant, x.RunID, x.ID)
	case store.DropEffect:
		if x.ID == "" {
			b.add("DELETE FROM effects WHERE run = "+runKey+" AND kind = $3", c.tenant, x.RunID, x.Kind)
			return
		}
		b.add("DELETE FROM effects WHERE run = "+runKey+" AND id = $3", c.tenant, x.RunID, x.ID)
	case store.TakeEffect:
		b.add(leased, x.Node)
		b.add(`WITH u AS (UPDATE effects AS e SET status = 'started', node = $2, attempt = attempt + 1, started = $3 WHERE key = $1 AND `+freeEffect+gone, x.Key, x.Node, x.Now)
	case store.FinishEffect:
		b.add(`WITH u AS (UPDATE effects SET status = 'done', result = $2, ended = $3 WHERE key = $1 AND status = 'started'`+gone, x.Key, blob(x.Result), x.Ended)
	case store.FreeEffect:
		b.add(`UPDATE effects SET status = CASE stop WHEN 0 THEN 'pending' ELSE 'cancelled' END, node = NULL
			WHERE key = $1 AND status = 'started' AND node = $2 AND attempt = $3`, x.Key, x.Node, x.Attempt)
	}
}

const (
	effectColumns = `SELECT e.key, t.id, r.id, e.id, e.kind, e.version, e.pool, e.class, e.status, e.node, e.attempt, e.stop, e.result, e.created, e.started, e.ended,
	e.status = 'started' AND ` + effectLost + `, %
	FROM effects e JOIN runs r ON r.key = e.run JOIN tenants t ON t.key = r.tenant WHERE `
	effectLost = `NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = e.node AND n.until > ` + serverNow + `)`
)

func effectOf(r row) *store.Effect {
	return &store.Effect{Key: r.Int(0), Tenant: r.Text(1), RunID: r.Text(2), ID: r.Text(3), Kind: r.Text(4), Version: int(r.Int(5)), Pool: r.Text(6), Class: r.Text(7),
		Status: r.Text(8), Node: r.Text(9), Attempt: int(r.Int(10)), Stop: r.Int(11) != 0, Result: r.Blob(12), Created: r.Int(13), Started: r.Int(14), Ended: r.Int(15),
		Lost: r.Int(16) != 0, Body: r.Blob(17)}
}

// effectsMost is how many effects are looked at for a claim.
const effectsMost = 256

// ClaimEffects implements store.Effects. What is free is read first, which is all that
// an idle node does; then the rows are locked, passing over those that another node is
// just taking, and taken if they are still free.
func (s *Store) ClaimEffects(ctx context.Context, q store.EffectClaim) ([]*store.Effect, error) {
	pools := q.Pools
	if pools == nil {
		pools = []string{}
	}
	free, err := list(ctx, s, `SELECT x.key, x.pool FROM (SELECT e.key, e.pool, row_number() OVER (PARTITION BY e.pool, e.run ORDER BY e.key) AS turn
			FROM effects e WHERE e.status IN ('pending', 'started') AND `+freeEffect+` AND e.version <= $1 AND ($2 OR e.pool = ANY($3)) AND NOT e.pool = ANY($4)) x
			ORDER BY x.turn, x.key LIMIT $5`, func(r row) store.EffectPlace { return store.EffectPlace{Key: r.Int(0), Pool: r.Text(1)} },
		q.Version, q.Any, pools, q.Full(), effectsMost)
	if err != nil {
		return nil, unknownIsNone(err)
	}
	var keys []int64
	for _, f := range q.Choose(free) {
		keys = append(keys, f.Key)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	if err := s.presence.allowed(); err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.active.Done()
	var out []*store.Effect
	// It is not tried again: what was taken and nobody knows of is found by who has it.
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		out = nil
		if ok, err := get(ctx, tx, "SELECT 1 FROM nodes WHERE id = $1 AND until > "+serverNow+" FOR SHARE", func(row) {}, q.Node); err != nil || !ok {
			if err == nil {
				err = form.Refuse(store.ErrLapsed, "node %s", q.Node)
			}
			return err
		}
		var taken []int64
		if err := query(ctx, tx, "SELECT e.key FROM effects e WHERE e.key = ANY($1) AND "+freeEffect+" ORDER BY e.key FOR UPDATE OF e SKIP LOCKED", func(r row) error {
			taken = append(taken, r.Int(0))
			return nil
		}, keys); err != nil || len(taken) == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, "UPDATE effects SET status = 'started', node = $2, attempt = attempt + 1, started = $3 WHERE key = ANY($1)", taken, q.Node, q.Now); err != nil {
			return err
		}
		return query(ctx, tx, strings.Replace(effectColumns, "%", "e.body", 1)+"e.key = ANY($1) ORDER BY e.key", func(r row) error {
			out = append(out, effectOf(r))
			return nil
		}, taken)
	})
	if err != nil {
		return nil, s.target.wrap("postgres.ClaimEffects", err)
	}
	return out, nil
}

// Effects implements store.Effects.
func (s *Store) Effects(ctx context.Context, f store.EffectFilter) ([]*store.Effect, error) {
	where, args := "t.id = $1 AND r.id = $2", []any{f.Tenant, f.RunID}
	switch {
	case f.Node != "":
		where, args = "e.status = 'started' AND e.node = $1", []any{f.Node}
	case f.Lost:
		where, args = "e.status = 'started' AND (e.class = 'once' OR e.stop = 1) AND "+effectLost, nil
	case f.ID != "":
		where += " AND e.id = $3"
		args = append(args, f.ID)
	}
	return list(ctx, s, strings.Replace(effectColumns, "%", "NULL::bytea", 1)+where+" ORDER BY e.key", effectOf, args...)
}

// Pools implements store.Effects.
func (s *Store) Pools(ctx context.Context) ([]store.PoolLoad, error) {
	return list(ctx, s, `SELECT pool, sum(CASE status WHEN 'pending' THEN 1 ELSE 0 END)::bigint, sum(CASE status WHEN 'started' THEN 1 ELSE 0 END)::bigint,
		coalesce(min(CASE status WHEN 'pending' THEN created END), 0) FROM effects WHERE status IN ('pending', 'started') GROUP BY pool ORDER BY pool`, func(r row) store.PoolLoad {
		return store.PoolLoad{Pool: r.Text(0), Pending: int(r.Int(1)), Started: int(r.Int(2)), Oldest: r.Int(3)}
	})
}
