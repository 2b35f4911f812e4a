package script

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// functions are what templates can call besides Go's own. Where one takes a list
// it takes a text too, as the list of its lines; the value comes last, so that
// functions can be chained with |.
func functions() map[string]any {
	return map[string]any{
		"lines":   lines,
		"head":    func(n int, v any) (any, error) { return part(n, v, false) },
		"tail":    func(n int, v any) (any, error) { return part(n, v, true) },
		"count":   count,
		"trim":    strings.TrimSpace,
		"join":    func(sep string, v any) (string, error) { l, err := list(v); return strings.Join(l, sep), err },
		"split":   func(sep, s string) []string { return strings.Split(s, sep) },
		"lower":   strings.ToLower,
		"upper":   strings.ToUpper,
		"clip":    clip,
		"default": func(d string, s string) string { return cmp.Or(s, d) },
		"find":    find,
		"findAll": findAll,
		"matches": func(expr, s string) (bool, error) {
			re, err := regexp.Compile(expr)
			return err == nil && re.MatchString(s), err
		},
		"replace":  replace,
		"keep":     func(expr string, v any) ([]string, error) { return filter(expr, v, true) },
		"drop":     func(expr string, v any) ([]string, error) { return filter(expr, v, false) },
		"sort":     func(v any) ([]string, error) { l, err := list(v); l = slices.Clone(l); slices.Sort(l); return l, err },
		"uniq":     uniq,
		"tally":    tally,
		"relative": relative,
		"json":     func(p, s string) string { return gjson.Get(s, p).String() },
		"quote":    func(s string) string { return string(AppendQuote(nil, s)) },
	}
}

// lines are the lines of a text that are not blank, without their line ends.
func lines(s string) []string {
	var out []string
	for l := range strings.Lines(s) {
		if l = strings.TrimRight(l, "\r\n"); strings.TrimSpace(l) != "" {
			out = append(out, l)
		}
	}
	return out
}

func list(v any) ([]string, error) {
	switch v := v.(type) {
	case []string:
		return v, nil
	case string:
		return lines(v), nil
	case nil:
		return nil, nil
	}
	return nil, fmt.Errorf("%T is neither a text nor a list of texts", v)
}

// part is the first or the last n elements of a list, or lines of a text.
func part(n int, v any, end bool) (any, error) {
	if t, ok := v.([]Tally); ok {
		if n = min(max(n, 0), len(t)); end {
			return t[len(t)-n:], nil
		}
		return t[:n], nil
	}
	l, err := list(v)
	if err != nil {
		return nil, err
	}
	if n = min(max(n, 0), len(l)); end {
		l = l[len(l)-n:]
	} else {
		l = l[:n]
	}
	if _, ok := v.(string); ok {
		return strings.Join(l, "\n"), nil
	}
	return l, nil
}

func count(v any) (int, error) {
	switch v := v.(type) {
	case []Result:
		return len(v), nil
	case []Tally:
		return len(v), nil
	}
	l, err := list(v)
	return len(l), err
}

// clip shortens a text to n characters.
func clip(n int, s string) string {
	i := 0
	for at := range s {
		if i == n {
			return s[:at] + "…"
		}
		i++
	}
	return s
}

// find is the first match: its first group if the expression has one.
func find(expr, s string) (string, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return "", err
	}
	return group(re.FindStringSubmatch(s)), nil
}

func findAll(expr string, v any) ([]string, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	texts, ok := v.([]string)
	if s, isText := v.(string); isText {
		texts = []string{s}
	} else if !ok {
		return nil, fmt.Errorf("%T is neither a text nor a list of texts", v)
	}
	var out []string
	for _, s := range texts {
		for _, m := range re.FindAllStringSubmatch(s, -1) {
			out = append(out, group(m))
		}
	}
	return out, nil
}

func group(m []string) string {
	switch len(m) {
	case 0:
		return ""
	case 1:
		return m[0]
	}
	return m[1]
}

func replace(expr, with string, v any) (any, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case string:
		return re.ReplaceAllString(v, with), nil
	case []string:
		out := make([]string, len(v))
		for i, s := range v {
			out[i] = re.ReplaceAllString(s, with)
		}
		return out, nil
	}
	return nil, fmt.Errorf("%T is neither a text nor a list of texts", v)
}

func filter(expr string, v any, want bool) ([]string, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	l, err := list(v)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, s := range l {
		if re.MatchString(s) == want {
			out = append(out, s)
		}
	}
	return out, nil
}

func uniq(v any) ([]string, error) {
	l, err := list(v)
	var out []string
	seen := map[string]bool{}
	for _, s := range l {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out, err
}

// Tally is how often a text occurs.
type Tally struct {
	Key   string
	Count int
}

// tally counts equal elements, the most frequent first, then by text.
func tally(v any) ([]Tally, error) {
	l, err := list(v)
	n := map[string]int{}
	for _, s := range l {
		n[s]++
	}
	out := make([]Tally, 0, len(n))
	for k, c := range n {
		out = append(out, Tally{k, c})
	}
	slices.SortFunc(out, func(a, b Tally) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key, b.Key))
	})
	return out, err
}

// relative takes the folder that all absolute paths of a list share away from
// them. Paths that are relative stay as they are, without a leading "./".
func relative(v any) ([]string, error) {
	l, err := list(v)
	root := ""
	for i, s := range l {
		if !strings.HasPrefix(s, "/") {
			root = ""
			break
		}
		if i == 0 {
			root = path.Dir(s)
		}
		for root != "/" && !strings.HasPrefix(s, root+"/") {
			root = path.Dir(root)
		}
	}
	out := make([]string, len(l))
	for i, s := range l {
		out[i] = strings.TrimPrefix(s, "./")
		if root != "" {
			out[i] = strings.TrimPrefix(strings.TrimPrefix(s, root), "/")
		}
	}
	return out, err
}
