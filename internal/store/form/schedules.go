package form

import "agentd/internal/store"

// After is the first text that is behind all that begin with a prefix, which must not
// end in its last possible byte.
func After(prefix string) string {
	if prefix == "" {
		return ""
	}
	return prefix[:len(prefix)-1] + string(rune(prefix[len(prefix)-1]+1))
}

func checkSchedules(tx *store.Tx) error {
	for _, s := range tx.NewSchedules {
		switch {
		case s.ID == "" || s.Name == "" || len(s.Plan) == 0:
			return Invalid("schedule %q lacks an id, a name or a plan", s.ID)
		case s.Tenant != tx.Tenant:
			return Invalid("schedule %q is of tenant %q and its Tx of %q", s.ID, s.Tenant, tx.Tenant)
		case s.Revision != 1:
			return Invalid("schedule %q is new and has revision %d", s.ID, s.Revision)
		}
	}
	for _, s := range tx.Schedules {
		if s.Name == "" || len(s.Plan) == 0 || s.Revision < 2 {
			return Invalid("a change of schedule %q lacks a name, a plan or a revision", s.ID)
		}
	}
	return nil
}
