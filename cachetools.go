package agentd

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
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

// keepsTools is whether conversations keep the list of tools that they began with.
func keepsTools(p *profile.Profile) bool {
	return p.Tools.Late == "gateway"
}

// toolRules stands for what an operator says of which tools a profile has: of its own
// keys, and of the lists of its servers.
func (a *agents) toolRules(p *profile.Profile) string {
	h := sha256.New()
	t := p.Tools
	fmt.Fprintf(h, "%q %q %q %q", t.MCPServers, t.Builtin, t.Deny, p.Subagents)
	for _, name := range t.MCPServers {
		s := a.conf.Servers[name]
		fmt.Fprintf(h, " %q %+v %+v", name, s.Allowlist, s.Denylist)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}
