package cli

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"unicode"
	"unicode/utf8"
)

// safe is between a command and the terminal. What models, tools and servers say
// passes printable where it is written; safe holds that a place which forgot it
// can not drive the terminal either: no control characters get through but line
// ends, tabs and the styles of [printer.style].
type safe struct {
	w  io.Writer
	mu sync.Mutex
	// rest is the beginning of a character whose end was not written yet.
	rest []byte
}

// drives reports whether a character does something to a terminal, or to the order in
// which it shows others, and is no text.
func drives(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\u061c', '\u200e', '\u200f', '\u2028', '\u2029':
		return true // direction marks, separators that some take for line ends
	}
	return unicode.IsControl(r) || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// styles are what [printer.style] writes.
func styles() [][]byte { return [][]byte{[]byte("\x1b[0m"), []byte("\x1b[1m"), []byte("\x1b[2m")} }

// Write implements io.Writer.
func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := append(s.rest, p...)
	s.rest = nil
	out := make([]byte, 0, len(in))
next:
	for i := 0; i < len(in); {
		if !utf8.FullRune(in[i:]) {
			s.rest = bytes.Clone(in[i:])
			break
		}
		if in[i] == 0x1b {
			for _, style := range styles() {
				if bytes.HasPrefix(in[i:], style) {
					out = append(out, style...)
					i += len(style)
					continue next
				}
			}
		}
		r, n := utf8.DecodeRune(in[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			out = utf8.AppendRune(out, utf8.RuneError)
		case !drives(r):
			out = append(out, in[i:i+n]...)
		}
		i += n
	}
	if _, err := s.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// escaped writes what would drive a terminal as JSON escapes, which mean the same.
func escaped(json []byte) []byte {
	if bytes.IndexFunc(json, drives) < 0 {
		return json
	}
	var out []byte
	for _, r := range string(json) {
		if drives(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}
