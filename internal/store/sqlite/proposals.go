package sqlite

import (
	"context"
	"strings"

	"agentd/internal/store"
)

func (a *applier) proposals(t int64, tx *store.Tx) error {
	for _, p := range tx.NewProposals {
		r, err := a.runRow(t, p.RunID)
		if err != nil {
			return err
		}
		_, _, err = a.c.exec(`INSERT INTO proposals (run, id, call_id, name, effect, idem_key, args, temp, predicted, reason, created, status, result, real, by, decided)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			r.key, p.ID, p.CallID, p.Name, p.Effect, p.Key, blob(p.Args), text(p.Temp), text(p.Predicted), text(p.Reason), p.Created,
			p.Status, text(p.Result), blob(p.Real), text(p.By), p.Decided)
		if primary(err) == codeConstraint {
			return refuse(store.ErrConflict, "proposal %s exists", p.ID)
		}
		if err != nil {
			return err
		}
	}
	for _, p := range tx.Proposals {
		// A proposal's id begins with its run's.
		runID, _, _ := strings.Cut(p.ID, ".p")
		r, err := a.runRow(t, runID)
		if err != nil {
			return err
		}
		n, _, err := a.c.exec("UPDATE proposals SET status = ?, result = ?, real = ?, by = ?, decided = ? WHERE run = ? AND id = ? AND status = ?",
			p.Status, text(p.Result), blob(p.Real), text(p.By), p.Decided, r.key, p.ID, p.From)
		if err != nil {
			return err
		}
		if n == 0 {
			return refuse(store.ErrConflict, "proposal %s is no longer %s", p.ID, p.From)
		}
	}
	return nil
}

// Proposals implements store.ProposalReader.
func (s *Store) Proposals(ctx context.Context, tenant, runID string) ([]*store.Proposal, error) {
	var out []*store.Proposal
	err := s.read(ctx, func(c *conn) error {
		if _, err := runKey(c, tenant, runID); err != nil {
			return err
		}
		return c.query(ctx, `SELECT p.id, r.id, p.call_id, p.name, p.effect, p.idem_key, p.args, p.temp, p.predicted, p.reason, p.created,
				p.status, p.result, p.real, p.by, p.decided
			FROM proposals p JOIN runs r ON r.key = p.run
			WHERE p.run IN (SELECT key FROM runs WHERE tenant = (SELECT key FROM tenants WHERE id = ?1) AND id = ?2
				UNION ALL SELECT key FROM runs WHERE tenant = (SELECT key FROM tenants WHERE id = ?1) AND root_id = ?2)
			ORDER BY p.key`, func(r row) error {
			out = append(out, &store.Proposal{ID: r.text(0), RunID: r.text(1), CallID: r.text(2), Name: r.text(3), Effect: r.text(4), Key: r.text(5),
				Args: r.blob(6), Temp: r.text(7), Predicted: r.text(8), Reason: r.text(9), Created: r.int(10),
				ProposalUpdate: store.ProposalUpdate{Status: r.text(11), Result: r.text(12), Real: r.blob(13), By: r.text(14), Decided: r.int(15)}})
			return nil
		}, tenant, runID)
	})
	return out, err
}
