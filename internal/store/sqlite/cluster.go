package sqlite

import (
	"context"
	"errors"
	"slices"
	"strings"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

var _ store.Cluster = (*Store)(nil)

const unfinished = " NOT IN ('completed', 'failed', 'cancelled')"

// cluster applies what a Tx has of nodes, claims, mail and holds.
func (a *applier) cluster(t int64, tx *store.Tx) error {
	for i := range tx.Nodes {
		if err := a.node(&tx.Nodes[i]); err != nil {
			return err
		}
	}
	for i := range tx.Claims {
		if err := a.claim(t, tx, &tx.Claims[i]); err != nil {
			return err
		}
	}
	for i := range tx.Holds {
		if err := a.hold(t, &tx.Holds[i]); err != nil {
			return err
		}
	}
	for _, m := range tx.Mail {
		if m.ID == "" || m.Kind == "" {
			return invalid("mail %q of run %q lacks an id or a kind", m.ID, m.RunID)
		}
		r, err := a.runRow(t, m.RunID)
		if err != nil {
			return err
		}
		_, _, err = a.c.exec("INSERT INTO mail (run, id, kind, body, created, applied, outcome) VALUES (?, ?, ?, ?, ?, ?, ?)",
			r.key, m.ID, m.Kind, blob(m.Body), m.Created, m.Applied, blob(m.Outcome))
		if primary(err) == codeConstraint {
			return refuse(store.ErrConflict, "mail %s of run %s exists", m.ID, m.RunID)
		}
		if err != nil {
			return err
		}
	}
	for _, m := range tx.MailDone {
		r, err := a.runRow(t, m.RunID)
		if err != nil {
			return err
		}
		n, _, err := a.c.exec("UPDATE mail SET applied = ?, outcome = ? WHERE run = ? AND id = ? AND applied = 0", m.Applied, blob(m.Outcome), r.key, m.ID)
		if err != nil {
			return err
		}
		if n == 0 {
			return refuse(store.ErrConflict, "mail %s of run %s does not wait", m.ID, m.RunID)
		}
	}
	for _, m := range tx.DropMail {
		r, err := a.runRow(t, m.RunID)
		if err != nil {
			return err
		}
		if _, _, err := a.c.exec("DELETE FROM mail WHERE run = ? AND id = ?", r.key, m.ID); err != nil {
			return err
		}
	}
	return a.effects(t, tx)
}

func (a *applier) node(n *store.NodeChange) error {
	if n.ID == "" {
		return invalid("a node without an id")
	}
	switch {
	case n.Leave:
		if _, _, err := a.c.exec("DELETE FROM nodes WHERE id = ?", n.ID); err != nil {
			return err
		}
	case n.Join:
		_, _, err := a.c.exec("INSERT INTO nodes (id, name, version, worker, pools, started, until) VALUES (?, ?, ?, ?, ?, ?, ?)",
			n.ID, text(n.Name), n.Version, n.Worker, strings.Join(n.Pools, " "), n.Started, n.Now+n.For)
		if primary(err) == codeConstraint {
			return refuse(store.ErrConflict, "node %s exists", n.ID)
		}
		if err != nil {
			return err
		}
	default:
		changed, _, err := a.c.exec("UPDATE nodes SET until = ? WHERE id = ? AND until > ?", n.Now+n.For, n.ID, n.Now)
		if err != nil {
			return err
		}
		if changed == 0 {
			return refuse(store.ErrLapsed, "node %s", n.ID)
		}
	}
	if n.Sweep == 0 {
		return nil
	}
	for _, sql := range []string{
		"DELETE FROM mail WHERE applied > 0 AND applied < ?",
		"DELETE FROM nodes WHERE until < ?",
	} {
		if _, _, err := a.c.exec(sql, n.Sweep); err != nil {
			return err
		}
	}
	for _, sql := range []string{
		"DELETE FROM mail WHERE applied = 0 AND run NOT IN (SELECT key FROM runs WHERE status" + unfinished + ")",
		"DELETE FROM node_holds WHERE node NOT IN (SELECT id FROM nodes)",
		"DELETE FROM effects WHERE run NOT IN (SELECT key FROM runs WHERE status" + unfinished + ")",
	} {
		if _, _, err := a.c.exec(sql); err != nil {
			return err
		}
	}
	return nil
}

// leased is whether a node has its lease.
func (a *applier) leased(node string, now int64) (bool, error) {
	var k int64
	return a.c.get("SELECT key FROM nodes WHERE id = ? AND until > ?", []any{&k}, node, now)
}

func (a *applier) claim(t int64, tx *store.Tx, c *store.Claim) error {
	r, err := a.runRow(t, c.RunID)
	if err != nil {
		return err
	}
	if c.Node == "" {
		switch {
		case r.epoch != c.Epoch:
		case c.Needs > 0:
			_, _, err = a.c.exec("INSERT INTO claims (run, node, needs) VALUES (?, NULL, ?) ON CONFLICT DO UPDATE SET node = NULL, needs = excluded.needs", r.key, c.Needs)
		default:
			_, _, err = a.c.exec("DELETE FROM claims WHERE run = ?", r.key)
		}
		return err
	}
	if ok, err := a.leased(c.Node, c.Now); err != nil || !ok {
		return orRefuse(err, store.ErrLapsed, "node %s", c.Node)
	}
	var other string
	ok, err := a.c.get("SELECT n.id FROM claims c JOIN nodes n ON n.id = c.node WHERE c.run = ? AND n.until > ?", []any{&other}, r.key, c.Now)
	switch {
	case err != nil:
		return err
	case ok && other != c.Node:
		return refuse(store.ErrFenced, "run %s is driven by node %s", c.RunID, other)
	case r.epoch != c.Epoch:
		return refuse(store.ErrFenced, "run %s has epoch %d and not %d", c.RunID, r.epoch, c.Epoch)
	}
	if r.status == "queued" {
		ok, err = a.c.get(`SELECT h.id FROM node_holds h JOIN nodes n ON n.id = h.node
			WHERE h.tenant = ? AND h.name = ? || (SELECT id FROM sessions WHERE key = ?) AND n.until > ?`, []any{&other}, t, store.HoldSession, r.session, c.Now)
		if err != nil || ok {
			return orRefuse(err, store.ErrFenced, "the session of run %s is held by %s", c.RunID, other)
		}
	}
	if !slices.ContainsFunc(tx.NewRuns, func(n *store.Run) bool { return n.ID == c.RunID }) {
		if _, _, err := a.c.exec("UPDATE runs SET epoch = ? WHERE key = ?", c.Epoch+1, r.key); err != nil {
			return err
		}
		r.epoch++
	}
	_, _, err = a.c.exec("INSERT INTO claims (run, node, needs) VALUES (?, ?, 0) ON CONFLICT DO UPDATE SET node = excluded.node, needs = 0", r.key, c.Node)
	return err
}

func orRefuse(err, cause error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return refuse(cause, format, args...)
}

func (a *applier) hold(t int64, h *store.Hold) error {
	if h.Node == "" {
		n, _, err := a.c.exec("DELETE FROM node_holds WHERE tenant = ? AND name = ? AND id = ?", t, h.Name, h.ID)
		if err != nil || n == 1 {
			return err
		}
		return refuse(store.ErrConflict, "%s is not held by %s", h.Name, h.ID)
	}
	if ok, err := a.leased(h.Node, h.Now); err != nil || !ok {
		return orRefuse(err, store.ErrLapsed, "node %s", h.Node)
	}
	var other string
	ok, err := a.c.get("SELECT h.id FROM node_holds h JOIN nodes n ON n.id = h.node WHERE h.tenant = ? AND h.name = ? AND n.until > ?", []any{&other}, t, h.Name, h.Now)
	if err != nil || ok {
		return orRefuse(err, store.ErrConflict, "%s is held by %s", h.Name, other)
	}
	if id, is := strings.CutPrefix(h.Name, store.HoldSession); is {
		ok, err := a.c.get("SELECT r.id FROM runs r JOIN sessions s ON s.key = r.session WHERE s.tenant = ? AND s.id = ? AND r.status"+unfinished, []any{&other}, t, id)
		if err != nil || ok {
			return orRefuse(err, store.ErrSessionBusy, "session %s, run %s", id, other)
		}
	}
	_, _, err = a.c.exec("INSERT INTO node_holds (tenant, name, id, node) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET id = excluded.id, node = excluded.node",
		t, h.Name, h.ID, h.Node)
	return err
}

// The columns and conditions of claims. ?1 is the time, ?2 the version, ?3 the most.
const (
	claimColumns = `SELECT t.id, r.id, s.id, r.status, r.parent_id IS NULL, r.epoch,
		r.status <> 'queued' OR NOT EXISTS (SELECT 1 FROM runs o WHERE o.session = r.session AND o.key < r.key AND o.status` + unfinished + `)
			AND NOT EXISTS (SELECT 1 FROM node_holds h JOIN nodes n ON n.id = h.node WHERE h.tenant = r.tenant AND h.name = 'session/' || s.id AND n.until > ?1),
		EXISTS (SELECT 1 FROM mail m WHERE m.run = r.key AND m.applied = 0),
		EXISTS (SELECT 1 FROM interrupts i WHERE i.run = r.key AND i.status = 'open' AND i.expires > 0 AND i.expires <= ?1),
		EXISTS (SELECT 1 FROM claims c WHERE c.run = r.key AND c.node IS NOT NULL)
		FROM runs r JOIN sessions s ON s.key = r.session JOIN tenants t ON t.key = r.tenant `
	claimFree = ` r.status` + unfinished + ` AND NOT EXISTS (SELECT 1 FROM claims c WHERE c.run = r.key
		AND (c.needs > ?2 OR c.node IN (SELECT id FROM nodes WHERE until > ?1))) `
)

// Claim implements store.Cluster: candidates are read, and each is taken by a commit
// that is refused if somebody was faster. Without a place, runs that need one are not
// read: they must not hide the others.
func (s *Store) Claim(ctx context.Context, q store.ClaimRequest) ([]store.Claimed, error) {
	type candidate struct {
		store.Claimed
		urgent bool
	}
	var found []candidate
	seen := map[store.RunRef]bool{}
	err := s.read(ctx, func(c *conn) error {
		add := func(r row) error {
			x := candidate{Claimed: claimedOf(r)}
			x.urgent = x.Mail || r.int(8) != 0
			x.Now = q.Now
			if !seen[x.RunRef] && (x.urgent || x.Turn && x.Status != "paused_checkpoint") {
				seen[x.RunRef] = true
				found = append(found, x)
			}
			return nil
		}
		if q.Only != nil {
			return c.query(ctx, claimColumns+"WHERE"+claimFree+"AND t.id = ?3 AND (r.id = ?4 OR ?5 AND r.root_id = ?4) ORDER BY r.key", add, q.Now, q.Version, q.Only.Tenant, q.Only.ID, q.Below)
		}
		for _, where := range []string{
			"r.key IN (SELECT run FROM mail WHERE applied = 0) AND",
			"r.key IN (SELECT run FROM interrupts WHERE status = 'open' AND expires > 0 AND expires <= ?1) AND",
			"r.status = 'running' AND (?4 OR r.parent_id IS NOT NULL) AND",
			`r.status = 'queued' AND (?4 OR r.parent_id IS NOT NULL) AND NOT EXISTS (SELECT 1 FROM runs o WHERE o.session = r.session AND o.key < r.key AND o.status` + unfinished + `) AND`,
		} {
			if err := c.query(ctx, claimColumns+"WHERE "+where+claimFree+"ORDER BY r.key LIMIT ?3", add, q.Now, q.Version, q.Limit+q.Roots, q.Roots > 0); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []store.Claimed
	for _, x := range found {
		if len(out) == q.Limit {
			break
		}
		if !x.urgent && x.Root && q.Roots <= 0 {
			continue
		}
		if q.Look {
			if !x.urgent && x.Root {
				q.Roots--
			}
			out = append(out, x.Claimed)
			continue
		}
		err := s.Commit(ctx, &store.Tx{Tenant: x.Tenant, Claims: []store.Claim{{RunID: x.ID, Node: q.Node, Epoch: x.Epoch, Now: q.Now}}})
		switch {
		case err == nil:
			if !x.urgent && x.Root {
				q.Roots--
			}
			x.Epoch++
			out = append(out, x.Claimed)
		case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrNotFound):
		default:
			return out, err
		}
	}
	return out, nil
}

func claimedOf(r row) store.Claimed {
	return store.Claimed{RunRef: store.RunRef{Tenant: r.text(0), ID: r.text(1), SessionID: r.text(2), Status: r.text(3)},
		Root: r.int(4) != 0, Epoch: r.int(5), Turn: r.int(6) != 0, Mail: r.int(7) != 0, Taken: r.int(9) != 0}
}

// Claimed implements store.Cluster.
func (s *Store) Claimed(ctx context.Context, node string) ([]store.Claimed, error) {
	var out []store.Claimed
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, claimColumns+"WHERE r.key IN (SELECT run FROM claims WHERE node = ?2) AND r.status"+unfinished+" ORDER BY r.key", func(r row) error {
			out = append(out, claimedOf(r))
			return nil
		}, 0, node)
	})
	return out, err
}

