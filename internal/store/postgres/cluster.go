package postgres

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

var _ store.Cluster = (*Store)(nil)

// Leases go by the server's clock, whatever the clocks of nodes say.
const (
	serverNow  = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`
	unfinished = " NOT IN ('completed', 'failed', 'cancelled')"
)

// cluster makes what a Tx has of nodes, claims, mail and holds.
func (s *Store) cluster(b *batch, c *change) {
	tx := c.tx
	for i := range tx.Runs {
		if r := &tx.Runs[i]; r.Ended > 0 { // who ends gives itself back
			b.add("DELETE FROM claims WHERE run = "+runKey, c.tenant, r.ID)
		}
	}
	for i := range tx.Nodes {
		s.node(b, &tx.Nodes[i])
	}
	for i := range tx.Claims {
		s.claim(b, c, &tx.Claims[i])
	}
	for i := range tx.Holds {
		s.hold(b, c, &tx.Holds[i])
	}
	for _, m := range tx.Mail {
		b.addUnique(taken("mail %s of run %s exists", m.ID, m.RunID), `INSERT INTO mail (run, id, kind, body, created, applied, outcome) VALUES (`+runKey+`, $3, $4, $5, $6, $7, $8)`,
			c.tenant, m.RunID, m.ID, m.Kind, blob(m.Body), m.Created, m.Applied, blob(m.Outcome))
	}
	for _, m := range tx.MailDone {
		b.add(`WITH u AS (UPDATE mail SET applied = $4, outcome = $5 WHERE run = `+runKey+` AND id = $3 AND applied = 0 RETURNING 1)
			SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM u) THEN agentd_refuse('AG409', 'mail ' || $3 || ' of run ' || $2 || ' does not wait') END`,
			c.tenant, m.RunID, m.ID, m.Applied, blob(m.Outcome))
	}
	for _, m := range tx.DropMail {
		b.add(`DELETE FROM mail WHERE run = `+runKey+` AND id = $3`, c.tenant, m.RunID, m.ID)
	}
	s.effects(b, c)
}

func (s *Store) node(b *batch, n *store.NodeChange) {
	switch {
	case n.Leave:
		b.add("DELETE FROM nodes WHERE id = $1", n.ID)
	case n.Join:
		b.addUnique(taken("node %s exists", n.ID), `INSERT INTO nodes (id, name, version, worker, pools, started, until) VALUES ($1, $2, $3, $4, $7, $5, `+serverNow+` + $6)`,
			n.ID, raw(n.Name), n.Version, number(n.Worker), n.Started, n.For, strings.Join(n.Pools, " "))
	default:
		b.add(`WITH u AS (UPDATE nodes SET until = `+serverNow+` + $2 WHERE id = $1 AND until > `+serverNow+` RETURNING 1)
			SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM u) THEN agentd_refuse('AG410', 'node ' || $1) END`, n.ID, n.For)
	}
	if n.Sweep == 0 {
		return
	}
	b.add("DELETE FROM mail WHERE applied > 0 AND applied < $1", n.Sweep)
	b.add("DELETE FROM nodes WHERE until < $1", n.Sweep)
	b.add("DELETE FROM mail WHERE applied = 0 AND run IN (SELECT m.run FROM mail m LEFT JOIN runs r ON r.key = m.run WHERE m.applied = 0 AND (r.key IS NULL OR r.status IN ('completed', 'failed', 'cancelled')))")
	b.add("DELETE FROM node_holds WHERE node NOT IN (SELECT id FROM nodes)")
	b.add("DELETE FROM effects WHERE NOT EXISTS (SELECT 1 FROM runs r WHERE r.key = effects.run AND r.status" + unfinished + ")")
}

// leased refuses what a node may not do that has no lease.
const leased = `SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM nodes WHERE id = $1 AND until > ` + serverNow + `) THEN agentd_refuse('AG410', 'node ' || $1) END`

func (s *Store) claim(b *batch, c *change, x *store.Claim) {
	if x.Node == "" {
		if x.Needs > 0 {
			b.add(`INSERT INTO claims (run, node, needs) SELECT key, NULL, $4 FROM runs WHERE tenant = $1 AND id = $2 AND epoch = $3
				ON CONFLICT (run) DO UPDATE SET node = NULL, needs = excluded.needs`, c.tenant, x.RunID, x.Epoch, x.Needs)
		} else {
			b.add(`DELETE FROM claims WHERE run = (SELECT key FROM runs WHERE tenant = $1 AND id = $2 AND epoch = $3)`, c.tenant, x.RunID, x.Epoch)
		}
		return
	}
	// Each statement sees what was committed before it: behind the lock of the run
	// nobody else's claim can come.
	b.add(lockRun, c.tenant, x.RunID)
	b.add(leased, x.Node)
	b.add(`SELECT CASE
			WHEN r.epoch <> $4 THEN agentd_refuse('AG412', 'run ' || $2)
			WHEN EXISTS (SELECT 1 FROM claims c JOIN nodes n ON n.id = c.node WHERE c.run = r.key AND c.node <> $3 AND n.until > `+serverNow+`)
				THEN agentd_refuse('AG412', 'run ' || $2 || ' is driven by another node')
			WHEN r.status = 'queued' AND EXISTS (SELECT 1 FROM node_holds h JOIN nodes n ON n.id = h.node WHERE h.tenant = r.tenant
				AND h.name = 'session/' || (SELECT s.id FROM sessions s WHERE s.key = r.session) AND n.until > `+serverNow+`)
				THEN agentd_refuse('AG412', 'the session of run ' || $2 || ' is held') END
		FROM runs r WHERE r.tenant = $1 AND r.id = $2`, c.tenant, x.RunID, x.Node, x.Epoch)
	if !slices.ContainsFunc(c.tx.NewRuns, func(n *store.Run) bool { return n.ID == x.RunID }) {
		b.add("UPDATE runs SET epoch = epoch + 1 WHERE tenant = $1 AND id = $2", c.tenant, x.RunID)
	}
	b.add(`INSERT INTO claims (run, node, needs) VALUES (`+runKey+`, $3, 0) ON CONFLICT (run) DO UPDATE SET node = excluded.node, needs = 0`, c.tenant, x.RunID, x.Node)
}

func (s *Store) hold(b *batch, c *change, h *store.Hold) {
	if h.Node == "" {
		b.add(`WITH d AS (DELETE FROM node_holds WHERE tenant = $1 AND name = $2 AND id = $3 RETURNING 1)
			SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM d) THEN agentd_refuse('AG409', $2 || ' is not held by ' || $3) END`, c.tenant, h.Name, h.ID)
		return
	}
	b.add(leased, h.Node)
	if id, is := strings.CutPrefix(h.Name, store.HoldSession); is {
		// Whoever makes a run there is done, or waits until this is.
		b.add("SELECT 1 FROM sessions WHERE tenant = $1 AND id = $2 FOR UPDATE", c.tenant, id)
		b.add(`SELECT agentd_refuse('AG423', 'session ' || $2 || ', run ' || r.id) FROM runs r JOIN sessions s ON s.key = r.session
			WHERE s.tenant = $1 AND s.id = $2 AND r.status`+unfinished+` LIMIT 1`, c.tenant, id)
	}
	b.add(`WITH u AS (INSERT INTO node_holds (tenant, name, id, node) VALUES ($1, $2, $3, $4)
			ON CONFLICT (tenant, name) DO UPDATE SET id = excluded.id, node = excluded.node
				WHERE NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = node_holds.node AND n.until > `+serverNow+`) RETURNING 1)
		SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM u) THEN agentd_refuse('AG409', $2 || ' is held') END`, c.tenant, h.Name, h.ID, h.Node)
}

// What a claim needs to know of a run; $1 is the version of the node.
const (
	claimColumns = `SELECT t.id, r.id, s.id, r.status, r.parent_id IS NULL, r.epoch,
		(r.status <> 'queued' OR NOT EXISTS (SELECT 1 FROM runs o WHERE o.session = r.session AND o.key < r.key AND o.status` + unfinished + `)
			AND NOT EXISTS (SELECT 1 FROM node_holds h JOIN nodes n ON n.id = h.node WHERE h.tenant = r.tenant AND h.name = 'session/' || s.id AND n.until > ` + serverNow + `)) AS turn,
		EXISTS (SELECT 1 FROM mail m WHERE m.run = r.key AND m.applied = 0) AS mail, r.key AS key, x.urgent AS urgent,
		` + serverNow + ` AS now,
		EXISTS (SELECT 1 FROM claims c WHERE c.run = r.key AND c.node IS NOT NULL) AS taken
		FROM `
	claimTables = ` x JOIN runs r ON r.key = x.key JOIN sessions s ON s.key = r.session JOIN tenants t ON t.key = r.tenant `
	// readNow is serverNow for what is read alone: it does not change in the middle of a
	// statement, so that an index on times can be used.
	readNow   = `(extract(epoch FROM statement_timestamp()) * 1000)::bigint`
	unclaimed = ` NOT EXISTS (SELECT 1 FROM claims c LEFT JOIN nodes n ON n.id = c.node AND n.until > ` + readNow + ` WHERE c.run = r.key AND (c.needs > $1 OR n.id IS NOT NULL))`
	claimFree = `r.status` + unfinished + ` AND` + unclaimed
	due       = ` i.status = 'open' AND i.expires > 0 AND i.expires <= ` + readNow
	first     = ` NOT EXISTS (SELECT 1 FROM runs o WHERE o.session = r.session AND o.key < r.key AND o.status` + unfinished + `)`
	// claimAny finds what there is to do: of each kind no more than may be taken, so that
	// what waits for people, or its turn, or is driven, costs little. $2 is how many, $3
	// whether there is a place for runs that are no children.
	claimAny = `(SELECT key, max(urgent) AS urgent, min(rank) AS rank FROM (
			SELECT run, 1, 1 FROM mail WHERE applied = 0
			UNION ALL (SELECT r.key, 1, 2 FROM interrupts i JOIN runs r ON r.key = i.run WHERE` + due + ` AND` + unclaimed + ` ORDER BY i.expires LIMIT $2)
			UNION ALL (SELECT r.key, 0, 3 FROM runs r WHERE r.status = 'running' AND ($3 OR r.parent_id IS NOT NULL) AND` + unclaimed + ` ORDER BY r.key LIMIT $2)
			UNION ALL (SELECT r.key, 0, 4 FROM runs r WHERE r.status = 'queued' AND ($3 OR r.parent_id IS NOT NULL) AND` + unclaimed + ` AND` + first + ` ORDER BY r.key LIMIT $2)
		) y (key, urgent, rank) GROUP BY key)`
	claimOne = `(SELECT r.key, (EXISTS (SELECT 1 FROM mail m WHERE m.run = r.key AND m.applied = 0) OR EXISTS (SELECT 1 FROM interrupts i WHERE i.run = r.key AND` + due + `))::int AS urgent
			FROM runs r WHERE r.tenant = (SELECT key FROM tenants WHERE id = $2) AND (r.id = $3 OR $4 AND r.root_id = $3))`
)

type claimable struct {
	store.Claimed
	key    int64
	urgent bool
}

func claimableOf(r row) claimable {
	return claimable{Claimed: store.Claimed{RunRef: store.RunRef{Tenant: r.Text(0), ID: r.Text(1), SessionID: r.Text(2), Status: r.Text(3)},
		Root: r.Int(4) != 0, Epoch: r.Int(5), Turn: r.Int(6) != 0, Mail: r.Int(7) != 0, Now: r.Int(10), Taken: r.Int(11) != 0}, key: r.Int(8), urgent: r.Int(9) != 0}
}

// Claim implements store.Cluster. What there is to do is read first, which is all that
// an idle node does; then the rows are locked, passing over those that another node is
// just claiming, and taken if their epochs are still those that were read. A node without
// a place looks past all that need one: behind them may be the child runs that its own
// runs wait for.
func (s *Store) Claim(ctx context.Context, q store.ClaimRequest) ([]store.Claimed, error) {
	sql, args := claimColumns+claimAny+claimTables+`WHERE `+claimFree+` ORDER BY x.rank, r.key LIMIT $2`, []any{q.Version, q.Limit + q.Roots, q.Roots > 0}
	if q.Only != nil {
		sql, args = claimColumns+claimOne+claimTables+`WHERE `+claimFree+` ORDER BY r.key`, []any{q.Version, q.Only.Tenant, q.Only.ID, q.Below}
	}
	found, err := list(ctx, s, sql, claimableOf, args...)
	if err != nil {
		return nil, unknownIsNone(err)
	}
	var keys, epochs []int64
	chosen := map[int64]store.Claimed{}
	for _, x := range found {
		switch {
		case len(keys) == q.Limit:
			continue
		case !x.urgent && (!x.Turn || x.Status == "paused_checkpoint"):
			continue
		case !x.urgent && x.Root && q.Roots <= 0:
			continue
		case !x.urgent && x.Root:
			q.Roots--
		}
		keys, epochs, chosen[x.key] = append(keys, x.key), append(epochs, x.Epoch), x.Claimed
	}
	if len(keys) == 0 {
		return nil, nil
	}
	if q.Look {
		out := make([]store.Claimed, len(keys))
		for i, k := range keys {
			out[i] = chosen[k]
		}
		return out, nil
	}
	taken, err := s.takeRuns(ctx, q.Node, keys, epochs)
	if err != nil {
		return nil, err
	}
	var out []store.Claimed
	for _, k := range keys {
		if c := chosen[k]; slices.Contains(taken, k) {
			c.Epoch++
			out = append(out, c)
		}
	}
	return out, nil
}

// takeRuns claims those of the runs that are still as they were.
func (s *Store) takeRuns(ctx context.Context, node string, keys, epochs []int64) (taken []int64, err error) {
	if err := s.presence.allowed(); err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.active.Done()
	// It is not tried again: a claim of which nobody knows is found by who has it.
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		taken = nil
		if ok, err := get(ctx, tx, "SELECT 1 FROM nodes WHERE id = $1 AND until > "+serverNow+" FOR SHARE", func(row) {}, node); err != nil || !ok {
			if err == nil {
				err = form.Refuse(store.ErrLapsed, "node %s", node)
			}
			return err
		}
		if err := query(ctx, tx, `SELECT r.key FROM runs r JOIN unnest($1::bigint[], $2::bigint[]) x (key, epoch) ON r.key = x.key AND r.epoch = x.epoch
				WHERE r.status`+unfinished+` ORDER BY r.key FOR NO KEY UPDATE OF r SKIP LOCKED`, func(r row) error {
			taken = append(taken, r.Int(0))
			return nil
		}, keys, epochs); err != nil || len(taken) == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, "UPDATE runs SET epoch = epoch + 1 WHERE key = ANY($1)", taken); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO claims (run, node, needs) SELECT key, $2, 0 FROM unnest($1::bigint[]) x (key)
			ON CONFLICT (run) DO UPDATE SET node = excluded.node, needs = 0`, taken, node)
		return err
	})
	if err != nil {
		return nil, s.target.wrap("postgres.Claim", err)
	}
	return taken, nil
}

