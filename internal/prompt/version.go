package prompt

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// constraint is one comparison, such as >=4.4.0.
type constraint struct {
	op string
	v  []int
}

// constraints reads comparisons that must all hold, separated by commas. The error is
// for people.
func constraints(s string) (out []constraint, err error) {
	for _, part := range strings.Split(s, ",") {
		part = strings.TrimSpace(part)
		c := constraint{op: "="}
		for _, op := range []string{">=", "<=", "!=", ">", "<", "="} {
			if rest, ok := strings.CutPrefix(part, op); ok {
				c.op, part = op, strings.TrimSpace(rest)
				break
			}
		}
		var ok bool
		if c.v, ok = version(part); !ok {
			return nil, fmt.Errorf("%q is no version: write comparisons such as \">=4.4.0\" or \">=4.0, <5\"", part)
		}
		out = append(out, c)
	}
	return out, nil
}

// version reads the numbers of a version; what follows a - or + is left out of
// comparisons, as is a v ahead of it.
func version(s string) (v []int, ok bool) {
	s = strings.TrimPrefix(strings.TrimSpace(s), "v")
	s, _, _ = strings.Cut(s, "+")
	s, _, _ = strings.Cut(s, "-")
	for _, part := range strings.Split(s, ".") {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil || len(v) == 8 {
			return nil, false
		}
		v = append(v, int(n))
	}
	return v, true
}

// satisfies is whether a version fulfils constraints. One that can not be read
// fulfils none.
func satisfies(have, wanted string) bool {
	v, ok := version(have)
	if !ok {
		return false
	}
	list, err := constraints(wanted)
	if err != nil {
		return false
	}
	for _, c := range list {
		n := 0
		for i := range max(len(v), len(c.v)) { // 4.4 is 4.4.0
			if n = cmp.Compare(at(v, i), at(c.v, i)); n != 0 {
				break
			}
		}
		holds := map[string]bool{">=": n >= 0, "<=": n <= 0, "!=": n != 0, ">": n > 0, "<": n < 0, "=": n == 0}[c.op]
		if !holds {
			return false
		}
	}
	return true
}

func at(v []int, i int) int {
	if i < len(v) {
		return v[i]
	}
	return 0
}
