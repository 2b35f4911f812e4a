package run

// StopRolledBack is the stop reason of a cancelled run that left nothing on its
// session's path.
const StopRolledBack = "rolled_back"

// rollBack takes the run's entries off the path as it ends, if it was asked to. The
// session goes on from an entry of its own, which sorts after all that is left
// behind: moving the leaf back instead would let later entries take ids that exist.
func (m *machine) rollBack() {
	s := &m.State
	if !s.Rollback || s.Start == nil || s.Leaf == *s.Start {
		return
	}
	entry, parent := s.nextEntry(), *s.Start
	if s.Stood != nil {
		parent = *s.Stood
	}
	m.write(RollBack{Entry: entry, Parent: parent})
	s.Leaf = entry
}