// Claimed implements store.Cluster.
func (s *Store) Claimed(ctx context.Context, node string) ([]store.Claimed, error) {
	return list(ctx, s, claimColumns+`(SELECT run AS key, 0 AS urgent FROM claims WHERE node = $1)`+claimTables+`WHERE r.status`+unfinished+` ORDER BY r.key`,
		func(r row) store.Claimed { return claimableOf(r).Claimed }, node)
}

const mailColumns = `SELECT m.id, m.kind, m.body, m.created, m.applied, m.outcome FROM mail m JOIN runs r ON r.key = m.run
	WHERE r.tenant = (SELECT key FROM tenants WHERE id = $1) AND r.id = $2 AND `

func mailOf(runID string) func(row) *store.Mail {
	return func(r row) *store.Mail {
		return &store.Mail{RunID: runID, ID: r.Text(0), Kind: r.Text(1), Body: r.Blob(2), Created: r.Int(3), Applied: r.Int(4), Outcome: r.Blob(5)}
	}
}

// Mail implements store.Cluster.
func (s *Store) Mail(ctx context.Context, tenant, runID string) ([]*store.Mail, error) {
	return list(ctx, s, mailColumns+"m.applied = 0 ORDER BY m.key", mailOf(runID), tenant, runID)
}

// Outcome implements store.Cluster.
func (s *Store) Outcome(ctx context.Context, tenant, runID, id string) (*store.Mail, error) {
	m, err := list(ctx, s, mailColumns+"m.id = $3", mailOf(runID), tenant, runID, id)
	if err == nil && len(m) == 0 {
		err = form.Refuse(store.ErrNotFound, "mail %s of run %s", id, runID)
	}
	if err != nil {
		return nil, err
	}
	return m[0], nil
}

