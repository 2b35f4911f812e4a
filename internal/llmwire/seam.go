package llmwire

import (
	"bytes"
	"unicode/utf8"
)

// seam puts characters together that servers cut in two, because they stream tokens and not
// characters: bytes of UTF-8, or the escapes of a surrogate pair. What a delta ends in the
// middle of waits for the next one; half of a character at the end of a block is left out.
func (p *part) seam(raw []byte) []byte {
	in := raw[1 : len(raw)-1]
	if len(p.half) == 0 && unfinished(in) == 0 {
		return raw
	}
	whole := append(append([]byte{'"'}, p.half...), in...)
	at := len(whole) - unfinished(whole[1:])
	p.half = bytes.Clone(whole[at:])
	return append(whole[:at], '"')
}

// unfinished is how many bytes at the end of the inside of a JSON string are the beginning
// of a character.
func unfinished(in []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(in); n++ {
		c := in[len(in)-n]
		if c < utf8.RuneSelf {
			break
		}
		if utf8.RuneStart(c) {
			if utf8.FullRune(in[len(in)-n:]) {
				break
			}
			return n
		}
	}
	const pair = len(`\ud800`)
	at := len(in) - pair
	if at < 0 || in[at] != '\\' || in[at+1] != 'u' {
		return 0
	}
	if r := hex4(in[at+2:]); r < 0xd800 || r > 0xdbff {
		return 0
	}
	escaped := false // an escaped backslash, and the text of an escape behind it
	for i := at - 1; i >= 0 && in[i] == '\\'; i-- {
		escaped = !escaped
	}
	if escaped {
		return 0
	}
	return pair
}
