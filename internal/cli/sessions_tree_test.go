package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentd/client"
)

// A session is drawn, goes on from another place, is forked, and travels as a file.
func TestSessionTrees(t *testing.T) {
	b := newBench(t)
	for path, text := range map[string]string{
		filepath.Join(b.configs, "agents/echo.yaml"): "profile_name: echo\nprimary_model: {provider: script, model: m, script: echo.yaml}\n",
		filepath.Join(b.configs, "echo.yaml"):        "turns:\n- when: {user: 'Summarise the conversation above'}\n  text: '<summary>It was about peas.</summary>'\nfallthrough: 'You said {{.User}}.'\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.agent("echo", "one").exits(0)
	ses := lines[client.Session](b.here("sessions", "ls", "--json").exits(0))[0].ID
	b.agent("echo", "two", "--session", ses).exits(0)
	tree := func() *client.Tree {
		t.Helper()
		return lines[*client.Tree](b.here("sessions", "tree", ses, "--json").exits(0))[0]
	}
	entries := tree().Entries
	if len(entries) != 4 {
		t.Fatalf("%+v", entries)
	}
	two := entries[2].ID
	end := two[len(two)-7:]
	b.here("sessions", "navigate", ses, end, "--before").exits(0).says("goes on from "+two, "left out", "two")
	b.agent("echo", "three", "--session", ses).exits(0)
	b.here("sessions", "label", ses, end, "first try").exits(0).says("is called first try")
	b.here("sessions", "branch", ses, end).exits(2).complains("--label is missing")
	b.here("sessions", "branch", ses, "root", "--label", "from scratch").exits(0)
	b.agent("echo", "four", "--session", ses).exits(0)
	drawn := regexp.MustCompile(`[0-9a-z]{7} `).ReplaceAllString(regexp.MustCompile(`(?m)^(session|title) .*\n`).ReplaceAllString(b.here("sessions", "tree", ses).exits(0).out, ""), "")
	want := `├─○ user: one
│ ○ assistant: You said one.
│ ├─○ user: two  [first try]
│ │ ○ assistant: You said two.
│ └─○ branch
│   ○ user: three
│   ○ assistant: You said three.
│   ○ label: first try
└─● branch: from scratch
  ● user: four
  ● assistant: You said four.  ← here
`
	if drawn != want {
		t.Errorf("drawn\n%swant\n%s", drawn, want)
	}
	b.here("sessions", "navigate", ses, "zzzz").exits(1).complains("no entry whose id ends with zzzz", "sessions tree")
	b.here("sessions", "navigate", ses, two[len(two)-1:][:0]+"0").exits(2).complains("ids that end with 0")
	b.here("sessions", "navigate", "ses_x", "root").exits(1).complains("there is no session ses_x")

	from := tree().Leaf
	b.here("sessions", "navigate", ses, end, "--summarize", "--instructions", "dwell on peas").exits(0).says("goes on from " + two)
	if now := tree(); now.Leaf == from || now.Entries[len(now.Entries)-1].Kind != "branch_summary" {
		t.Errorf("%+v", now.Entries[len(now.Entries)-1])
	}
	b.here("sessions", "show", ses).exits(0).says("It was about peas.", "a summary of the way that was left; by script/m")
	b.here("sessions", "navigate", ses, "root", "--summarize", "--summary", "x").exits(2)
	b.here("sessions", "navigate", ses, "root", "--summarize", "-p", "nobody").complains("nobody")
	b.here("sessions", "navigate", ses, from).exits(0)

	fork := strings.TrimSpace(b.here("sessions", "fork", ses, end, "--title", "fork").exits(0).out)
	b.here("sessions", "tree", fork).exits(0).says("one", "two", "fork: "+ses, "← here")
	b.here("sessions", "fork", ses, end, "--all").exits(2).complains("an entry or --all")
	all := strings.TrimSpace(b.here("sessions", "fork", ses, "--all").exits(0).out)
	b.here("sessions", "tree", all).exits(0).says("three", "first try", "from scratch")

	file := filepath.Join(b.work, "session.jsonl")
	b.here("sessions", "export", ses, "-o", file).exits(0)
	b.here("sessions", "export", ses, "-o", file).exits(2).complains("does not exist")
	b.here("sessions", "export", "ses_x", "-o", file+"2").exits(1)
	if _, err := os.Stat(file + "2"); err == nil {
		t.Error("a file was made for a session that there is not")
	}
	b.here("sessions", "export", ses).exits(0).says(`{"type":"session","version":1,"format":"agentd"`, `"You said three."`)
	b.here("sessions", "export", "--no-artifacts", ses).exits(0).says(`"You said three."`)
	in := strings.TrimSpace(b.here("sessions", "import", file, "--title", "travelled").exits(0).out)
	b.here("sessions", "tree", in).exits(0).says("travelled", "three", "first try", "← here")
	b.agent("echo", "five", "--session", in).exits(0)
	if err := os.WriteFile(file, []byte("{\"type\":\"session\",\"version\":1,\"id\":\"x\"}\n{\"type\":\"label\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.here("sessions", "import", file).exits(2).complains("line 2: id: is missing")
	b.here("sessions", "import", file+"3").exits(1)
	pi := filepath.Join(b.work, "pi.jsonl")
	if err := os.WriteFile(pi, []byte(`{"type":"session","version":3,"id":"x","timestamp":"2026-03-01T09:00:00.000Z","cwd":"/"}
nonsense
{"type":"message","id":"a0000001","parentId":null,"timestamp":"2026-03-01T09:00:01.000Z","message":{"role":"user","content":"from Pi"}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	got := b.here("sessions", "import", pi).exits(0).complains("line 2: left out")
	b.here("sessions", "tree", strings.TrimSpace(got.out)).exits(0).says("from Pi")
}

// A way of a session that can not be reached any more is found, and the rest goes on.
func TestDoctorFindsLostEntries(t *testing.T) {
	b := newBench(t)
	b.agent("talk", "one").exits(0)
	ses := lines[client.Session](b.here("sessions", "ls", "--json").exits(0))[0].ID
	b.here("sessions", "branch", ses, "root", "--label", "lost").exits(0)
	b.here("sessions", "branch", ses, lines[*client.Tree](b.here("sessions", "tree", ses, "--json"))[0].Leaf, "--label", "behind").exits(0)
	b.here("sessions", "navigate", ses, "root").exits(0)
	b.here("doctor").exits(0).says("nothing is wrong")
	b.damage("DELETE FROM entries WHERE kind = 'branch' AND id IN (SELECT parent FROM entries WHERE kind = 'branch')")
	b.here("doctor").says("lost the one ahead of them")
	b.here("sessions", "tree", ses).exits(0).says("behind", "← here")
	b.agent("talk", "two", "--session", ses).exits(0)
}
