package agentd

import (
	"net/url"

	"agentd/internal/guard"
	"agentd/internal/profile"
	"agentd/model"
	"agentd/tool"
)

// guardProvider puts what the profile says about failures and concurrency around a
// provider.
func (a *agents) guardProvider(p *profile.Profile, m *profile.Model, pr model.Provider) model.Provider {
	name := m.Provider
	if u, err := url.Parse(m.BaseURL); err == nil && m.BaseURL != "" {
		name += " at " + u.Redacted() // it is told in errors
	}
	if m.Azure.Resource != "" && m.BaseURL == "" {
		name += " at " + m.Azure.Resource
	}
	if m.APIKeyEnv != "" {
		// Another account: its limits and its credit are its own.
		name += " with " + m.APIKeyEnv
	}
	return a.guards.Provider(name, pr, breaker(p.CircuitBreakers.Provider), m.ConcurrencyLimit)
}

func (a *agents) guardTools(p *profile.Profile, tools []tool.Tool) {
	own, server := breaker(p.CircuitBreakers.Tool), breaker(p.CircuitBreakers.Server)
	for i, t := range tools {
		tools[i] = a.guards.Tool(t, own, server)
	}
}

func breaker(b profile.Breaker) guard.Breaker {
	return guard.Breaker{Failures: b.Failures, Cooldown: b.Cooldown.Std()}
}
