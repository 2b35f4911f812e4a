package skill

import (
	"context"
	_ "embed" // the descriptions beside this file
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentd/fault"
	"agentd/tool"
)

// Names of the tools.
const (
	Load     = "load_skill"
	ReadFile = "read_skill_file"
)

//go:embed load_skill.md
var loadDescription string

//go:embed read_skill_file.md
var readDescription string

// Tools gives the tools with which a model reads skills; none if there are none. have
// says whether the agent has a tool. With a writer there is one that writes them, too,
// and all are always there: a skill that comes must not change an agent's tools.
func Tools(s *Set, have func(name string) bool, w *Writer) []tool.Tool {
	var out []tool.Tool
	if w != nil && len(w.Kinds()) > 0 {
		return append(out, load{s, have}, readFile{s}, create{s, w})
	}
	if len(s.Skills()) == 0 {
		return nil
	}
	out = append(out, load{s, have})
	if slices.ContainsFunc(s.skills, func(k *Skill) bool { return k.Dir != "" }) {
		out = append(out, readFile{s})
	}
	return out
}

type load struct {
	set  *Set
	have func(name string) bool
}

func spec(name, label, description, schema string) tool.Spec {
	return tool.Spec{Name: name, Label: label, Description: strings.TrimSpace(description), Effect: tool.Read, Timeout: 30 * time.Second, Source: "builtin",
		Trusted: true, Schema: json.RawMessage(schema)}
}

// Spec describes the tool.
func (load) Spec() tool.Spec {
	return spec(Load, "Load skill", loadDescription, `{"type":"object","properties":{"name":{"type":"string","minLength":1,"description":"Name of the skill."}},"required":["name"],"additionalProperties":false}`)
}

// Run gives a skill's text.
func (l load) Run(_ context.Context, call tool.Call) (tool.Result, error) {
	var a struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return tool.ErrorResult("The arguments are not right: " + err.Error()), nil
	}
	k, err := l.set.Find(strings.TrimSpace(a.Name))
	if err != nil {
		return failed(err), nil
	}
	text, err := l.set.Loaded(k, l.have)
	if err != nil {
		return failed(err), nil
	}
	res := tool.TextResult(text)
	if res.Details, err = json.Marshal(map[string]string{"skill": k.Name, "source": k.Source, "file": k.File}); err != nil {
		return tool.Result{}, fmt.Errorf("skill: details: %w", err)
	}
	return res, nil
}

type readFile struct{ set *Set }

// Spec describes the tool.
func (readFile) Spec() tool.Spec {
	return spec(ReadFile, "Read skill file", readDescription, `{"type":"object","properties":{"skill":{"type":"string","minLength":1,"description":"Name of the skill."},`+
		`"path":{"type":"string","minLength":1,"description":"Path of the file below the skill's folder."}},"required":["skill","path"],"additionalProperties":false}`)
}

// Run gives a file's text.
func (r readFile) Run(_ context.Context, call tool.Call) (tool.Result, error) {
	var a struct {
		Skill string `json:"skill"`
		Path  string `json:"path"`
	}
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return tool.ErrorResult("The arguments are not right: " + err.Error()), nil
	}
	k, err := r.set.Find(strings.TrimSpace(a.Skill))
	if err != nil {
		return failed(err), nil
	}
	text, err := r.set.File(k, a.Path)
	if err != nil {
		return failed(err), nil
	}
	return tool.TextResult(text), nil
}

func failed(err error) tool.Result {
	text := err.Error()
	if hint := fault.HintOf(err); hint != "" {
		text += ". " + hint
	}
	return tool.ErrorResult(text)
}
