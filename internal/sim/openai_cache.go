package sim

import (
	"time"

	"github.com/tidwall/gjson"
)

// oaiCaching is what a request of either API says about caching.
type oaiCaching struct {
	retention string
	options   gjson.Result
}

// read keeps one key of a request.
func (c *oaiCaching) read(key string, v gjson.Result) {
	switch key {
	case "prompt_cache_retention":
		c.retention = v.String()
	case "prompt_cache_options":
		c.options = v
	}
}

// apply checks it, and tells the cache.
func (c *oaiCaching) apply(req *request) *apiError {
	v := gptVersion(req.Model)
	switch c.retention {
	case "":
	case "24h":
		req.prefix.keep = 24 * time.Hour
	case "in_memory":
		if v >= 5.5 {
			return oaiBad("prompt_cache_retention", "invalid_value", "Invalid value: 'in_memory'. Supported values are: '24h'.")
		}
	default:
		return oaiBad("prompt_cache_retention", "invalid_value", "Invalid value: '%s'. Supported values are: 'in_memory' and '24h'.", c.retention)
	}
	if !c.options.Exists() {
		return nil
	}
	if v > 0 && v < 5.6 {
		return oaiBad("prompt_cache_options", "unsupported_parameter", "Unsupported parameter: 'prompt_cache_options' is not supported with this model.")
	}
	if ttl := c.options.Get("ttl"); ttl.Exists() && ttl.String() != "30m" {
		return oaiBad("prompt_cache_options.ttl", "invalid_value", "Invalid value: '%s'. Supported values are: '30m'.", ttl.String())
	}
	switch mode := c.options.Get("mode").String(); mode {
	case "", "implicit":
	case "explicit":
		req.prefix.none = true
	default:
		return oaiBad("prompt_cache_options.mode", "invalid_value", "Invalid value: '%s'. Supported values are: 'implicit' and 'explicit'.", mode)
	}
	return nil
}
