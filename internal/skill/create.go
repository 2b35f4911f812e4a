package skill

import (
	"bytes"
	"context"
	_ "embed" // the description beside this file
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"agentd/fault"
	"agentd/internal/wholefile"
	"agentd/tool"
)

// Create is the name of the tool that writes skills.
const Create = "create_skill"

//go:embed create_skill.md
var createDescription string

// below is where new skills go in a folder that is looked into.
const below = ".agentd/skills"

// Writer writes new skills. It never changes one that exists. It is safe for
// concurrent use, also beside others of the same folders, here and in other processes:
// of several who write the same skill one does.
type Writer struct {
	// Folders are the folders whose .agentd/skills may be written to, by the kind of
	// [Source] that they are.
	Folders map[string]string
	// May says who may write: skills are files that everybody's agents find.
	May func(tenant, user string) bool
}

// Kinds are those of the writer's folders, sorted.
func (w *Writer) Kinds() []string {
	var out []string
	for kind, dir := range w.Folders {
		if dir != "" {
			out = append(out, kind)
		}
	}
	slices.Sort(out)
	return out
}

// Draft is a skill to be written.
type Draft struct {
	Kind         string   `json:"scope"`
	Name         string   `json:"name"`
	Description  string   `json:"description"`
	Tools        []string `json:"tools"`
	Instructions string   `json:"instructions"`
}

// file is the text of SKILL.md. Who wrote it is part of it: people who find the file
// must be able to tell.
func (d *Draft) file(by string) []byte {
	var b bytes.Buffer
	b.WriteString("---\n")
	quote := func(v any) string { // JSON's texts and lists are YAML's
		var q bytes.Buffer
		enc := json.NewEncoder(&q)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(v) // texts can be encoded
		return strings.TrimSpace(q.String())
	}
	fmt.Fprintf(&b, "name: %s\ndescription: %s\n", quote(d.Name), quote(d.Description))
	if len(d.Tools) > 0 {
		fmt.Fprintf(&b, "tools: %s\n", quote(d.Tools))
	}
	fmt.Fprintf(&b, "metadata:\n  created_by: %s\n---\n%s\n", quote(by), d.Instructions)
	return b.Bytes()
}

// Write writes a skill and gives its file. One that exists with the same text is
// left as it is, so a call that is made again changes nothing; one with another text
// is refused.
func (w *Writer) Write(d *Draft, by string, limits Limits) (file string, warnings []Problem, err error) {
	bad := func(kind fault.Kind, field, hint, format string, args ...any) (string, []Problem, error) {
		return "", nil, &fault.Error{Op: "skill", Kind: kind, Field: field, Err: fmt.Errorf(format, args...), Hint: hint}
	}
	d.Name, d.Description, d.Instructions = strings.TrimSpace(d.Name), oneLine(d.Description), strings.TrimSpace(strings.ReplaceAll(d.Instructions, "\r\n", "\n"))
	for i, t := range d.Tools {
		d.Tools[i] = oneLine(t)
	}
	dir := w.Folders[d.Kind]
	if dir == "" {
		return bad(fault.Invalid, "scope", "Use one of "+strings.Join(w.Kinds(), ", ")+".", "skills can not be written to %q", d.Kind)
	}
	if len(d.Name) > maxName || !standardName.MatchString(d.Name) {
		return bad(fault.Invalid, "name", "Use 1 to 64 of a-z, 0-9, and single hyphens between them.", "%q is no name for a skill", d.Name)
	}
	if d.Instructions == "" {
		return bad(fault.Invalid, "instructions", "Write what to do.", "there are no instructions")
	}
	limits = limits.withDefaults()
	data := d.file(by)
	if len(data) > limits.Bytes {
		return bad(fault.TooLarge, "instructions", "Make it shorter; skills.max_skill_bytes in agentd.yaml is the limit.", "the skill has %d bytes, more than %d", len(data), limits.Bytes)
	}
	name := path.Join(below, d.Name, fileName)
	file = filepath.Join(dir, filepath.FromSlash(name))
	// What is written is what is read: one that could not be loaded is of no use.
	made, body, problems := Parse(file, d.Name, data)
	if made == nil {
		return bad(fault.Invalid, "", problems[0].Hint, "%s", problems[0].Message)
	}
	if made.Name != d.Name || made.Description != d.Description || !slices.Equal(made.Tools, d.Tools) || body != d.Instructions {
		return bad(fault.Invalid, "", "Write plain text.", "the skill can not be written so that it reads the same")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return bad(fault.Unavailable, dir, "Check that the folder is there and can be written.", "%w", err)
	}
	defer func() { _ = root.Close() }()
	for first := true; ; first = false {
		switch old, err := existing(root, name, limits.Bytes); {
		case err == nil && bytes.Equal(old, data):
			return file, problems, nil
		case err == nil:
			return bad(fault.Conflict, file, "Give another name, or ask the person to edit the file.", "there is a skill %s", d.Name)
		case !errors.Is(err, fs.ErrNotExist) || !first:
			return bad(fault.Unavailable, file, "Give another name, or ask the person to look at the file.", "there is something that can not be read: %w", err)
		}
		switch err := wholefile.Create(root, name, data, 0o644); {
		case err == nil:
			return file, problems, nil
		case !errors.Is(err, fs.ErrExist): // else another one has just made it
			return bad(fault.Unavailable, file, "Check that the folder can be written and the disk is not full. Nothing was changed.", "%w", err)
		}
	}
}

