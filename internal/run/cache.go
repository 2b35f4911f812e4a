package run

import "slices"

// Cached is a result of this turn that an equal call may get instead of being made.
type Cached struct {
	// Key stands for the tool and its arguments; who judges calls makes it.
	Key string `json:"key"`
	// Entry holds the result, Out is its fingerprint where streaks are limited.
	Entry string `json:"entry"`
	Out   string `json:"out,omitempty"`
}

// maxCached bounds what is remembered of a turn, and so the size of the state. The
// oldest is forgotten first.
const maxCached = 32

// changes is whether a call may change what others read. What a child run does
// nobody knows.
func (c *Call) changes() bool { return c.Kind == kindSpawn || c.Effect != effectRead }

// changing is whether a call other than c, that may change something, is running.
func (m *machine) changing(c *Call) bool {
	return slices.ContainsFunc(m.State.Calls, func(o Call) bool { return o.ID != c.ID && o.Phase == CallRunning && o.Cached == "" && o.changes() })
}

// forget drops what was remembered, and what calls under way would add to it: what
// they read may be from before.
func (m *machine) forget() {
	s := &m.State
	s.Cached = nil
	for i := range s.Calls {
		if c := &s.Calls[i]; c.Phase == CallRunning { // also one that is to get an earlier result: it may be made after all
			c.CacheKey = ""
		}
	}
}

// recall looks for an earlier result as a call starts.
func (m *machine) recall(c *Call) {
	key := c.CacheKey
	if key != "" && !m.changing(c) {
		if i := slices.IndexFunc(m.State.Cached, func(k Cached) bool { return k.Key == key }); i >= 0 {
			c.Cached, c.Out = m.State.Cached[i].Entry, m.State.Cached[i].Out
			return
		}
	}
	if c.changes() {
		m.forget()
		c.CacheKey = key
	}
}

// made takes in the outcome of a call that was made: what it changed is no longer
// known, what it gave is.
func (m *machine) made(c *Call, remember bool) {
	key := c.CacheKey
	if c.changes() {
		m.forget()
	}
	c.CacheKey = ""
	if !remember || key == "" || m.changing(c) {
		return
	}
	s := &m.State
	s.Cached = slices.DeleteFunc(s.Cached, func(k Cached) bool { return k.Key == key })
	s.Cached = append(s.Cached[max(0, len(s.Cached)-maxCached+1):], Cached{Key: key, Entry: c.Entry, Out: c.Out})
}
