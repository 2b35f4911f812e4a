package profile

// rates tells of limits over time that limit nothing.
func (l *loader) rates(f *profileFile) {
	for _, r := range []struct {
		key   string
		limit *RateLimit
	}{{"rate_limits.per_user", &f.profile.RateLimits.PerUser}, {"rate_limits.per_org", &f.profile.RateLimits.PerOrg}} {
		if r.limit.Burst > 0 && r.limit.RequestsPerMinute == 0 {
			f.decoder.warn(r.key+".burst", "has no effect without requests_per_minute", "say how many runs may start in a minute")
		}
	}
}
