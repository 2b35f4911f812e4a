package cli

import (
	"os"
	"strings"
	"testing"

	"agentd/message"
)

// What is said to a run under way reaches it with what goes with it; a data folder has
// nobody to read it.
func TestSayingSomethingToARun(t *testing.T) {
	b := newBench(t)
	b.add("agents/asks.yaml", "profile_name: asks\nprimary_model: {provider: script, model: m, script: asks.yaml}\ntools: {builtin: [ask_user_question]}\n")
	b.add("asks.yaml", "restart: never\nturns:\n- tool_calls: [{name: ask_user_question, arguments: {question: 'Which colour?'}}]\nfallthrough: Then {{.User}}.\n")
	b.agent("asks", "Paint it", "--context", "tree=main.go", "--context", "mode=edit").exits(exitPaused)
	i := b.waiting()[0]
	b.here("runs", "steer", i.RunID, "hurry").exits(exitFailed).complains("is not driven by this process", "--server URL")
	url, rt := b.serving(nil)
	there := func(args ...string) *result { t.Helper(); return b.run(append(args, "--server", url)...) }
	if err := os.WriteFile("files.txt", []byte("main.go\nnew.go"), 0o600); err != nil {
		t.Fatal(err)
	}
	there("runs", "steer", i.RunID, "hurry", "--follow-up", "--context", "tree=@files.txt", "--context", "mode=").exits(0).says("run " + i.RunID + " will read it")
	there("runs", "steer", i.RunID, "-", "--follow-up", "--json").exits(0).says(`"status":"accepted"`)
	for _, args := range [][]string{{"x", "--context", "tree"}, {"x", "--context", "=a"}, {"x", "--context", "tree=@missing.txt"}, {" "}} {
		there(append([]string{"runs", "steer", i.RunID}, args...)...).exits(exitUsage)
	}
	there("runs", "steer", i.RunID, "x", "--context", "memory=a").exits(exitUsage).complains("agentd's own")
	there("interrupts", "answer", i.ID, "--answer", "red").exits(0)
	if r, err := rt.Wait(t.Context(), i.RunID); err != nil || r.Status != "completed" {
		t.Fatalf("%+v, %v", r, err)
	}
	entries, err := rt.Entries(t.Context(), i.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, e := range entries {
		if e.Message == nil || e.Message.Role != message.RoleUser {
			continue
		}
		s := e.Message.Text()
		for _, c := range e.Context {
			s += " " + c.Text
		}
		said = append(said, s)
	}
	want := "Paint it <context kind=\"tree\">\nmain.go\n</context> <context kind=\"mode\">\nedit\n</context>|" +
		"hurry <context kind=\"tree\">\nmain.go\nnew.go\n</context> <context kind=\"mode\" removed=\"true\"></context>|from standard input"
	if strings.Join(said, "|") != want {
		t.Errorf("%q", said)
	}
}
