package openai

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// minRestated is how much of a text, in characters other than space, must come again
// ahead of something new for that to be left out. What is shorter may be meant.
const minRestated = 20

// restated looks at the text of a step beside that of the step before. Models like to
// say again what they said ahead of their tool calls; in one answer it would stand
// twice. skip is how much of the text says nothing new. whole is whether the text is
// complete; if not, decided is false as long as more of it could change the outcome.
// Space counts for nothing.
func restated(last, text string, whole bool) (skip int, decided bool) {
	i, j, n := 0, 0, 0
	if skipSpace(last, 0) == len(last) {
		return 0, true
	}
	for {
		i = skipSpace(last, i)
		j2 := skipSpace(text, j)
		switch {
		case i == len(last) && j2 == len(text):
			return len(text), whole
		case j2 == len(text):
			return 0, whole
		case i == len(last):
			// All of it came again, and there is more: a new sentence or line, or
			// it was another sentence all along.
			if gap := text[j:j2]; n >= minRestated && gap != "" && (strings.Contains(gap, "\n") || strings.ContainsRune(".!?:…。！？", lastRune(last))) {
				return j2, true
			}
			return 0, true
		}
		a, na := utf8.DecodeRuneInString(last[i:])
		b, nb := utf8.DecodeRuneInString(text[j2:])
		if a != b || na != nb {
			return 0, true
		}
		i, j, n = i+na, j2+nb, n+1
	}
}

func skipSpace(s string, from int) int {
	for from < len(s) {
		r, n := utf8.DecodeRuneInString(s[from:])
		if !unicode.IsSpace(r) {
			break
		}
		from += n
	}
	return from
}

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(strings.TrimRightFunc(s, unicode.IsSpace))
	return r
}