// Ahead implements store.Cluster.
func (s *Store) Ahead(ctx context.Context, tenant, sessionID string, _ int64) (id string, err error) {
	ok, err := s.one(ctx, `SELECT coalesce((SELECT r.id FROM runs r WHERE r.session = s.key AND r.status`+unfinished+` ORDER BY r.key LIMIT 1),
			(SELECT h.id FROM node_holds h JOIN nodes n ON n.id = h.node WHERE h.tenant = s.tenant AND h.name = 'session/' || s.id AND n.until > `+serverNow+`))
		FROM sessions s WHERE s.tenant = (SELECT key FROM tenants WHERE id = $1) AND s.id = $2`, func(r row) { id = r.Text(0) }, tenant, sessionID)
	if err == nil && !ok {
		err = form.Refuse(store.ErrNotFound, "session %s", sessionID)
	}
	return id, err
}

// Orphans implements store.Cluster.
func (s *Store) Orphans(ctx context.Context, limit int) ([]store.RunRef, error) {
	return list(ctx, s, `SELECT t.id, r.id, s.id, r.status FROM runs r JOIN sessions s ON s.key = r.session JOIN tenants t ON t.key = r.tenant
		WHERE r.status = 'paused_checkpoint' AND r.parent_id IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM runs p WHERE p.tenant = r.tenant AND p.id = r.parent_id AND p.status`+unfinished+`)
			AND NOT EXISTS (SELECT 1 FROM mail m WHERE m.run = r.key AND m.applied = 0)
		ORDER BY r.key LIMIT $1`, func(r row) store.RunRef {
		return store.RunRef{Tenant: r.Text(0), ID: r.Text(1), SessionID: r.Text(2), Status: r.Text(3)}
	}, limit)
}

// Nodes implements store.Cluster.
func (s *Store) Nodes(ctx context.Context, _ int64) ([]*store.Node, error) {
	// What the server has left of each lease, by the clock of who asks.
	now := time.Now().UnixMilli()
	return list(ctx, s, `SELECT id, name, version, worker, started, until - `+serverNow+`, pools FROM nodes WHERE until > `+serverNow+` ORDER BY key`, func(r row) *store.Node {
		return &store.Node{ID: r.Text(0), Name: r.Text(1), Version: int(r.Int(2)), Worker: r.Int(3) != 0, Started: r.Int(4), Until: now + r.Int(5), Pools: form.Words(r.Text(6))}
	})
}
