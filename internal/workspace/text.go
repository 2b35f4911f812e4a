package workspace

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// binary reports whether the beginning of a file says that it is no text: a
// zero byte in the first 8,000, which is git's rule.
func binary(head []byte) bool {
	return bytes.IndexByte(head[:min(len(head), 8000)], 0) >= 0
}

// clean makes a line fit for a model and a log: valid UTF-8 without control
// characters (terminal sequences among them), at most limit bytes.
func clean(line []byte, limit int) string {
	line = bytes.TrimSuffix(line, []byte{'\r'})
	cut := false
	if len(line) > limit {
		line, cut = line[:limit], true
		for len(line) > 0 && !utf8.RuneStart(line[len(line)-1]) {
			line = line[:len(line)-1]
		}
		if n := len(line); n > 0 && line[n-1] >= utf8.RuneSelf {
			line = line[:n-1]
		}
	}
	s := strings.ToValidUTF8(string(line), "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, s)
	if cut {
		s += " [line cut]"
	}
	return s
}
