package agentd

import (
	"context"
	"testing"

	"agentd/internal/profile"
	"agentd/message"
	"agentd/model"
)

type downProvider struct{}

func (downProvider) Generate(context.Context, *model.Request, func(model.StreamEvent)) (*message.Message, error) {
	return nil, &model.Error{Class: model.ClassRateLimited, Provider: "x", Message: "slow down"}
}

// An account that is at its limit says nothing about another one at the same
// address.
func TestABreakerIsAnAccounts(t *testing.T) {
	a := &agents{}
	p := &profile.Profile{}
	p.CircuitBreakers.Provider = profile.Breaker{Failures: 1}
	class := func(env string) model.Class {
		m := &profile.Model{Provider: "openai", BaseURL: "http://127.0.0.1:1/v1", APIKeyEnv: env}
		_, err := a.guardProvider(p, m, downProvider{}).Generate(t.Context(), &model.Request{Model: "m"}, nil)
		return model.AsError(t.Context(), "", "", err).Class
	}
	for _, tt := range []struct {
		env  string
		want model.Class
	}{{"TEAM_A", model.ClassRateLimited}, {"TEAM_A", model.ClassOpen}, {"TEAM_B", model.ClassRateLimited}, {"", model.ClassRateLimited}} {
		if got := class(tt.env); got != tt.want {
			t.Errorf("%q: %s, not %s", tt.env, got, tt.want)
		}
	}
}
