package agentd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentd"
	"agentd/fault"
)

// A message that begins with /skill:NAME brings the skill, where the profile lets it.
func TestMessagesThatCallSkills(t *testing.T) {
	file := "---\nname: review\ndescription: Review a change\n---\nLook twice.\n"
	work := write(t, map[string]string{".agents/skills/review/SKILL.md": file})
	profile := func(name, skills string) string {
		return "profile_name: " + name + "\nprimary_model: {provider: script, model: m, script: p.yaml}\n" + skills
	}
	configs := map[string]string{
		"agents/on.yaml":   profile("on", "skills: {enabled: true, user: false}\n"),
		"agents/off.yaml":  profile("off", "skills: {enabled: true, user: false, commands: false}\n"),
		"agents/none.yaml": profile("none", ""),
		"agents/deny.yaml": profile("deny", "skills: {enabled: true, user: false}\ntools: {deny: [load_skill]}\n"),
		"p.yaml":           "fallthrough: You said {{.User}}.\n",
	}
	rt, err := agentd.Open(t.Context(), agentd.Config{Data: ":memory:", Configs: write(t, configs), Workspace: work})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	say := func(profile, session, words string) (context, at string) {
		t.Helper()
		r, err := rt.Start(t.Context(), agentd.StartRequest{Profile: profile, SessionID: session, Input: agentd.Text(words)})
		if err == nil {
			r, err = rt.Wait(t.Context(), r.ID)
		}
		if err != nil || r.Output != "You said "+words+"." {
			t.Fatalf("%+v %v", r, err)
		}
		entries, err := rt.Entries(t.Context(), r.SessionID)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			for _, b := range e.Context {
				context += b.Text + "\n"
			}
		}
		return context, r.SessionID
	}
	first, session := say("on", "", "/skill:review the diff")
	if !strings.Contains(first, "<context kind=\"skill\">\n# Skill: review\n\nLook twice.\n") || strings.Count(first, "<context") != 1 {
		t.Errorf("%s", first)
	}
	if err := os.WriteFile(filepath.Join(work, ".agents/skills/review/SKILL.md"), []byte(strings.Replace(file, "twice", "thrice", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if both, _ := say("on", session, "/skill:review it again"); !strings.HasPrefix(both, first) || !strings.Contains(both[len(first):], "Look thrice.") {
		t.Errorf("%s", both)
	}
	_, err = rt.Start(t.Context(), agentd.StartRequest{Profile: "on", Input: agentd.Text("/skill:revue")})
	if fault.KindOf(err) != fault.Invalid || fault.HintOf(err) != "Did you mean review?" || !strings.HasPrefix(err.Error(), "input: ") {
		t.Errorf("%v %s", err, fault.HintOf(err))
	}
	for _, profile := range []string{"off", "none", "deny"} {
		if context, _ := say(profile, "", "/skill:review the diff"); context != "" {
			t.Errorf("%s: %s", profile, context)
		}
	}
}
