package skill

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"agentd/fault"
	"agentd/tool"
)

func creating(t *testing.T, folders map[string]string) (run func(args map[string]any, call tool.Call) tool.Result, find func() *Set) {
	t.Helper()
	var f Finder
	find = func() *Set {
		var from []Source
		for _, kind := range []string{"project", "user"} {
			if dir := folders[kind]; dir != "" {
				from = append(from, Source{Kind: kind, Path: filepath.Join(dir, ".agentd", "skills"), Inside: kind == "project"})
			}
		}
		set, problems := f.Find(from, Limits{}, nil)
		if len(problems) > 0 {
			t.Errorf("%v", problems)
		}
		return set
	}
	w := &Writer{Folders: folders, May: func(tenant, user string) bool { return tenant == "default" && user == "" }}
	return func(args map[string]any, call tool.Call) tool.Result {
		t.Helper()
		data, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		if call.Tenant == "" {
			call.Tenant = "default"
		}
		if call.RunID == "" {
			call.RunID = "run_1"
		}
		call.Args = data
		for _, tl := range Tools(find(), func(string) bool { return true }, w) {
			if tl.Spec().Name == Create {
				res, err := tl.Run(context.Background(), call)
				if err != nil {
					t.Fatal(err)
				}
				return res
			}
		}
		t.Fatal("there is no tool")
		return tool.Result{}
	}, find
}

func draft(change map[string]any) map[string]any {
	d := map[string]any{"scope": "project", "name": "release-notes", "description": `Write notes: "what's new" # and why`, "tools": []string{"grep"}, "instructions": "# Notes\n\n---\n1. Find out <what> changed."}
	for k, v := range change {
		d[k] = v
	}
	return d
}

// What a model writes is found, with the same words, and says who wrote it.
func TestCreate(t *testing.T) {
	project := t.TempDir()
	run, find := creating(t, map[string]string{"project": project, "user": ""})
	res := run(draft(nil), tool.Call{})
	file := filepath.Join(project, ".agentd", "skills", "release-notes", "SKILL.md")
	if res.IsError || !strings.Contains(res.Content[0].Text, file) {
		t.Fatalf("%+v", res)
	}
	set := find()
	k, err := set.Find("release-notes")
	if err != nil || k.Description != `Write notes: "what's new" # and why` || len(k.Tools) != 1 || k.Metadata["created_by"] != "agentd, run run_1" {
		t.Fatalf("%+v, %v", k, err)
	}
	if text, err := set.Text(k); err != nil || text != "# Notes\n\n---\n1. Find out <what> changed." {
		t.Errorf("%q, %v", text, err)
	}
	// The same call again, after a crash, changes nothing.
	before, _ := os.Stat(file)
	if res := run(draft(nil), tool.Call{}); res.IsError {
		t.Errorf("%+v", res)
	}
	if after, _ := os.Stat(file); !os.SameFile(before, after) {
		t.Error("it was written again")
	}
	// Another text does not replace it, whoever wrote it.
	for _, c := range []map[string]any{{"instructions": "other"}, {"description": "other"}} {
		if res := run(draft(c), tool.Call{}); !res.IsError || !strings.Contains(res.Content[0].Text, "there is a skill release-notes") {
			t.Errorf("%+v", res)
		}
	}
	// What came after outputs of tools says so.
	if res := run(draft(map[string]any{"name": "doubtful"}), tool.Call{Untrusted: true}); res.IsError {
		t.Errorf("%+v", res)
	}
	if k, err := find().Find("doubtful"); err != nil || !strings.HasSuffix(k.Metadata["created_by"], "after outputs of tools") {
		t.Errorf("%+v, %v", k, err)
	}
}

