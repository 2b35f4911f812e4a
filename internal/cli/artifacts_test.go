package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentd/client"
)

// Results that were too large are listed, and saved by the beginning of their id.
func TestArtifactsOfASession(t *testing.T) {
	b := newBench(t)
	large := strings.Repeat("a line of a large file\n", 200)
	for path, text := range map[string]string{
		filepath.Join(b.configs, "agentd.yaml"):       "limits: {max_result_bytes: 1024}\n",
		filepath.Join(b.configs, "agents/large.yaml"): "profile_name: large\nprimary_model: {provider: script, model: m, script: large.yaml}\ntools: {builtin: [workspace]}\n",
		filepath.Join(b.configs, "large.yaml"):        "turns:\n- tool_calls: [{name: grep, arguments: {pattern: large}}]\n- text: done\n",
		filepath.Join(b.work, "large.txt"):            large,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.agent("large", "Go").exits(0)
	ses := lines[client.Session](b.here("sessions", "ls", "--json").exits(0))[0].ID
	b.here("sessions", "artifacts", ses).exits(0).says("grep.txt", "until ")
	all := lines[client.Artifact](b.here("sessions", "artifacts", ses, "--json").exits(0))
	if len(all) != 1 || all[0].Bytes < 2000 || all[0].ExpiresAt == "" {
		t.Fatalf("%+v", all)
	}
	b.here("sessions", "artifacts", ses, "--save", all[0].ID[:8]).exits(0).says("bytes are saved in grep.txt")
	if got, err := os.ReadFile(filepath.Join(b.work, "grep.txt")); err != nil || int64(len(got)) != all[0].Bytes {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	b.here("sessions", "artifacts", ses, "--save", all[0].ID).exits(2).complains("grep.txt", "--out")
	b.here("sessions", "artifacts", ses, "--save", all[0].ID, "--out", "-").exits(0).says("a line of a large file")
	b.here("sessions", "artifacts", ses, "--save", "zz").exits(1).complains("0 artifacts")
	b.here("sessions", "artifacts", "ses_x").exits(1).complains("there is no session ses_x")
	// What was given up stays listed, and says so.
	b.damage("UPDATE artifacts SET expired = 1000, why = 'it was old'", "DELETE FROM blob_uses", "DELETE FROM blobs")
	b.here("sessions", "artifacts", ses).exits(0).says("expired on 1970-01-01")
	b.here("sessions", "artifacts", ses, "--save", all[0].ID, "--out", "-").exits(1).complains("expired on 1970-01-01", "it was old")
}

func TestFileName(t *testing.T) {
	for name, want := range map[string]string{"a.txt": "a.txt", "../../x": "_.____x", "": "artifact.txt", "-rf": "_rf", "a\x00b": "a_b", `c:\x`: "c__x"} {
		if got := fileName(name); strings.ContainsAny(got, "/\\\x00") || len(got) == 0 || name != "../../x" && got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}
