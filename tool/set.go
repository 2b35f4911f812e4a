package tool

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Set is an immutable collection of tools, sorted by name. The zero value is
// empty. A set never changes under a running step, so prompts stay byte-stable.
type Set struct {
	tools []entry
}

type entry struct {
	spec Spec
	tool Tool
}

var nameRE = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// NewSet returns the set of the tools. Two tools of one name, and a name that no
// provider accepts, are errors.
func NewSet(tools ...Tool) (Set, error) {
	var s Set
	for _, t := range tools {
		s.tools = append(s.tools, entry{t.Spec(), t})
	}
	slices.SortFunc(s.tools, func(a, b entry) int { return strings.Compare(a.spec.Name, b.spec.Name) })
	for i, e := range s.tools {
		if !nameRE.MatchString(e.spec.Name) {
			return Set{}, fmt.Errorf("tool name %q: use 1 to 64 letters, digits, _ or -", e.spec.Name)
		}
		if i > 0 && s.tools[i-1].spec.Name == e.spec.Name {
			return Set{}, fmt.Errorf("two tools are named %q (from %q and %q): deny or rename one",
				e.spec.Name, s.tools[i-1].spec.Source, e.spec.Source)
		}
	}
	return s, nil
}

// Len is the number of tools.
func (s Set) Len() int { return len(s.tools) }

// Lookup finds a tool by its exact name.
func (s Set) Lookup(name string) (Tool, Spec, bool) {
	i, ok := slices.BinarySearchFunc(s.tools, name, func(e entry, n string) int { return strings.Compare(e.spec.Name, n) })
	if !ok {
		return nil, Spec{}, false
	}
	return s.tools[i].tool, s.tools[i].spec, true
}

// Specs returns the specs, sorted by name.
func (s Set) Specs() []Spec {
	specs := make([]Spec, len(s.tools))
	for i, e := range s.tools {
		specs[i] = e.spec
	}
	return specs
}

// Names returns the names, sorted.
func (s Set) Names() []string {
	names := make([]string, len(s.tools))
	for i, e := range s.tools {
		names[i] = e.spec.Name
	}
	return names
}
