package client

import (
	"context"
	"net/http"
	"net/url"
)

// Memory is one sentence that agents remember.
type Memory struct {
	// ID is made of the words: it changes with them.
	ID string `json:"memory_id"`
	// Scope is global (of the user or tenant) or project.
	Scope   string `json:"scope"`
	Section string `json:"section,omitempty"`
	Text    string `json:"text"`
	// Origin is person (added by hand), agent (a model wrote it, by people's words) or
	// tool (a model wrote it after it had read outputs of tools: data, not instruction),
	// or workspace (it stands in the workspace's file, and neither did agentd write it nor
	// has anybody trusted it: data, not instruction); empty for what stands in a file that somebody edited.
	Origin string `json:"origin,omitempty"`
	Date   string `json:"date,omitempty"` // YYYY-MM-DD
	RunID  string `json:"run_id,omitempty"`
}

// MemoryQuery says whose memory is meant, and by which profile's rules and provider.
// The zero value is what the server itself keeps where no user is named.
type MemoryQuery struct{ User, Profile string }

func (q MemoryQuery) values() url.Values {
	v := url.Values{}
	set(v, "user", q.User)
	set(v, "profile", q.Profile)
	return v
}

// MemoryRequest has agents remember something.
type MemoryRequest struct {
	Text string `json:"text"`
	// Section is Preferences, Context (the default), Learned Patterns, or another.
	Section string `json:"section,omitempty"`
	// Scope is global (the default) or project.
	Scope string `json:"scope,omitempty"`
}

// Memories lists what agents remember, the global before the project's.
func (c *Client) Memories(ctx context.Context, q MemoryQuery) ([]*Memory, error) {
	var out struct {
		Memories []*Memory `json:"memories"`
	}
	err := c.call(ctx, &out, http.MethodGet, nil, q.values(), "memory")
	return out.Memories, err
}

// Memory gives one entry.
func (c *Client) Memory(ctx context.Context, id string, q MemoryQuery) (*Memory, error) {
	var m Memory
	if err := c.call(ctx, &m, http.MethodGet, nil, q.values(), "memory", id); err != nil {
		return nil, err
	}
	return &m, nil
}

// Remember has agents remember something. What is known already is given as it is.
func (c *Client) Remember(ctx context.Context, req MemoryRequest, q MemoryQuery) (*Memory, error) {
	var m Memory
	if err := c.call(ctx, &m, http.MethodPost, &req, q.values(), "memory"); err != nil {
		return nil, err
	}
	return &m, nil
}

// EditMemory changes the text and the section of an entry, those that are not empty.
func (c *Client) EditMemory(ctx context.Context, id, text, section string, q MemoryQuery) (*Memory, error) {
	var m Memory
	req := struct {
		Text    string `json:"text,omitempty"`
		Section string `json:"section,omitempty"`
	}{text, section}
	if err := c.call(ctx, &m, http.MethodPatch, &req, q.values(), "memory", id); err != nil {
		return nil, err
	}
	return &m, nil
}

// TrustMemory makes what others wrote into the workspace's MEMORY.md the person's own,
// as it is there now: the entries with these ids or, without any, the whole file. It
// gives the entries that were not trusted until now.
func (c *Client) TrustMemory(ctx context.Context, ids []string, q MemoryQuery) ([]*Memory, error) {
	var out struct {
		Memories []*Memory `json:"memories"`
	}
	req := struct {
		IDs []string `json:"memory_ids,omitempty"`
		All bool     `json:"all,omitempty"`
	}{ids, len(ids) == 0}
	err := c.call(ctx, &out, http.MethodPost, &req, q.values(), "memory", "trust")
	return out.Memories, err
}

// Forget removes an entry.
func (c *Client) Forget(ctx context.Context, id string, q MemoryQuery) error {
	return c.call(ctx, nil, http.MethodDelete, nil, q.values(), "memory", id)
}
