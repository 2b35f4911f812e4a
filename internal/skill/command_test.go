package skill

import (
	"strings"
	"testing"

	"agentd/fault"
)

func called(t testing.TB) *Set {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"spaced.skill.md": skillFile("two words", "x"), "two.skill.md": skillFile("two", "x")}
	for _, name := range []string{"review", "review-code", "release-notes", "pdf"} {
		files[name+"/SKILL.md"] = skillFile(name, "x")
	}
	write(t, dir, files)
	set, problems := new(Finder).Find([]Source{{Path: dir}}, Limits{}, nil)
	if len(set.Skills()) != 6 {
		t.Fatal(problems)
	}
	return set
}

func TestCalled(t *testing.T) {
	set := called(t)
	for words, want := range map[string]string{
		"hello": "", "": "", "see /skill:review": "", " /skill:review": "", "/skill": "", "/Skill:review": "",
		"/skill:review": "review", "/skill:review the diff": "review", "/skill:review\nthe diff": "review", "/skill:review-code": "review-code",
		"/skill:two things": "two", "/skill:two words": "two words", "/skill:two words more": "two words",
		"/skill:reviev":       `there is no skill "reviev". Did you mean review?`,
		"/skill:notes":        `there is no skill "notes". Did you mean release-notes?`,
		"/skill:Review it":    `there is no skill "Review". Did you mean review or review-code?`,
		"/skill:review2":      `there is no skill "review2". Did you mean review?`,
		"/skill:xyzzy":        `there is no skill "xyzzy". The skills are: pdf, release-notes, review, review-code, two, two words.`,
		"/skill:":             `/skill: needs the name of a skill. The skills are: pdf, release-notes, review, review-code, two, two words.`,
		"/skill: review":      `/skill: needs the name of a skill. The skills are: pdf, release-notes, review, review-code, two, two words.`,
		"/skill:../etc/passw": `there is no skill "../etc/passw". The skills are: pdf, release-notes, review, review-code, two, two words.`,
	} {
		k, err := set.Called(words)
		got := ""
		switch {
		case err != nil:
			got = err.Error() + ". " + fault.HintOf(err)
			if fault.KindOf(err) != fault.Invalid {
				t.Errorf("%q: %s", words, fault.KindOf(err))
			}
		case k != nil:
			got = k.Name
		}
		if got != want {
			t.Errorf("%q: %s\nnot %s", words, got, want)
		}
	}
	if _, err := new(Set).Called("/skill:x"); fault.HintOf(err) != "There are no skills." {
		t.Error(err, fault.HintOf(err))
	}
	text, err := set.Call("/skill:pdf make one")
	if err != nil || text != "# Skill: pdf\n\nDo pdf.\n\nThe message that comes with this calls the skill: go by it. What stands there behind /skill:pdf is what to use it for." {
		t.Errorf("%q %v", text, err)
	}
}

func FuzzCalled(f *testing.F) {
	for _, s := range []string{"", "/skill:", "/skill:review x", "/skill:two words\x00", "/skill:\xff\xfe", "/skill:" + strings.Repeat("r", 5000)} {
		f.Add(s)
	}
	set := called(f)
	f.Fuzz(func(t *testing.T, words string) {
		k, err := set.Called(words)
		switch {
		case k != nil && (err != nil || !strings.HasPrefix(words, Command+k.Name)):
			t.Errorf("%q calls %s, %v", words, k.Name, err)
		case err != nil && (fault.HintOf(err) == "" || len(err.Error()) > 1000 || !strings.HasPrefix(words, Command)):
			t.Errorf("%q: %v", words, err)
		case k == nil && err == nil && strings.HasPrefix(words, Command):
			t.Errorf("%q is nothing", words)
		}
	})
}
