package agentd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentd"
	"agentd/message"
)

// The files of the workspace go with a message when they are others than the session was
// told, within the limits of agentd.yaml.
func TestFilesOfTheWorkspaceAsContext(t *testing.T) {
	work := write(t, map[string]string{"main.go": "package main", "a/b/c/deep.go": "", ".env": "SECRET=1", ".gitignore": "*.tmp\n", "x.tmp": ""})
	configs := map[string]string{
		"agentd.yaml":   "limits: {max_tree_depth: 2, max_tree_entries: 6}\n",
		"agents/p.yaml": "profile_name: p\nprimary_model: {provider: script, model: m, script: p.yaml}\ncontext_sources: [tree, date]\n",
		"p.yaml":        "fallthrough: You said {{.User}}.\n",
	}
	rt, err := agentd.Open(t.Context(), agentd.Config{Data: ":memory:", Configs: write(t, configs), Workspace: work})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	session := ""
	say := func(blocks ...agentd.ContextBlock) {
		t.Helper()
		r, err := rt.Start(t.Context(), agentd.StartRequest{Profile: "p", SessionID: session, Input: []message.Block{message.Text("hi")}, ContextBlocks: blocks})
		if err == nil {
			session = r.SessionID
			r, err = rt.Wait(t.Context(), r.ID)
		}
		if err != nil || r.Output != "You said hi." {
			t.Fatalf("%+v %v", r, err)
		}
	}
	create := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(work, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	say()
	say()
	create("y.tmp") // nothing that the tools would list
	say()
	create("new.go")
	say()
	say(agentd.ContextBlock{Kind: "tree", Text: "the client's"})
	say()
	entries, err := rt.Entries(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range entries {
		if e.Message == nil || e.Message.Role != message.RoleUser {
			continue
		}
		tree := ""
		for _, b := range e.Context {
			if b.Context == "tree" {
				tree = strings.TrimSuffix(strings.TrimPrefix(b.Text, "<context kind=\"tree\">\n"), "\n</context>")
			}
		}
		told = append(told, tree)
	}
	first, then := ".gitignore\na/\n  b/ [not opened]\nmain.go", ".gitignore\na/\n  b/ [not opened]\nmain.go\nnew.go"
	want := []string{first, "", "", then, "the client's", then}
	if strings.Join(told, "|") != strings.Join(want, "|") {
		t.Errorf("%q\nnot\n%q", told, want)
	}
}
