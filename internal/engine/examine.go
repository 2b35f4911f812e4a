package engine

import (
	"fmt"
	"slices"
	"strings"

	"agentd/internal/run"
	"agentd/internal/store"
)

// Examine says what is wrong with a run's stored control state, or "": for checks
// of a store, which does not know what states mean. open are the ids of its open
// interrupts.
func Examine(row *store.Run, open []string) string {
	s, err := run.Decode(row.State)
	if err != nil {
		return err.Error()
	}
	asked := s.Interrupts()
	slices.Sort(asked)
	open = slices.Clone(open)
	slices.Sort(open)
	switch {
	case s.RunID != row.ID:
		return fmt.Sprintf("its control state is that of run %q", s.RunID)
	case s.SessionID != row.SessionID:
		return fmt.Sprintf("its control state is of session %q", s.SessionID)
	case string(s.Status) != row.Status:
		return fmt.Sprintf("it is %s, and %s by its control state", row.Status, s.Status)
	case s.Status.Ended():
		return "" // open interrupts of ended runs are found, and closed, apart
	case !slices.Equal(asked, open):
		return fmt.Sprintf("it waits for the answers to [%s], open are [%s]", strings.Join(asked, " "), strings.Join(open, " "))
	}
	return ""
}
