package agentd

import (
	"slices"
	"strings"
	"testing"
)

// A tool is meant by cache_tool_calls under whatever name other servers' tools give it.
func TestCacheHoldsForRenamedTools(t *testing.T) {
	one, two := offering(t, "get", "put", "fs/get"), offering(t, "put")
	cases := map[string]struct{ keys, want string }{
		"none":  {"tools: {mcp_servers: [one]}\n", ""},
		"long":  {"tools: {mcp_servers: [one]}\ncache_tool_calls: ['one_g*']\n", "get"},
		"other": {"tools: {mcp_servers: [one]}\ncache_tool_calls: ['two_*']\n", ""},
		"short": {"tools: {mcp_servers: [one, two]}\ncache_tool_calls: [put]\n", "one_put two_put"},
		"slash": {"tools: {mcp_servers: [one]}\ncache_tool_calls: ['fs*get']\n", "fs_get_HASH"},
	}
	keys := map[string]string{}
	for name, c := range cases {
		keys[name] = c.keys
	}
	rt := withServers(t, keys, one, two)
	for name, c := range cases {
		a, err := rt.agents.Agent(t.Context(), "", name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range a.CacheTools {
			if slices.Contains(a.Tools.Names(), n) {
				if strings.HasPrefix(n, "fs_get_") {
					n = "fs_get_HASH"
				}
				got = append(got, n)
			}
		}
		slices.Sort(got)
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %q, not %q (%q of %q)", name, s, c.want, a.CacheTools, a.Tools.Names())
		}
	}
}
