package agentd

import (
	"context"
	"errors"

	"agentd/fault"
	"agentd/internal/memory"
	"agentd/internal/profile"
)

type (
	// MemoryEntry is one sentence that agents remember.
	MemoryEntry = memory.Entry
	// MemoryQuery says whose memory is meant, and by which profile's rules. The zero
	// value is what agentd itself keeps where no user is named.
	MemoryQuery = memory.Query
)

// memories is what agents of all tenants remember, for people to look at and change.
type memories struct{ l *learning }

func (m memories) of(tenant string, q memory.Query) (*memory.Memory, memory.Who, error) {
	who := memory.Who{Tenant: tenant, User: q.User}
	if m.l.keeper == nil {
		return nil, who, &fault.Error{Op: "memory", Kind: fault.Unsupported, Err: errors.New("this runtime remembers nothing")}
	}
	var p *profile.Profile
	if q.Profile != "" {
		var err error
		if p, err = m.l.conf.Profile(q.Profile); err != nil {
			return nil, who, err
		}
	}
	mem, err := m.l.memory(p)
	return mem, who, err
}

// List implements server.Memories.
func (m memories) List(ctx context.Context, tenant string, q memory.Query) ([]memory.Entry, error) {
	mem, who, err := m.of(tenant, q)
	if err != nil {
		return nil, err
	}
	return mem.List(ctx, who)
}

// Get implements server.Memories.
func (m memories) Get(ctx context.Context, tenant, id string, q memory.Query) (memory.Entry, error) {
	mem, who, err := m.of(tenant, q)
	if err != nil {
		return memory.Entry{}, err
	}
	return mem.Show(ctx, who, id)
}

// Add implements server.Memories.
func (m memories) Add(ctx context.Context, tenant string, e memory.Entry, q memory.Query) (memory.Entry, bool, error) {
	mem, who, err := m.of(tenant, q)
	if err != nil {
		return memory.Entry{}, false, err
	}
	return mem.Add(ctx, who, memory.Entry{Scope: e.Scope, Section: e.Section, Text: e.Text, Origin: memory.Person})
}

// Edit implements server.Memories.
func (m memories) Edit(ctx context.Context, tenant, id, text, section string, q memory.Query) (memory.Entry, error) {
	mem, who, err := m.of(tenant, q)
	if err != nil {
		return memory.Entry{}, err
	}
	return mem.Edit(ctx, who, id, text, section)
}

// Remove implements server.Memories.
func (m memories) Remove(ctx context.Context, tenant, id string, q memory.Query) error {
	mem, who, err := m.of(tenant, q)
	if err != nil {
		return err
	}
	return mem.Remove(ctx, who, id)
}

// Trust implements server.Memories.
func (m memories) Trust(ctx context.Context, tenant string, ids []string, q memory.Query) ([]memory.Entry, error) {
	mem, who, err := m.of(tenant, q)
	if err != nil {
		return nil, err
	}
	return mem.Trust(ctx, who, ids)
}

// Memories lists what agents remember, the global before the project's.
func (rt *Runtime) Memories(ctx context.Context, q MemoryQuery) ([]MemoryEntry, error) {
	return memories{rt.agents.learning}.List(ctx, rt.tenant, q)
}

// Memory gives one entry.
func (rt *Runtime) Memory(ctx context.Context, id string, q MemoryQuery) (MemoryEntry, error) {
	return memories{rt.agents.learning}.Get(ctx, rt.tenant, id, q)
}

// Remember has agents remember the text of an entry, in its section ("": Context) and
// scope ("": global). It gives the entry as it is kept, and false if it was known.
func (rt *Runtime) Remember(ctx context.Context, e MemoryEntry, q MemoryQuery) (MemoryEntry, bool, error) {
	if err := rt.writable("Remember"); err != nil {
		return MemoryEntry{}, false, err
	}
	return memories{rt.agents.learning}.Add(ctx, rt.tenant, e, q)
}

// EditMemory changes the text and the section of an entry, those that are not "".
// Its id changes with its words.
func (rt *Runtime) EditMemory(ctx context.Context, id, text, section string, q MemoryQuery) (MemoryEntry, error) {
	if err := rt.writable("EditMemory"); err != nil {
		return MemoryEntry{}, err
	}
	return memories{rt.agents.learning}.Edit(ctx, rt.tenant, id, text, section, q)
}

// Forget removes an entry.
func (rt *Runtime) Forget(ctx context.Context, id string, q MemoryQuery) error {
	if err := rt.writable("Forget"); err != nil {
		return err
	}
	return memories{rt.agents.learning}.Remove(ctx, rt.tenant, id, q)
}

// TrustMemory makes what others wrote into the workspace's MEMORY.md (entries with the
// origin workspace) the person's own, as it is there now: the entries with these ids
// or, without any, the whole file. It gives the entries that were not trusted until
// now. An edit by anybody else takes that back.
func (rt *Runtime) TrustMemory(ctx context.Context, ids []string, q MemoryQuery) ([]MemoryEntry, error) {
	if err := rt.writable("TrustMemory"); err != nil {
		return nil, err
	}
	return memories{rt.agents.learning}.Trust(ctx, rt.tenant, ids, q)
}

// NewMemoryEntry is an entry to be remembered.
func NewMemoryEntry(scope, section, text string) MemoryEntry {
	return MemoryEntry{Scope: memory.Scope(scope), Section: section, Text: text}
}
