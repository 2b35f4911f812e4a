package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"agentd/tool"
)

// Modes of a session: how much its agent may touch. They are no part of how people are
// asked (that is [Mode]): what a mode forbids nobody is asked for.
const (
	// Ask: the agent looks, and answers.
	Ask = "ask"
	// Plan: it looks, and makes a plan.
	Plan = "plan"
	// Edit: it may do what the rules allow. The empty mode is this one.
	Edit = "edit"
)

// ModeNames are the modes, from the strictest on.
func ModeNames() []string { return []string{Ask, Plan, Edit} }

// IsMode reports whether s names a mode.
func IsMode(s string) bool { return slices.Contains(ModeNames(), s) }

// Stricter gives the mode of two that allows less. What is no mode, such as "", counts
// as [Edit].
func Stricter(a, b string) string {
	for _, m := range ModeNames() {
		if a == m || b == m {
			return m
		}
	}
	return Edit
}

// Modes is what the modes of a profile allow beside what only reads. The zero value
// allows nothing more.
type Modes struct {
	// Tools are the names of tools that may be called whatever they do, by mode.
	Tools map[string][]string
	// Commands are tools that run a command line, with the argument that holds it. In mode
	// plan their commands may run that [ReadsOnly] knows.
	Commands map[string]string
	// Files are tools that write files, with the pattern of the paths that they may write
	// in mode plan.
	Files map[string]string
}

// Forbids says why a mode forbids a call with validated arguments, for the model that
// made it; "" if it does not. Tools that no declaration which is trusted calls reading are
// taken to write. Questions, plans and subagents, which have the mode themselves, are
// allowed in all modes.
func (m *Modes) Forbids(mode string, spec *tool.Spec, args json.RawMessage) string {
	if mode != Ask && mode != Plan {
		return ""
	}
	switch {
	case spec.Kind == "ask", spec.Kind == "plan", spec.Kind == "spawn", spec.EffectOrDefault() == tool.Read,
		spec.Kind == "" && slices.Contains(m.Tools[mode], spec.Name):
		return ""
	}
	why := spec.Name + " is not known to only read"
	if mode == Plan && spec.Kind == "" {
		if key, ok := m.Commands[spec.Name]; ok {
			err := command(key, args)
			if err == nil {
				return ""
			}
			why = "this command of " + spec.Name + " is not known to only read: " + err.Error()
		}
		if pattern, ok := m.Files[spec.Name]; ok {
			err := file(pattern, args)
			if err == nil {
				return ""
			}
			why = spec.Name + " may only write " + pattern + " here: " + err.Error()
		}
	}
	may := "tools that only read may be called"
	if mode == Plan {
		may = "you may look around, ask, and propose a plan"
	}
	return fmt.Sprintf("Not executed: the session is in mode %s, where %s; %s. Do not try other ways to do it. If it is needed, say so: "+
		"the person switches with mode edit (session_mode: edit with the next message, or agentd sessions mode SESSION edit).", mode, may, why)
}

// command says why the command line of a call may not run in mode plan.
func command(key string, args json.RawMessage) error {
	fields, err := object(args)
	if err != nil {
		return err
	}
	line, ok := fields[key].(string)
	if !ok {
		return fmt.Errorf("its argument %s is no text", key)
	}
	for name := range fields {
		// An environment, standard input or another shell make another command of it.
		if name != key && !slices.Contains([]string{"cwd", "workdir", "working_directory", "timeout", "timeout_ms", "timeout_seconds", "description"}, name) {
			return fmt.Errorf("what its argument %s does is not known", clip(name))
		}
	}
	return ReadsOnly(line)
}

// file says why what a call writes is not what may be written in mode plan.
func file(pattern string, args json.RawMessage) error {
	fields, err := object(args)
	if err != nil {
		return err
	}
	var where []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		// Many programs read members in whatever case they are written.
		switch name, ok := fields[key].(string); strings.ToLower(key) {
		case "path", "file_path", "filename", "file":
			if !ok {
				return fmt.Errorf("what its argument %s names is not known", clip(key))
			}
			where = append(where, name)
		case "filepath", "uri", "paths", "files", "source", "destination", "target", "cwd", "workdir", "working_directory":
			return fmt.Errorf("what its argument %s names is not known", clip(key))
		}
	}
	if len(where) != 1 {
		return errors.New("which file it writes can not be told from its arguments")
	}
	name := strings.TrimPrefix(where[0], "./")
	if name != path.Clean(name) || path.IsAbs(name) != path.IsAbs(pattern) || strings.HasPrefix(name, "..") || strings.ContainsAny(name, "\\\x00:") {
		return fmt.Errorf("%q is not", clip(where[0]))
	}
	if ok, err := path.Match(pattern, name); err != nil || !ok {
		return fmt.Errorf("%q is not", clip(where[0]))
	}
	return nil
}