// Mail implements store.Cluster.
func (s *Store) Mail(ctx context.Context, tenant, runID string) ([]*store.Mail, error) {
	return s.mail(ctx, tenant, runID, "applied = 0 ORDER BY key")
}

// Outcome implements store.Cluster.
func (s *Store) Outcome(ctx context.Context, tenant, runID, id string) (*store.Mail, error) {
	m, err := s.mail(ctx, tenant, runID, "id = ?", id)
	if err == nil && len(m) == 0 {
		err = refuse(store.ErrNotFound, "mail %s of run %s", id, runID)
	}
	if err != nil {
		return nil, err
	}
	return m[0], nil
}

func (s *Store) mail(ctx context.Context, tenant, runID, which string, args ...any) (out []*store.Mail, err error) {
	err = s.read(ctx, func(c *conn) error {
		k, err := runKey(c, tenant, runID)
		if err != nil {
			return err
		}
		return c.query(ctx, "SELECT id, kind, body, created, applied, outcome FROM mail WHERE run = ? AND "+which, func(r row) error {
			out = append(out, &store.Mail{RunID: runID, ID: r.text(0), Kind: r.text(1), Body: r.blob(2), Created: r.int(3), Applied: r.int(4), Outcome: r.blob(5)})
			return nil
		}, append([]any{k}, args...)...)
	})
	return out, err
}

