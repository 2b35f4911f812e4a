package skill

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"agentd/fault"
)

// Command is what a message begins with that calls a skill: /skill:NAME, and then, if
// anything, what it is to be used for.
const Command = "/skill:"

// Called gives the skill that words call, nil if they call none. That there is no such
// skill is an error, which names those that are written alike, or all.
func (s *Set) Called(words string) (*Skill, error) {
	rest, ok := strings.CutPrefix(words, Command)
	if !ok {
		return nil, nil
	}
	// Names that the standard does not know may hold spaces: the longest that fits is meant.
	var found *Skill
	for _, k := range s.Skills() {
		if after, ok := strings.CutPrefix(rest, k.Name); ok && (after == "" || strings.IndexFunc(after, unicode.IsSpace) == 0) && (found == nil || len(k.Name) > len(found.Name)) {
			found = k
		}
	}
	if found != nil {
		return found, nil
	}
	name := rest
	if i := strings.IndexFunc(rest, unicode.IsSpace); i >= 0 {
		name = rest[:i]
	}
	if name == "" {
		_, err := s.Find("")
		return nil, &fault.Error{Kind: fault.Invalid, Err: errors.New(Command + " needs the name of a skill"), Hint: fault.HintOf(err)}
	}
	_, err := s.Find(name)
	hint := fault.HintOf(err)
	if near := s.near(name); len(near) > 0 {
		hint = "Did you mean " + strings.Join(near, " or ") + "?"
	}
	return nil, &fault.Error{Kind: fault.Invalid, Err: fmt.Errorf("there is no skill %.80q", name), Hint: hint}
}

// maxNear is how many names are suggested.
const maxNear = 3

// near gives the names that are written like one, the most alike first.
func (s *Set) near(name string) []string {
	type like struct {
		name string
		far  int
	}
	var all []like
	got := strings.ToLower(name)
	limit := max(1, (len(got)+1)/3)
	for _, k := range s.Skills() {
		have := strings.ToLower(k.Name)
		far := distance(got, have, limit)
		if far > limit && len(got) >= 3 && (strings.HasPrefix(have, got) || strings.HasSuffix(have, got) || strings.HasPrefix(got, have)) {
			far = limit
		}
		if far <= limit {
			all = append(all, like{k.Name, far})
		}
	}
	slices.SortStableFunc(all, func(a, b like) int { return a.far - b.far })
	var out []string
	for _, l := range all[:min(len(all), maxNear)] {
		out = append(out, l.name)
	}
	return out
}

// distance is the number of letters to insert, delete or replace, or limit+1 if it is
// more than limit.
func distance(a, b string, limit int) int {
	if len(a) > maxName || len(b) > maxName || len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	last, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
		}
		last, row = row, last
	}
	return min(last[len(b)], limit+1)
}

// Loaded is a skill as a model reads it: its text, what it needs, and its files. have says
// whether the agent has a tool; nil where nobody knows.
func (s *Set) Loaded(k *Skill, have func(name string) bool) (string, error) {
	body, err := s.Text(k)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Skill: %s\n\n%s", k.Name, body)
	if k.Compatibility != "" {
		fmt.Fprintf(&b, "\n\nIt is meant for: %s", oneLine(k.Compatibility))
	}
	if len(k.Tools) > 0 {
		fmt.Fprintf(&b, "\n\nIt uses the tools %s.", strings.Join(k.Tools, ", "))
		if have == nil {
			have = func(string) bool { return true }
		}
		if missing := slices.DeleteFunc(slices.Clone(k.Tools), have); len(missing) > 0 {
			fmt.Fprintf(&b, " You do not have %s: do without, or say what can not be done.", strings.Join(missing, ", "))
		}
	}
	if files, more := s.Files(k); len(files) > 0 {
		fmt.Fprintf(&b, "\n\nIts files, in %s; read them with %s when you need them:\n- %s", k.Dir, ReadFile, strings.Join(files, "\n- "))
		if more > 0 {
			fmt.Fprintf(&b, "\n- and %d more", more)
		}
	}
	return b.String(), nil
}

// Call gives what goes with words that call a skill: the skill as models load it, and
// what it has to do with the words; "" if they call none.
func (s *Set) Call(words string) (string, error) {
	k, err := s.Called(words)
	if k == nil || err != nil {
		return "", err
	}
	text, err := s.Loaded(k, nil)
	if err != nil {
		return "", err
	}
	return text + "\n\nThe message that comes with this calls the skill: go by it. What stands there behind " + Command + k.Name + " is what to use it for.", nil
}
