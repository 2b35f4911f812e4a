package server_test

import (
	"context"
	"strings"
	"testing"

	"agentd/fault"
	"agentd/internal/server"
)

// taught has one skill.
type taught struct{}

func (taught) List(_ context.Context, _, profile string) (*server.SkillList, error) {
	if profile == "none" {
		return &server.SkillList{Profile: profile}, nil
	}
	return &server.SkillList{Profile: profile, Enabled: true, Skills: []*server.SkillView{{Name: "review", Description: "d", Source: "project"}}}, nil
}

func (taught) Get(_ context.Context, _, profile, name string) (*server.SkillView, error) {
	if name != "review" {
		return nil, fault.New(fault.NotFound, "there is no skill "+name)
	}
	return &server.SkillView{Name: name, Description: "d", Source: "project", Files: []string{"a.md"}, Text: "of " + profile}, nil
}

func TestSkills(t *testing.T) {
	a := start(t, &server.Options{Skills: taught{}})
	for _, c := range []struct {
		path   string
		status int
		want   string
	}{
		{"/skills", 200, `{"profile":"","enabled":true,"skills":[{"name":"review","description":"d","source":"project"}]}`},
		{"/skills?profile=none", 200, `{"profile":"none","enabled":false,"skills":[]}`},
		{"/skills?profil=p", 400, `profil`},
		{"/skills/review?profile=p", 200, `{"name":"review","description":"d","source":"project","files":["a.md"],"text":"of p"}`},
		{"/skills/no", 404, `there is no skill no`},
	} {
		if r := a.do("GET", c.path, ""); r.status != c.status || !strings.Contains(string(r.body), c.want) {
			t.Errorf("%s: %d %s", c.path, r.status, r.body)
		}
	}
	if r := start(t, nil).do("GET", "/skills", ""); r.status != 501 {
		t.Errorf("%d %s", r.status, r.body)
	}
}
