package agentd

import (
	"path"
	"slices"
	"strings"

	"agentd/internal/mcp"
	"agentd/internal/profile"
	"agentd/tool"
)

// cachedTools are a profile's cache_tool_calls as the engine reads them, which knows each
// tool by one name alone. A tool of an MCP server may be meant by any of its names: which
// it has depends on what other servers offer.
func cachedTools(p *profile.Profile, tools []tool.Tool) []string {
	cached := slices.Clone(p.CacheToolCalls)
	if len(cached) == 0 {
		return nil
	}
	flat := strings.NewReplacer("/", "\x00") // as with tools.deny: a slash is like any character
	for _, t := range tools {
		names := mcp.Names(t)
		if len(names) > 1 && slices.ContainsFunc(p.CacheToolCalls, func(pattern string) bool {
			return slices.ContainsFunc(names, func(name string) bool {
				ok, err := path.Match(flat.Replace(pattern), flat.Replace(name))
				return ok && err == nil
			})
		}) {
			cached = append(cached, names[0])
		}
	}
	return cached
}
