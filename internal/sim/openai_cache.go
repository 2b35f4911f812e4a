package sim

import "time"

// cacheSettings reads what a request says about caching.
func (p *oaiParser) cacheSettings() *apiError {
	v := gptVersion(p.req.Model)
	switch p.retention {
	case "":
	case "24h":
		p.req.prefix.keep = 24 * time.Hour
	case "in_memory":
		if v >= 5.5 {
			return oaiBad("prompt_cache_retention", "invalid_value", "Invalid value: 'in_memory'. Supported values are: '24h'.")
		}
	default:
		return oaiBad("prompt_cache_retention", "invalid_value", "Invalid value: '%s'. Supported values are: 'in_memory' and '24h'.", p.retention)
	}
	if !p.cacheOptions.Exists() {
		return nil
	}
	if v > 0 && v < 5.6 {
		return oaiBad("prompt_cache_options", "unsupported_parameter", "Unsupported parameter: 'prompt_cache_options' is not supported with this model.")
	}
	if ttl := p.cacheOptions.Get("ttl"); ttl.Exists() && ttl.String() != "30m" {
		return oaiBad("prompt_cache_options.ttl", "invalid_value", "Invalid value: '%s'. Supported values are: '30m'.", ttl.String())
	}
	switch mode := p.cacheOptions.Get("mode").String(); mode {
	case "", "implicit":
	case "explicit":
		p.req.prefix.none = true
	default:
		return oaiBad("prompt_cache_options.mode", "invalid_value", "Invalid value: '%s'. Supported values are: 'implicit' and 'explicit'.", mode)
	}
	return nil
}
