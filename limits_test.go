package agentd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentd/tool"
)

// The limits of tools are keys of agentd.yaml, and reach the tools.
func TestLimitsOfTools(t *testing.T) {
	many, large := offering(t, "a", "b", "c"), offering(t, strings.Repeat("n", 2<<20))
	dir := profiles(t, map[string]string{"p": "tools: {mcp_servers: [many, large], builtin: [workspace]}\n"})
	files := t.TempDir()
	for name, text := range map[string]string{
		filepath.Join(dir, "agentd.yaml"): "limits: {max_mcp_tools: 2, max_mcp_message_bytes: 1048576, max_read_lines: 2, max_read_bytes: 1024, max_search_file_bytes: 1024, max_search_files: 3}\n",
		filepath.Join(dir, "mcp", "servers.yaml"): fmt.Sprintf("servers:\n  many: {transport: http, url: %q, protocol: '2025-11-25'}\n  large: {transport: http, url: %q, protocol: '2025-11-25'}\n",
			many.URL, large.URL),
		filepath.Join(files, "a"): "one\ntwo\nthree\n", filepath.Join(files, "b"): strings.Repeat("needle ", 1000),
		filepath.Join(files, "c"): "", filepath.Join(files, "d"): strings.Repeat("x", 900) + "\n" + strings.Repeat("y", 900) + "\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rt, err := Open(t.Context(), Config{Configs: dir, Workspace: files})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	a, err := rt.agents.Agent(t.Context(), "", "p")
	if err != nil {
		t.Fatal(err)
	}
	reasons := fmt.Sprint(a.Unreachable)
	if len(a.Unreachable) != 2 || !strings.Contains(reasons, "more than 2 tools") || !strings.Contains(reasons, "1 MiB") {
		t.Errorf("servers out of bounds: %s", reasons)
	}
	use := func(name, args string) string {
		x, _, _ := a.Tools.Lookup(name)
		r, err := x.Run(t.Context(), tool.Call{Args: json.RawMessage(args), Progress: func(tool.Progress) {}})
		if err != nil {
			t.Fatal(err)
		}
		return r.Content[0].Text
	}
	for _, tt := range []struct{ name, args, says, not string }{
		{"file_read", `{"file_path":"a"}`, "Lines 1 to 2 of 3", "three"},
		{"file_read", `{"file_path":"d"}`, "Lines 1 to 1 of 2", "yyy"},
		{"grep", `{"pattern":"needle","path":"b"}`, "", "needle needle"},
		{"glob", `{"pattern":"*"}`, "a\nb", "\nd\n"},
	} {
		if got := use(tt.name, tt.args); !strings.Contains(got, tt.says) || strings.Contains(got+"\n", tt.not) {
			t.Errorf("%s %s: %s", tt.name, tt.args, got)
		}
	}
}
