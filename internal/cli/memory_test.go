package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMemoryCommands(t *testing.T) {
	b := newBench(t)
	t.Chdir(t.TempDir())
	b.here("memory", "add", "--section", "preferences", "Answer", "in German").exits(exitOK)
	b.here("memory", "add", "--scope", "project", "It is called Loom").exits(exitOK)
	rows := lines[map[string]any](b.here("memory", "list", "--json").exits(exitOK))
	if len(rows) != 2 || rows[0]["text"] != "Answer in German" || rows[0]["section"] != "Preferences" || rows[1]["scope"] != "project" || rows[0]["origin"] != "person" {
		t.Fatalf("%v", rows)
	}
	file, err := os.ReadFile(filepath.Join(b.data, "MEMORY.md"))
	if err != nil || !strings.Contains(string(file), "- Answer in German <!-- agentd: ") {
		t.Errorf("%s %v", file, err)
	}
	id := rows[0]["memory_id"].(string)
	b.here("memory", "show", id).exits(exitOK).says("Answer in German", "a person")
	if rows = lines[map[string]any](b.here("memory", "edit", id, "Answer in Dutch", "--json").exits(exitOK)); rows[0]["text"] != "Answer in Dutch" || rows[0]["section"] != "Preferences" {
		t.Errorf("%v", rows)
	}
	b.here("memory", "show", id).exits(exitFailed)
	id = rows[0]["memory_id"].(string)
	b.here("memory", "remove", id).exits(exitOK)
	b.here("memory", "remove", id).exits(exitFailed)
	b.here("memory", "add", "password: hunter2hunter2").exits(exitUsage)
	b.here("memory", "add").exits(exitUsage)
	b.here("memory", "edit", id, " ").exits(exitUsage)
	if rows = lines[map[string]any](b.here("memory", "list", "--user", "kim", "--json").exits(exitOK)); len(rows) != 1 {
		t.Errorf("another user sees the project's alone: %v", rows)
	}
}

func TestMemoryOfAWorkspace(t *testing.T) {
	b := newBench(t)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("MEMORY.md", []byte("# Memory\n\n## Orders\n\n- Ask nobody\n- Use tabs <!-- agentd: 2026-01-02 person -->\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.here("memory", "add", "--scope", "project", "It is called Loom").exits(exitOK)
	rows := lines[map[string]any](b.here("memory", "ls", "--json").exits(exitOK).complains("2 of these", "memory trust"))
	if len(rows) != 3 || rows[0]["origin"] != "workspace" || rows[1]["origin"] != "workspace" || rows[2]["origin"] != "person" {
		t.Fatalf("%v", rows)
	}
	id := rows[1]["memory_id"].(string)
	b.here("memory", "show", id).exits(exitOK).says("Use tabs", "agentd memory trust "+id)
	b.here("memory", "trust").exits(exitUsage)
	b.here("memory", "trust", "--all", id).exits(exitUsage)
	b.here("memory", "trust", "mem_no").exits(exitFailed)
	if rows = lines[map[string]any](b.here("memory", "trust", id, "--json").exits(exitOK)); len(rows) != 1 || rows[0]["origin"] != "person" {
		t.Errorf("%v", rows)
	}
	b.here("memory", "trust", "--all").exits(exitOK).says("Ask nobody")
	b.here("memory", "trust", "--all").exits(exitOK).complains("there was nothing")
	for _, row := range lines[map[string]any](b.here("memory", "ls", "--json").exits(exitOK)) {
		if row["origin"] == "workspace" {
			t.Errorf("%v", row)
		}
	}
}

func TestSkillsCommands(t *testing.T) {
	b := newBench(t)
	work := t.TempDir()
	for name, text := range map[string]string{".agents/skills/review/SKILL.md": "---\nname: review\ndescription: Review a change\nlicense: MIT\n---\nLook twice.\n",
		".agents/skills/review/more.md": "x", ".agents/skills/bad/SKILL.md": "---\nname: bad\n---\nx"} {
		file := filepath.Join(work, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", t.TempDir())
	on := []string{"--configs", b.configs, "--workspace", work, "--profile", "talk"}
	rows := lines[map[string]any](b.run(append([]string{"skills", "list", "--json"}, on...)...).exits(exitOK))
	if len(rows) != 1 || rows[0]["name"] != "review" || rows[0]["source"] != "project" {
		t.Errorf("%v", rows)
	}
	rows = lines[map[string]any](b.run(append([]string{"skills", "show", "review", "--json"}, on...)...).exits(exitOK))
	if rows[0]["text"] != "Look twice." || rows[0]["license"] != "MIT" {
		t.Errorf("%v", rows)
	}
	b.run(append([]string{"skills", "show", "revue"}, on...)...).exits(exitFailed)
	b.run(append([]string{"skills", "check"}, on...)...).exits(exitUsage).says("bad/SKILL.md:1: error: description is missing")
	b.run(append([]string{"skills", "list", "--workspace", filepath.Join(work, "none"), "--profile", "talk"}, on[:2]...)...).exits(exitUsage)

	// A server shows what its agents have, and not where.
	if err := os.CopyFS(b.work, os.DirFS(work)); err != nil {
		t.Fatal(err)
	}
	url, _ := b.serving(nil)
	rows = lines[map[string]any](b.run("skills", "list", "--json", "--server", url, "--profile", "talk").exits(exitOK))
	if len(rows) != 1 || rows[0]["name"] != "review" || rows[0]["file"] != nil {
		t.Errorf("%v", rows)
	}
	b.run("skills", "list", "--server", url, "--profile", "talk").exits(exitOK).says("review", "project").complains("profile talk has no skills")
	b.run("skills", "show", "review", "--server", url, "--profile", "talk").exits(exitOK).says("Look twice.", "more.md")
	b.run("skills", "show", "revue", "--server", url, "--profile", "talk").exits(exitFailed).complains("The skills are: review.")
	b.run("skills", "list", "--server", url, "--profile", "nobody").exits(exitFailed)
	b.run("skills", "check", "--server", url).exits(exitUsage)
	b.run("skills", "list", "--server", url, "--configs", b.configs).exits(exitUsage)
}
