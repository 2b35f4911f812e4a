package agentd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// profiles makes a configuration folder of profiles by name; each is its keys
// besides the name, and a model that needs no key if they have none.
func profiles(t *testing.T, keys map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, k := range keys {
		if !strings.Contains(k, "primary_model") {
			k += "primary_model: {provider: script, model: m}\n"
		}
		text := "profile_name: " + name + "\n" + k
		if err := os.WriteFile(filepath.Join(dir, "agents", name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tools.deny takes every tool away, also those that runs perform themselves.
func TestDenyTakesEveryToolAway(t *testing.T) {
	all := "subagents: [all]\ntools: {builtin: [workspace, ask_user_question], deny: ["
	rt, err := Open(t.Context(), Config{Configs: profiles(t, map[string]string{"all": all + "]}\n", "names": all + "ask_user_question, create_subagent, glob]}\n",
		"patterns": all + "'ask_*', '*_subagent', 'g*']}\n"}), Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	for name, want := range map[string]bool{"all": true, "names": false, "patterns": false} {
		a, err := rt.agents.Agent(t.Context(), "", name)
		if err != nil {
			t.Fatal(err)
		}
		if a.AskUser != want || (len(a.Subagents) > 0) != want || slices.Contains(a.Tools.Names(), "glob") != want || !slices.Contains(a.Tools.Names(), "file_read") {
			t.Errorf("%s: ask %t, subagents %v, tools %v", name, a.AskUser, a.Subagents, a.Tools.Names())
		}
	}
}
