package client

import (
	"context"
	"net/http"
	"net/url"
)

// Skill is instructions for one kind of task that an agent has.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Source is where it was found: profile, project, user or pack.
	Source string `json:"source"`
	// Tools are names of tools that it says it needs.
	Tools         []string          `json:"tools,omitempty"`
	License       string            `json:"license,omitempty"`
	Compatibility string            `json:"compatibility,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	// Files are those besides its text, and Text is that; lists leave both out.
	Files []string `json:"files,omitempty"`
	Text  string   `json:"text,omitempty"`
}

// SkillList is the skills of a profile, sorted by name.
type SkillList struct {
	Profile string `json:"profile"`
	// Enabled is whether agents of the profile have them.
	Enabled bool     `json:"enabled"`
	Skills  []*Skill `json:"skills"`
}

// Skills lists the skills of a profile; "" is the server's default.
func (c *Client) Skills(ctx context.Context, profile string) (*SkillList, error) {
	var out SkillList
	q := url.Values{}
	set(q, "profile", profile)
	if err := c.call(ctx, &out, http.MethodGet, nil, q, "skills"); err != nil {
		return nil, err
	}
	return &out, nil
}

// Skill gives a skill of a profile with its text.
func (c *Client) Skill(ctx context.Context, profile, name string) (*Skill, error) {
	var out Skill
	q := url.Values{}
	set(q, "profile", profile)
	if err := c.call(ctx, &out, http.MethodGet, nil, q, "skills", name); err != nil {
		return nil, err
	}
	return &out, nil
}