func existing(root *os.Root, name string, limit int) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("it is not a regular file"))
	}
	return io.ReadAll(io.LimitReader(f, int64(limit)+1))
}

type create struct {
	set *Set
	w   *Writer
}

// Spec describes the tool. What is written instructs agents from then on, so a call
// that may come from outputs of tools needs a person's word.
func (c create) Spec() tool.Spec {
	kinds, _ := json.Marshal(c.w.Kinds()) // texts can be encoded
	s := spec(Create, "Create skill", createDescription, `{"type":"object","properties":{`+
		`"name":{"type":"string","minLength":1,"maxLength":64,"description":"a-z, 0-9 and single hyphens."},`+
		`"description":{"type":"string","minLength":1,"maxLength":1024,"description":"What the skill is for and when to use it, in one or two sentences: it is chosen by this."},`+
		`"instructions":{"type":"string","minLength":1,"description":"What to do, in Markdown."},`+
		`"tools":{"type":"array","items":{"type":"string","minLength":1},"description":"Names of the tools that it uses."},`+
		`"scope":{"type":"string","enum":`+string(kinds)+`,"description":"project: of the folder that you work in. user: of the person, everywhere."}},`+
		`"required":["name","description","instructions","scope"],"additionalProperties":false}`)
	s.Effect, s.Untrusted = tool.Idempotent, "ask"
	return s
}

// Run writes a skill. It may be called again for the same call.
func (c create) Run(_ context.Context, call tool.Call) (tool.Result, error) {
	var d Draft
	if err := json.Unmarshal(call.Args, &d); err != nil {
		return tool.ErrorResult("The arguments are not right: " + err.Error()), nil
	}
	if c.w.May != nil && !c.w.May(call.Tenant, call.User) {
		return failed(&fault.Error{Op: "skill", Kind: fault.Forbidden, Err: errors.New("skills are files of whoever runs agentd, which all its agents find, and can not be written here"),
			Hint: "Give the person the text of the skill instead."}), nil
	}
	by := "agentd, run " + call.RunID
	if call.Untrusted {
		by += ", after outputs of tools"
	}
	// One that another source has would hide this one.
	if k, err := c.set.Find(strings.TrimSpace(d.Name)); err == nil && (k.Source != d.Kind || !strings.HasSuffix(filepath.ToSlash(k.File), path.Join("/", below, k.Name, fileName))) {
		return failed(&fault.Error{Op: "skill", Kind: fault.Conflict, Field: "name", Err: fmt.Errorf("there is a skill %s already, in %s", k.Name, k.File), Hint: "Give another name, or ask the person to edit the file."}), nil
	}
	file, warnings, err := c.w.Write(&d, by, c.set.limits)
	if err != nil {
		return failed(err), nil
	}
	text := fmt.Sprintf("The skill %s is in %s. It is in the list of skills from the next message on.", d.Name, file)
	for _, p := range warnings {
		text += "\n" + p.String()
	}
	res := tool.TextResult(text)
	if res.Details, err = json.Marshal(map[string]string{"skill": d.Name, "source": d.Kind, "file": file}); err != nil {
		return tool.Result{}, fmt.Errorf("skill: details: %w", err)
	}
	return res, nil
}
