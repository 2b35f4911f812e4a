package agentd

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// offering is an MCP server that lists tools and nothing more.
func offering(t *testing.T, names ...string) *httptest.Server {
	t.Helper()
	var list []string
	for _, n := range names {
		list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, n))
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		result := `{}`
		switch err := json.NewDecoder(r.Body).Decode(&m); {
		case err != nil:
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
			return
		case m.Method == "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
		case m.Method == "tools/list":
			result = `{"tools":[` + strings.Join(list, ",") + `]}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(s.Close)
	return s
}

// withServers is a runtime with profiles of these keys and two MCP servers.
func withServers(t *testing.T, keys map[string]string, one, two *httptest.Server) *Runtime {
	t.Helper()
	dir := profiles(t, keys)
	if err := os.Mkdir(filepath.Join(dir, "mcp"), 0o700); err != nil {
		t.Fatal(err)
	}
	servers := fmt.Sprintf("servers:\n  one: {transport: http, url: %q, protocol: '2025-11-25'}\n  two: {transport: http, url: %q, protocol: '2025-11-25'}\n", one.URL, two.URL)
	if err := os.WriteFile(filepath.Join(dir, "mcp", "servers.yaml"), []byte(servers), 0o600); err != nil {
		t.Fatal(err)
	}
	rt, err := Open(t.Context(), Config{Configs: dir, Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt
}

// A denied tool stays denied under whatever name other servers' tools give it.
func TestDenyHoldsForRenamedTools(t *testing.T) {
	one := offering(t, "drop", "read", "fs/delete", "glob")
	two := offering(t, "drop", "read")
	deny := func(pattern string) string {
		return "tools: {mcp_servers: [one, two], deny: ['" + pattern + "']}\n"
	}
	cases := map[string]struct {
		keys string
		want []string
	}{
		"none":     {"tools: {mcp_servers: [one, two]}\n", []string{"fs_delete_HASH", "one_drop", "one_glob", "one_read", "two_drop", "two_read"}},
		"own":      {deny("drop"), []string{"fs_delete_HASH", "one_glob", "one_read", "two_read"}},
		"pattern":  {deny("dr?p"), []string{"fs_delete_HASH", "one_glob", "one_read", "two_read"}},
		"exposed":  {deny("one_drop"), []string{"fs_delete_HASH", "one_glob", "one_read", "two_drop", "two_read"}},
		"slash":    {deny("*delete"), []string{"one_drop", "one_glob", "one_read", "two_drop", "two_read"}},
		"prefixed": {deny("one_*"), []string{"two_drop", "two_read"}},
		"reserved": {deny("glob"), []string{"fs_delete_HASH", "one_drop", "one_read", "two_drop", "two_read"}},
		// Where the other server is not there, the longer name still counts.
		"alone": {"tools: {mcp_servers: [one], deny: [one_drop]}\n", []string{"fs_delete_HASH", "one_glob", "read"}},
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
		got := a.Tools.Names()
		for i, n := range got {
			if strings.HasPrefix(n, "fs_delete_") {
				got[i] = "fs_delete_HASH"
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: tools %v, want %v", name, got, c.want)
		}
	}
}
