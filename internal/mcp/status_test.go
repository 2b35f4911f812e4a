package mcp

// serverStatus is how a server is doing, for tests.
type serverStatus struct {
	Name      string
	Transport string
	State     State
	// Error is why it is down.
	Error string
	// Protocol, Program and Version are what the server said about itself.
	Protocol string
	Program  string
	Version  string
	// Tools is the number of tools it offers.
	Tools int
	// Running and Waiting count calls.
	Running int
	Waiting int
	// Restarts counts connections after the first.
	Restarts int
}

// Status reports on every configured server, sorted by name. It does not wait.
func (m *Manager) Status() []serverStatus {
	var out []serverStatus
	for _, name := range m.Names() {
		s := m.servers[name]
		s.mu.Lock()
		st := serverStatus{Name: name, Transport: s.cfg.Transport, State: s.state, Tools: len(s.tools), Running: len(s.slots), Waiting: s.waiting, Restarts: s.restarts}
		if s.err != nil {
			st.Error = s.redactor.text(s.err.Error())
		}
		if s.conn != nil {
			if r := s.conn.session.InitializeResult(); r != nil {
				st.Protocol = r.ProtocolVersion
				if r.ServerInfo != nil {
					st.Program, st.Version = r.ServerInfo.Name, r.ServerInfo.Version
				}
			}
		}
		s.mu.Unlock()
		out = append(out, st)
	}
	return out
}
