package sqlite

import (
	"context"

	"agentd/internal/store"
)

func (a *applier) rules(t int64, tx *store.Tx) error {
	for _, r := range tx.NewRules {
		s, err := a.session(t, r.SessionID)
		if err != nil {
			return err
		}
		if r.ID == "" || r.Tool == "" || len(r.Pattern) == 0 {
			return invalid("a rule needs an id, a tool and a pattern")
		}
		_, _, err = a.c.exec("INSERT INTO session_rules (session, id, tool, pattern, text, interrupt, by, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			s.key, r.ID, r.Tool, blob(r.Pattern), text(r.Text), text(r.Interrupt), text(r.By), r.Created)
		if primary(err) == codeConstraint {
			return refuse(store.ErrConflict, "rule %s of session %s exists", r.ID, r.SessionID)
		}
		if err != nil {
			return err
		}
	}
	for _, r := range tx.DropRules {
		s, err := a.session(t, r.SessionID)
		if err != nil {
			return err
		}
		n, _, err := a.c.exec("DELETE FROM session_rules WHERE session = ? AND id = ?", s.key, r.ID)
		if err != nil {
			return err
		}
		if n == 0 {
			return refuse(store.ErrNotFound, "rule %s of session %s", r.ID, r.SessionID)
		}
	}
	return nil
}

// Rules implements store.RuleReader.
func (s *Store) Rules(ctx context.Context, tenant, sessionID string) ([]*store.Rule, error) {
	var out []*store.Rule
	err := s.read(ctx, func(c *conn) error {
		k, err := sessionKey(c, tenant, sessionID)
		if err != nil {
			return err
		}
		return c.query(ctx, "SELECT id, tool, pattern, text, interrupt, by, created FROM session_rules WHERE session = ? ORDER BY key", func(r row) error {
			out = append(out, &store.Rule{SessionID: sessionID, ID: r.text(0), Tool: r.text(1), Pattern: r.blob(2), Text: r.text(3),
				Interrupt: r.text(4), By: r.text(5), Created: r.int(6)})
			return nil
		}, k)
	})
	return out, err
}
