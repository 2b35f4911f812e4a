package prompt

import (
	"maps"
	"slices"
	"strings"
)

// placeholder is a {{name}} in a text.
type placeholder struct {
	name       string
	from, upto int
	line       int // from 0
}

// placeholders finds them. What is not closed on its line, or is no name, is text;
// \{{ is {{.
func placeholders(text string) (out []placeholder) {
	line, counted := 0, 0
	for at := 0; ; {
		i := strings.Index(text[at:], "{{")
		if i < 0 {
			return out
		}
		i += at
		end := strings.Index(text[i:], "}}")
		if end < 0 {
			return out
		}
		name := strings.TrimSpace(text[i+2 : i+end])
		if i > 0 && text[i-1] == '\\' || !isName(name) {
			at = i + 2
			continue
		}
		line += strings.Count(text[counted:i], "\n")
		counted = i
		out = append(out, placeholder{name: name, from: i, upto: i + end + 2, line: line})
		at = i + end + 2
	}
}

// isName is whether s could be the name of a fact: small letters, digits, _, . or -.
func isName(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// Clock are the placeholders that the passing of time changes, with the lowest tier that
// may have each.
func clock(name string) Tier {
	switch name {
	case "date":
		return Org
	case "time":
		return Turn
	}
	return Static
}

// problem is why a section of the tier can not have the placeholder, or "".
func (p *placeholder) problem(tier Tier) string {
	if least := clock(p.name); tier.rank() >= 0 && tier.rank() < least.rank() {
		if least == Turn {
			return "is for sections of tier turn: it is another one at every call, and nothing behind it could be cached"
		}
		return "is for sections of tier org or turn: a static one changes on deploy only"
	}
	return ""
}

// lookup gives the value of a placeholder; ok is false for one that nobody knows.
func (f *Facts) lookup(name string) (value string, ok bool) {
	switch name {
	case "date":
		return f.Date, true
	case "time":
		return f.Time, true
	case "run_mode":
		return f.RunMode, true
	case "mode":
		return f.Mode, true
	case "profile":
		return f.Profile, true
	case "user":
		return f.User, true
	case "tools":
		return strings.Join(f.Tools, ", "), true
	}
	value, ok = f.Named[name]
	return value, ok
}

// Unknown lists the placeholders of a text that are no facts, with their lines from
// 0, in order. named are the profile's own facts.
func Unknown(text string, named map[string]string) (names []string, lines []int) {
	f := &Facts{Named: named}
	for _, p := range placeholders(text) {
		if _, ok := f.lookup(p.name); !ok {
			names, lines = append(names, p.name), append(lines, p.line)
		}
	}
	return names, lines
}

// FactNames are the facts that texts may have, sorted.
func FactNames(named map[string]string) []string {
	return slices.Sorted(slices.Values(slices.Concat([]string{"date", "time", "run_mode", "mode", "profile", "user", "tools"}, slices.Collect(maps.Keys(named)))))
}

// fill puts facts in the place of placeholders. What nobody knows stays as it is.
func fill(text string, f *Facts) string {
	found := placeholders(text)
	if len(found) == 0 {
		return strings.ReplaceAll(text, `\{{`, "{{")
	}
	var b strings.Builder
	at := 0
	plain := func(s string) { b.WriteString(strings.ReplaceAll(s, `\{{`, "{{")) }
	for _, p := range found {
		plain(text[at:p.from])
		if v, ok := f.lookup(p.name); ok {
			b.WriteString(v)
		} else {
			b.WriteString(text[p.from:p.upto])
		}
		at = p.upto
	}
	plain(text[at:])
	return b.String()
}
