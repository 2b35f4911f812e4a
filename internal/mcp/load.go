package mcp

// Load is a server as it is, for who watches the process.
type Load struct {
	Server string
	State  State
	// Tools are those that it listed, Restarts its connections after the first.
	Tools, Restarts int
	// Running are the calls that hold one of its places, Limit how many there are,
	// and Waiting the calls in front of them.
	Running, Limit, Waiting int
}

// Loads tells about each configured server, sorted by name. It does not wait.
func (m *Manager) Loads() []Load {
	var out []Load
	for _, name := range m.Names() {
		s := m.servers[name]
		s.mu.Lock()
		out = append(out, Load{Server: name, State: s.state, Tools: len(s.tools), Restarts: s.restarts, Running: len(s.slots), Limit: cap(s.slots), Waiting: s.waiting})
		s.mu.Unlock()
	}
	return out
}
