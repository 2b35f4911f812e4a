package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// schemaURL is the address under which a schema is compiled. Nothing is
// fetched from it or from anywhere else.
const schemaURL = "tool:///schema"

// maxRepairs bounds how often a schema is mended before it is given up.
const maxRepairs = 32

// compileSchema compiles what can be compiled. Tools come from strangers whose
// schemas were never held against a validator, so a mistake costs the rule that
// has it and not the tool. ignored says what was left out; a nil schema means
// everything was.
func compileSchema(raw json.RawMessage) (schema *jsonschema.Schema, ignored []string) {
	doc, err := decode(raw)
	if err != nil {
		return nil, []string{"the schema " + err.Error()}
	}
	root, ok := doc.(map[string]any)
	if !ok {
		if doc != nil {
			ignored = []string{"the schema must be an object, not " + typeName(doc)}
		}
		return nil, ignored
	}
	note := func(s string) {
		if !slices.Contains(ignored, s) {
			ignored = append(ignored, s)
		}
	}
	for range maxRepairs {
		schema, err := compileDocument(root, note)
		if err == nil {
			return schema, ignored
		}
		removed := mend(root, err)
		if len(removed) == 0 {
			note(shorten(err.Error(), 300))
			return nil, ignored
		}
		for _, r := range removed {
			note(r)
		}
	}
	note("too many mistakes to go on")
	return nil, ignored
}

func compileDocument(root map[string]any, note func(string)) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.AssertFormat()
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) {
		re, err := regexp.Compile(s)
		if err != nil {
			// Patterns are JavaScript's; Go has no look-around and no back references.
			note(fmt.Sprintf("the pattern %q is not understood", shorten(s, 80)))
			return anything(s), nil
		}
		return re, nil
	})
	if err := c.AddResource(schemaURL, root); err != nil {
		return nil, err
	}
	return c.Compile(schemaURL)
}

// noLoader fetches nothing: a schema must not make agentd read a file or call
// an address.
type noLoader struct{}

// Load refuses.
func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("schemas of other places are not fetched")
}

// anything is a regular expression that matches every text.
type anything string

// MatchString reports true.
func (anything) MatchString(string) bool { return true }

// String returns the pattern as it was written.
func (a anything) String() string { return string(a) }

// mend removes from the schema what err complains about and says what it was.
func mend(root map[string]any, err error) (removed []string) {
	var invalid *jsonschema.SchemaValidationError
	var details *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &details) {
		for _, leaf := range leaves(details) {
			// Only the keyword that is wrong is removed, never the schema as a whole.
			if at := leaf.InstanceLocation; len(at) > 0 && remove(root, at) {
				removed = append(removed, path(at)+" "+leaf.ErrorKind.LocalizedString(printer()))
			}
		}
		return removed
	}
	// A reference leads nowhere, or away from here.
	removed = dropReferences(root, root, nil)
	if len(removed) > 0 {
		return removed
	}
	for _, key := range []string{"$schema", "$id", "id", "$vocabulary"} {
		if v, ok := root[key]; ok {
			delete(root, key)
			return []string{fmt.Sprintf("%s %v", key, v)}
		}
	}
	return nil
}

// leaves gives the errors that have no cause of their own.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	causes := e.Causes
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		// All alternatives complain about the same place: one is enough.
		causes = causes[:1]
	}
	var out []*jsonschema.ValidationError
	for _, c := range causes {
		out = append(out, leaves(c)...)
	}
	return out
}

// remove deletes the value at a place. An element of a list goes with its list.
func remove(node any, at []string) bool {
	switch x := node.(type) {
	case map[string]any:
		child, ok := x[at[0]]
		if !ok {
			return false
		}
		if _, list := child.([]any); len(at) == 1 || list && len(at) == 2 {
			delete(x, at[0])
			return true
		}
		return remove(child, at[1:])
	case []any:
		i, err := strconv.Atoi(at[0])
		return err == nil && i >= 0 && i < len(x) && len(at) > 1 && remove(x[i], at[1:])
	}
	return false
}

// dropReferences removes every $ref that does not lead to a place in root.
func dropReferences(root, node any, at []string) (removed []string) {
	switch x := node.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			child := x[key]
			if s, ok := child.(string); ok && (key == "$ref" || key == "$dynamicRef" || key == "$recursiveRef") && !leadsSomewhere(root, s) {
				delete(x, key)
				removed = append(removed, fmt.Sprintf("%s %s leads to nothing in the schema", path(append(slices.Clip(at), key)), shorten(s, 80)))
				continue
			}
			removed = append(removed, dropReferences(root, child, append(slices.Clip(at), key))...)
		}
	case []any:
		for i, child := range x {
			removed = append(removed, dropReferences(root, child, append(slices.Clip(at), strconv.Itoa(i)))...)
		}
	}
	return removed
}

func leadsSomewhere(root any, ref string) bool {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return false
	}
	if pointer == "" {
		return true
	}
	if !strings.HasPrefix(pointer, "/") {
		return false // an anchor; it is dropped only after compiling failed
	}
	node := root
	for part := range strings.SplitSeq(pointer[1:], "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch x := node.(type) {
		case map[string]any:
			if node, ok = x[part]; !ok {
				return false
			}
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(x) {
				return false
			}
			node = x[i]
		default:
			return false
		}
	}
	switch node.(type) {
	case map[string]any, bool:
		return true
	}
	return false
}