// Ahead implements store.Cluster.
func (s *Store) Ahead(ctx context.Context, tenant, sessionID string, now int64) (id string, err error) {
	err = s.read(ctx, func(c *conn) error {
		k, err := sessionKey(c, tenant, sessionID)
		if err != nil {
			return err
		}
		ok, err := c.get("SELECT id FROM runs WHERE session = ? AND status"+unfinished+" ORDER BY key LIMIT 1", []any{&id}, k)
		if err != nil || ok {
			return err
		}
		_, err = c.get(`SELECT h.id FROM node_holds h JOIN nodes n ON n.id = h.node
			WHERE h.tenant = (SELECT key FROM tenants WHERE id = ?) AND h.name = ? AND n.until > ?`, []any{&id}, tenant, store.HoldSession+sessionID, now)
		return err
	})
	return id, err
}

// Orphans implements store.Cluster.
func (s *Store) Orphans(ctx context.Context, limit int) ([]store.RunRef, error) {
	var out []store.RunRef
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, `SELECT t.id, r.id, s.id, r.status FROM runs r JOIN sessions s ON s.key = r.session JOIN tenants t ON t.key = r.tenant
			WHERE r.status = 'paused_checkpoint' AND r.parent_id IS NOT NULL
				AND NOT EXISTS (SELECT 1 FROM runs p WHERE p.tenant = r.tenant AND p.id = r.parent_id AND p.status`+unfinished+`)
				AND NOT EXISTS (SELECT 1 FROM mail m WHERE m.run = r.key AND m.applied = 0)
			ORDER BY r.key LIMIT ?`, func(r row) error {
			out = append(out, store.RunRef{Tenant: r.text(0), ID: r.text(1), SessionID: r.text(2), Status: r.text(3)})
			return nil
		}, limit)
	})
	return out, err
}

// Nodes implements store.Cluster.
func (s *Store) Nodes(ctx context.Context, now int64) ([]*store.Node, error) {
	var out []*store.Node
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, "SELECT id, name, version, worker, started, until, pools FROM nodes WHERE until > ? ORDER BY key", func(r row) error {
			out = append(out, &store.Node{ID: r.text(0), Name: r.text(1), Version: int(r.int(2)), Worker: r.int(3) != 0, Started: r.int(4), Until: r.int(5), Pools: form.Words(r.text(6))})
			return nil
		}, now)
	})
	return out, err
}
