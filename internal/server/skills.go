package server

import (
	"context"
	"net/http"

	"agentd/fault"
	"agentd/internal/server/wire"
)

// Skills shows the skills that agents have. Errors are *fault.Error.
type Skills interface {
	// List gives those of a profile, "" for the default one, as they are now.
	List(ctx context.Context, tenant, profile string) (*SkillList, error)
	// Get gives one with its text and files.
	Get(ctx context.Context, tenant, profile, name string) (*SkillView, error)
}

// SkillList is the skills of a profile, sorted by name.
type SkillList struct {
	Profile string `json:"profile"`
	// Enabled is whether its agents have them.
	Enabled bool         `json:"enabled"`
	Skills  []*SkillView `json:"skills"`
}

// SkillView is a skill as clients see it: without its place on the server's disk.
type SkillView struct {
	Name          string            `json:"name"`
	Description   string            `json:"description"`
	Source        string            `json:"source"`
	Tools         []string          `json:"tools,omitempty"`
	License       string            `json:"license,omitempty"`
	Compatibility string            `json:"compatibility,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	// Files and Text are left out of lists.
	Files []string `json:"files,omitempty"`
	Text  string   `json:"text,omitempty"`
}

// skills gives them and of which profile they are asked for.
func (s *Server) skills(r *http.Request) (Skills, string, error) {
	if s.opts.Skills == nil {
		return nil, "", fault.New(fault.Unsupported, "this server has no skills")
	}
	q, err := query(r, "profile")
	return s.opts.Skills, q.Get("profile"), err
}

func (s *Server) listSkills(w http.ResponseWriter, r *http.Request) error {
	from, profile, err := s.skills(r)
	if err != nil {
		return err
	}
	all, err := from.List(r.Context(), tenant(r), profile)
	if err != nil {
		return err
	}
	out := *all
	out.Skills = list(out.Skills)
	wire.WriteJSON(w, http.StatusOK, out)
	return nil
}

func (s *Server) getSkill(w http.ResponseWriter, r *http.Request) error {
	from, profile, err := s.skills(r)
	if err != nil {
		return err
	}
	k, err := from.Get(r.Context(), tenant(r), profile, r.PathValue("name"))
	if err == nil {
		wire.WriteJSON(w, http.StatusOK, k)
	}
	return err
}