func TestCreateRefuses(t *testing.T) {
	project, user, outside := t.TempDir(), t.TempDir(), t.TempDir()
	run, find := creating(t, map[string]string{"project": project, "user": user})
	for name, c := range map[string]struct {
		args map[string]any
		call tool.Call
		want string
	}{
		"a way out":            {draft(map[string]any{"name": "../x"}), tool.Call{}, "no name for a skill"},
		"capitals":             {draft(map[string]any{"name": "Notes"}), tool.Call{}, "no name for a skill"},
		"a long name":          {draft(map[string]any{"name": strings.Repeat("a", 65)}), tool.Call{}, "no name for a skill"},
		"nothing to do":        {draft(map[string]any{"instructions": " \n"}), tool.Call{}, "no instructions"},
		"nothing it is for":    {draft(map[string]any{"description": "\u200b\n"}), tool.Call{}, "description is missing"},
		"too much":             {draft(map[string]any{"instructions": strings.Repeat("word ", 20_000)}), tool.Call{}, "max_skill_bytes"},
		"nowhere":              {draft(map[string]any{"scope": "pack"}), tool.Call{}, "project, user"},
		"another tenant":       {draft(nil), tool.Call{Tenant: "acme"}, "can not be written here"},
		"a user of a client's": {draft(nil), tool.Call{User: "u1"}, "can not be written here"},
	} {
		t.Run(name, func(t *testing.T) {
			if res := run(c.args, c.call); !res.IsError || !strings.Contains(res.Content[0].Text, c.want) {
				t.Errorf("%+v, want %q", res, c.want)
			}
		})
	}
	if runtime.GOOS != "windows" {
		if err := os.MkdirAll(filepath.Join(project, ".agentd"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, filepath.Join(project, ".agentd", "skills")); err != nil {
			t.Fatal(err)
		}
		if res := run(draft(nil), tool.Call{}); !res.IsError {
			t.Errorf("a link led out of the folder: %+v", res)
		}
		for _, name := range []string{".agentd/skills", ".agentd"} {
			if err := os.Remove(filepath.Join(project, filepath.FromSlash(name))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, dir := range []string{project, outside, filepath.Join(user, ".agentd")} {
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Errorf("something was written: %v", left)
		}
	}
	// A skill of another source is not hidden by a new one.
	if res := run(draft(map[string]any{"scope": "user"}), tool.Call{}); res.IsError {
		t.Fatalf("%+v", res)
	}
	if res := run(draft(nil), tool.Call{}); !res.IsError || !strings.Contains(res.Content[0].Text, user) {
		t.Errorf("%+v", res)
	}
	if k, err := find().Find("release-notes"); err != nil || k.Source != "user" {
		t.Errorf("%+v, %v", k, err)
	}
}

// Whatever a model writes is refused, or reads as it was written.
func FuzzCreate(f *testing.F) {
	f.Add("notes", "what for", "do it", "grep")
	f.Add("a-1", "a: b\n---\n- x", "---\n---\n\r\n…", "x, y]")
	f.Add("a", "\"\\ \u2028 {", "\ufeff#!", "'")
	f.Fuzz(func(t *testing.T, name, description, instructions, uses string) {
		dir := t.TempDir()
		w := &Writer{Folders: map[string]string{"project": dir}}
		d := &Draft{Kind: "project", Name: name, Description: description, Instructions: instructions, Tools: []string{uses}}
		file, _, err := w.Write(d, "agentd", Limits{})
		if err != nil {
			return
		}
		if rel, err := filepath.Rel(dir, file); err != nil || !filepath.IsLocal(rel) {
			t.Fatalf("written to %s", file)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		k, body, _ := Parse(file, d.Name, data)
		if k == nil || k.Name != d.Name || k.Description != d.Description || body != d.Instructions {
			t.Fatalf("%+v %q\n%s", k, body, data)
		}
	})
}

// Several processes have writers that know nothing of each other. One writes the skill,
// whole, and the others are told that it is there.
func TestOneOfManyCreates(t *testing.T) {
	for round := range 30 {
		dir := t.TempDir()
		texts := make([]string, 6)
		errs := make([]error, len(texts))
		begin := make(chan struct{})
		var wg sync.WaitGroup
		for i := range texts {
			w := &Writer{Folders: map[string]string{"project": dir}}
			d := &Draft{Kind: "project", Name: "notes", Description: "what for", Instructions: strings.Repeat(fmt.Sprint("step ", i, "\n"), 1000)}
			texts[i] = strings.TrimSpace(d.Instructions)
			wg.Go(func() {
				<-begin
				_, _, errs[i] = w.Write(d, "agentd", Limits{})
			})
		}
		close(begin)
		wg.Wait()
		folder := filepath.Join(dir, ".agentd", "skills", "notes")
		data, err := os.ReadFile(filepath.Join(folder, fileName))
		if err != nil {
			t.Fatal(round, err, errs)
		}
		_, body, _ := Parse(fileName, "notes", data)
		won := 0
		for i, err := range errs {
			switch {
			case err == nil:
				if won++; body != texts[i] {
					t.Errorf("round %d: who wrote it has another text in the file, of %d bytes", round, len(body))
				}
			case fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "there is a skill notes"):
				t.Errorf("round %d: %v", round, err)
			}
		}
		if won != 1 {
			t.Errorf("round %d: %d have written it", round, won)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
			t.Errorf("round %d: left over: %v, %v", round, left, err)
		}
	}
}
