package agentd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentd/internal/engine"
	"agentd/internal/profile"
	"agentd/internal/prompt"
)

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The instructions of a project are read from the top of its repository down to the
// working folder, and nothing outside of it.
func TestProjectFiles(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, agentsFile), "outside")
	repo := filepath.Join(dir, "repo")
	work := filepath.Join(repo, "a", "b")
	put(t, filepath.Join(work, "x"), "")
	p := &projectFiles{dir: work, max: 1000}
	check := func(name string, want ...string) {
		t.Helper()
		got, err := p.read()
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for _, w := range want {
			i := strings.Index(got[at:], w)
			if i < 0 {
				t.Fatalf("%s: no %q in %q after %d", name, w, got, at)
			}
			at += i
		}
		if strings.Contains(got, "outside") || len(want) == 0 && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	check("there is none")
	put(t, filepath.Join(repo, agentsFile), "outside, as there is no repository")
	check("no repository")
	put(t, filepath.Join(repo, ".git", "HEAD"), "")
	put(t, filepath.Join(repo, agentsFile), "top")
	put(t, filepath.Join(work, agentsFile), "near")
	check("a repository", "# Instructions of the project", "## AGENTS.md\n\ntop", "## a/b/AGENTS.md\n\nnear")
	put(t, filepath.Join(work, agentsFile), "near, changed")
	check("after a change", "top", "near, changed")
	if err := os.Symlink(filepath.Join(dir, agentsFile), filepath.Join(repo, "a", agentsFile)); err == nil {
		check("a link that leads out", "top", "near, changed")
	}
	p = &projectFiles{dir: work, max: 20}
	put(t, filepath.Join(work, agentsFile), strings.Repeat("x", 12))
	put(t, filepath.Join(repo, agentsFile), strings.Repeat("ü", 12))
	check("too large", "## AGENTS.md\n\nüüüü\n[The rest of this file is left out: it has 24 bytes, and 20 are read", "## a/b/AGENTS.md\n\nxxxxxxxxxxxx")
}

// A profile's prompt: in tiers, by the run mode and by what the model may call.
func TestPromptOfAProfile(t *testing.T) {
	p := &profile.Profile{}
	p.ProfileName, p.SystemPrompt, p.OutputStyle, p.AutonomousApproval, p.AgentsFiles = "p", "You are P.", "concise", "capture", "never"
	p.PromptTemplates = profile.PromptTemplates{InteractivePreamble: "Ask.", AutonomousPreamble: "Decide.", ToolUsePreamble: "Use tools.", CheckpointPreamble: "Say why."}
	p.SectionFiles = []prompt.Section{{Name: "s", Tier: prompt.Static, Text: "Static."}, {Name: "o", Tier: prompt.Org, Text: "Org."}, {Name: "t", Tier: prompt.Turn, Text: "Turn."}}
	a := &agents{}
	ag := &engine.Agent{}
	if err := a.prompts(p, ag, ""); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		f    prompt.Facts
		want string
	}{
		{"interactive", prompt.Facts{RunMode: "interactive", Tools: []string{"ask_user_question", "x"}},
			"You are P.\n\nUse tools.\n\nAnswer briefly: no preamble, no summary of what was asked.\n\nStatic.|Org.\n\nAsk.\n\nSay why."},
		{"without tools", prompt.Facts{RunMode: "interactive"}, "You are P.\n\nAnswer briefly: no preamble, no summary of what was asked.\n\nStatic.|Org.\n\nAsk."},
		{"autonomous", prompt.Facts{RunMode: "autonomous", Tools: []string{"x"}},
			"You are P.\n\nUse tools.\n\nAnswer briefly: no preamble, no summary of what was asked.\n\nStatic.|Org.\n\n" + banner(p, true) + "\n\nDecide."},
	} {
		parts, _ := ag.Prompt.System(&tt.f)
		var texts []string
		for _, part := range parts {
			if !part.Cache {
				t.Errorf("%s: a tier ends without a mark", tt.name)
			}
			texts = append(texts, part.Text)
		}
		if got := strings.Join(texts, "|"); got != tt.want {
			t.Errorf("%s:\n%s\nnot\n%s", tt.name, got, tt.want)
		}
	}
	if b := ag.Prompt.Blocks(&prompt.Facts{}); len(b) != 1 || b[0] != (prompt.Block{Kind: "section.t", Text: "Turn."}) {
		t.Errorf("%+v", b)
	}
}

// The banner says what becomes of calls that need approval, and how to end.
func TestBanner(t *testing.T) {
	p := &profile.Profile{}
	p.AutonomousApproval = "capture"
	if s := banner(p, true); !strings.Contains(s, "nobody reads") || !strings.Contains(s, "captured as proposals") || !strings.Contains(s, "summary for an audit, not with a question") {
		t.Error(s)
	}
	if s := banner(p, false); strings.Contains(s, "approval") {
		t.Error(s)
	}
	p.AutonomousApproval = "fail"
	if s := banner(p, true); !strings.Contains(s, "are refused") {
		t.Error(s)
	}
	p.AutoApproveInDaemon, p.OutputStyle = true, "json"
	if s := banner(p, true); !strings.Contains(s, "executed without one") || strings.Contains(s, "summary") {
		t.Error(s)
	}
}

func TestNarrower(t *testing.T) {
	for _, tt := range [][3]int{{0, 0, 0}, {100, 0, 100}, {0, 50, 50}, {100, 50, 50}, {50, 100, 50}} {
		if got := narrower(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%v: %d", tt, got)
		}
	}
}
