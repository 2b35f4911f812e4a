package agentd

import (
	"slices"
	"time"

	"agentd/internal/profile"
	"agentd/model"
	"agentd/model/openai"
)

// cacheTTL is how long the provider of a model keeps the beginning of a prompt after its
// last use, at the least; 0 if nobody knows.
func cacheTTL(m *profile.Model) time.Duration {
	switch m.CacheTTL {
	case "1h":
		return time.Hour
	case "24h":
		return 24 * time.Hour
	}
	switch m.Provider {
	case "anthropic", "openai", "azure":
		return 5 * time.Minute
	}
	return 0
}

// cachedFor gives the prices that calls are reserved by: what is written for an hour
// costs more than what is written for five minutes.
func cachedFor(info model.Info, m *profile.Model) model.Info {
	if m.CacheTTL != "1h" {
		return info
	}
	info.Price.CacheWrite = max(info.Price.CacheWrite, info.Price.CacheWrite1h)
	info.Long = slices.Clone(info.Long)
	for i := range info.Long {
		p := &info.Long[i].Price
		p.CacheWrite = max(p.CacheWrite, p.CacheWrite1h)
	}
	return info
}

func cacheKey(m *profile.Model) openai.Choice {
	switch m.PromptCacheKey {
	case "yes":
		return openai.Yes
	case "no":
		return openai.No
	}
	return openai.Auto
}

// conversationBytes is limits.conversation_cache_mb as the engine takes it.
func conversationBytes(mb int) int64 {
	if mb == 0 {
		return -1
	}
	return int64(mb) << 20
}
