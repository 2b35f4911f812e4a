package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A text that is too long loses its middle. What matters most of a middle is what was
// decided, what went wrong, and where something is; so those lines of it stay, with a
// part of the room.

const (
	// piece is how long a line is at most that stays: of a longer one a part does.
	piece = 240
	// linesPart is which part of what is left of a text the lines of its middle have.
	linesPart = 3
	// linesNote is how many bytes the notes of what is left out have, about.
	linesNote = 160
)

// How much a line matters.
const (
	lineNone = iota
	linePath
	lineError
	lineDecision
)

// condense leaves out the middle of a text, but for lines of it that matter. It always
// gives the same for the same: what is stored as shortened so is read by it again, and
// another rule needs another number ([Shortened.Form]).
func condense(s string, bytes int) string {
	if len(s) <= bytes {
		return s
	}
	ends := bytes - bytes/linesPart
	head, tail := middle(s, ends)
	kept := notable(s[head:tail], bytes/linesPart)
	if kept == "" {
		return middleOut(s, bytes)
	}
	return fmt.Sprintf("%s\n[… %d%s\n[Of them these lines:]\n%s\n[…]\n%s", s[:head], tail-head-len(kept), leftOut, kept, s[tail:])
}

// notable gives lines of a text that matter, those that matter most first chosen, in
// their order, with so many bytes together.
func notable(s string, bytes int) string {
	type line struct {
		text     string
		at, rank int
	}
	var lines []line
	seen := map[string]bool{}
	for _, text := range pieces(s) {
		text = strings.TrimSpace(text)
		if rank := rankOf(text); rank > lineNone && !seen[text] {
			seen[text] = true
			lines = append(lines, line{text, len(lines), rank})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(b.rank, a.rank) })
	kept := lines[:0]
	for _, l := range lines {
		if len(l.text) < bytes {
			bytes -= len(l.text) + 1
			kept = append(kept, l)
		}
	}
	slices.SortFunc(kept, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	for i := range kept {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(kept[i].text)
	}
	return b.String()
}

// pieces divides a text into lines, long ones into sentences, and long sentences where
// there is a space. Where there are no ends of lines, escaped ones are, as JSON has them.
func pieces(s string) (out []string) {
	if !strings.Contains(s, "\n") {
		s = strings.ReplaceAll(s, `\n`, "\n")
	}
	for line := range strings.SplitSeq(s, "\n") {
		for len(line) > piece {
			cut := strings.LastIndexAny(line[:piece], ".;!?")
			for cut > 0 && cut+1 < len(line) && line[cut+1] != ' ' { // "a.go" ends no sentence
				cut = strings.LastIndexAny(line[:cut], ".;!?")
			}
			if cut < piece/4 {
				cut = strings.LastIndexByte(line[:piece], ' ')
			}
			if cut <= 0 {
				cut = piece - 1
				for cut > 0 && !utf8.RuneStart(line[cut+1]) {
					cut--
				}
			}
			out, line = append(out, line[:cut+1]), line[cut+1:]
		}
		out = append(out, line)
	}
	return out
}

// rankOf says how much a line matters, by words that say so in English, and by what looks
// like the path of a file.
func rankOf(line string) int {
	if line == "" {
		return lineNone
	}
	rank := lineNone
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(" \t\"'`()[]{}<>,;=|", r) }) {
		switch word = strings.Trim(word, ".:!?*_-#"); strings.ToLower(word) {
		case "decision", "decisions", "decided", "decide", "agreed", "chose", "chosen", "must", "never", "always", "important", "constraint", "constraints", "requirement":
			return lineDecision
		case "error", "errors", "failed", "failure", "fails", "panic", "fatal", "exception", "warning":
			rank = lineError
			continue
		}
		if strings.HasPrefix(strings.ToLower(word), "decision") { // with a number, as in records of decisions
			return lineDecision
		}
		if rank < linePath && isPath(word) {
			rank = linePath
		}
	}
	return rank
}

// isPath is whether a word looks like the path of a file: names with slashes between
// them, or a name with an ending.
func isPath(word string) bool {
	if i := strings.IndexByte(word, ':'); i > 1 { // the number of a line, and not a drive
		word = word[:i]
	}
	if len(word) < 3 || len(word) > 200 {
		return false
	}
	if i := strings.IndexAny(word, `/\`); i >= 0 && len(word) > i+1 && word[i+1] != '/' {
		return strings.ContainsFunc(word, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' })
	}
	i := strings.LastIndexByte(word, '.')
	if i < 1 || len(word)-i-1 < 1 || len(word)-i-1 > 5 || len(word) < 4 { // "e.g" is none
		return false
	}
	return !strings.ContainsFunc(word[i+1:], func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) &&
		strings.ContainsFunc(word[i+1:], func(r rune) bool { return r >= 'a' && r <= 'z' })
}
