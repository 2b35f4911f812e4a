package profile

import "strings"

// nearest gives the word most like got, or "" if none is like it.
func nearest(got string, words []string) string {
	best, bestD := "", max(1, len(got)/3)
	for _, w := range words {
		if d := distance(strings.ToLower(got), w, bestD); d < bestD || d == bestD && best == "" {
			best, bestD = w, d
		}
	}
	if best != "" {
		return best
	}
	for _, w := range words { // "steps" for "max_steps"
		if len(got) >= 4 && (strings.HasSuffix(w, "_"+got) || strings.HasPrefix(w, got+"_")) {
			return w
		}
	}
	return ""
}

// distance is the number of letters to insert, delete, replace or swap, or
// limit+1 if it is more than limit.
func distance(a, b string, limit int) int {
	if len(a) > 64 || len(b) > 64 || len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
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
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit+1)
}

// didYouMean is a hint, or "".
func didYouMean(got string, words []string) string {
	if w := nearest(got, words); w != "" {
		return "did you mean " + w + "?"
	}
	return ""
}
