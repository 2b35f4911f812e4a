package agentd

import (
	"agentd/internal/engine"
	"agentd/internal/profile"
	"agentd/internal/rate"
)

// rates is what a profile allows in a minute.
func rates(p *profile.Profile) engine.RateLimits {
	limit := func(l *profile.RateLimit) rate.Limit {
		return rate.Limit{Requests: l.RequestsPerMinute, Burst: l.Burst, Tokens: l.TokensPerMinute}
	}
	return engine.RateLimits{PerUser: limit(&p.RateLimits.PerUser), PerOrg: limit(&p.RateLimits.PerOrg)}
}
