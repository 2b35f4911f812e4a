package memory

import (
	"cmp"
	"math"
	"slices"
	"unicode/utf8"
)

// maxRelevant bounds how many entries are chosen for one message.
const maxRelevant = 12

// rank gives the entries that share words with a text, the best first, at most
// limit. A word counts the more the fewer entries have it; one that more than half
// of many entries have does not count. It is a function of its arguments alone: it
// costs no call of a model, and the same message always gets the same entries.
func rank(all []Entry, text string, limit int) []Entry {
	asked := significant(text)
	having := map[string]int{} // entries by word
	in := make([][]string, len(all))
	for i, e := range all {
		in[i] = significant(e.Section + " " + e.Text)
		for _, w := range in[i] {
			having[w]++
		}
	}
	type scored struct {
		Entry
		score float64
	}
	var found []scored
	for i, e := range all {
		s := scored{Entry: e}
		for _, w := range in[i] {
			if n := having[w]; slices.ContainsFunc(asked, func(a string) bool { return alike(a, w) }) && (len(all) < 4 || 2*n <= len(all)) {
				s.score += math.Log(1 + float64(len(all))/float64(n))
			}
		}
		if s.score > 0 {
			found = append(found, s)
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	out := make([]Entry, 0, min(limit, len(found)))
	for _, s := range found[:min(limit, len(found))] {
		out = append(out, s.Entry)
	}
	return out
}

// significant are the different words of a text that say something: those of three
// letters and more, and those of scripts that write much in few letters.
func significant(text string) []string {
	var out []string
	for _, w := range words(text) {
		if (utf8.RuneCountInString(w) >= 3 || len(w) >= 3) && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// alike is whether two words are the same, or are long and begin the same: deploy,
// deployment and deployed are one to a reader.
func alike(a, b string) bool {
	if a == b {
		return true
	}
	const stem = 5
	if len(a) < stem || len(b) < stem {
		return false
	}
	return a[:min(len(a), len(b), stem+1)] == b[:min(len(a), len(b), stem+1)]
}
