package jsonrepair

import (
	"bytes"
	"encoding/json"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting that is repaired; deeper values are dropped.
const maxDepth = 500

// Object returns raw as a valid JSON object, and whether it was one already
// (then the result is raw without the space around it).
func Object(raw []byte) (object json.RawMessage, intact bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return json.RawMessage("{}"), false
	}
	if raw[0] == '{' && json.Valid(raw) && clean(raw) {
		return raw, true
	}
	if raw[0] == '"' {
		// Some models encode the object a second time, as a string.
		var inner string
		if json.Unmarshal(raw, &inner) == nil && len(inner) < len(raw) {
			if in := bytes.TrimSpace([]byte(inner)); len(in) > 0 && in[0] == '{' {
				object, _ = Object(in)
				return object, false
			}
		}
	}
	if raw[0] != '{' {
		return json.RawMessage("{}"), false
	}
	p := parser{in: raw, out: make([]byte, 0, len(raw)+8)}
	if !p.value(0) || !json.Valid(p.out) {
		return json.RawMessage("{}"), false
	}
	return p.out, false
}

// clean reports whether valid JSON has neither invalid UTF-8 nor lone
// surrogates, which encoding/json accepts and providers refuse.
func clean(raw []byte) bool {
	if !utf8.Valid(raw) {
		return false
	}
	for i := bytes.IndexByte(raw, '\\'); i >= 0; {
		if raw[i+1] == 'u' {
			size := escape(raw[i:])
			if size == 0 || !pairs(raw[i:]) {
				return false
			}
			i += size
		} else {
			i += 2
		}
		next := bytes.IndexByte(raw[i:], '\\')
		if next < 0 {
			break
		}
		i += next
	}
	return true
}

// parser copies one value from in to out, repairing it on the way.
type parser struct {
	in  []byte
	at  int
	out []byte
}

func (p *parser) space() {
	for p.at < len(p.in) {
		switch p.in[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// peek returns the next byte that is not space, or 0 at the end.
func (p *parser) peek() byte {
	p.space()
	if p.at == len(p.in) {
		return 0
	}
	return p.in[p.at]
}

// value copies a value. It reports false, with out as it was, when there is
// none that could be saved.
func (p *parser) value(depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		p.str()
		return true
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case c == 't' || c == 'f' || c == 'n':
		return p.literal()
	}
	return false
}

func (p *parser) object(depth int) bool {
	p.at++
	p.out = append(p.out, '{')
	for first := true; ; {
		switch p.peek() {
		case ',':
			p.at++
			continue
		case '}':
			p.at++
			p.out = append(p.out, '}')
			return true
		case '"':
		default: // the end, or something that is not a key: keep what came whole
			p.out = append(p.out, '}')
			return true
		}
		mark := len(p.out)
		if !first {
			p.out = append(p.out, ',')
		}
		p.str()
		if p.peek() != ':' {
			p.out = append(p.out[:mark], '}')
			return true
		}
		p.at++
		p.out = append(p.out, ':')
		if !p.value(depth + 1) {
			p.out = append(p.out[:mark], '}')
			p.at = len(p.in)
			return true
		}
		first = false
	}
}

func (p *parser) array(depth int) bool {
	p.at++
	p.out = append(p.out, '[')
	for first := true; ; {
		switch p.peek() {
		case ',':
			p.at++
			continue
		case ']':
			p.at++
			p.out = append(p.out, ']')
			return true
		case 0:
			p.out = append(p.out, ']')
			return true
		}
		mark := len(p.out)
		if !first {
			p.out = append(p.out, ',')
		}
		if !p.value(depth + 1) {
			p.out = append(p.out[:mark], ']')
			p.at = len(p.in)
			return true
		}
		first = false
	}
}

// str copies a string and closes it if the input ends in it.
func (p *parser) str() {
	p.at++
	p.out = append(p.out, '"')
	for p.at < len(p.in) {
		c := p.in[p.at]
		switch {
		case c == '"':
			p.at++
			p.out = append(p.out, '"')
			return
		case c == '\\':
			p.escape()
		case c < 0x20:
			p.control(c)
			p.at++
		case c < utf8.RuneSelf:
			p.out = append(p.out, c)
			p.at++
		default:
			r, size := utf8.DecodeRune(p.in[p.at:])
			if r != utf8.RuneError || size > 1 {
				p.out = append(p.out, p.in[p.at:p.at+size]...)
			}
			p.at += size
		}
	}
	p.out = append(p.out, '"')
}

// escape copies an escape. One that JSON does not know was meant as a
// backslash (a Windows path, a regular expression), and so it is kept as one.
func (p *parser) escape() {
	rest := p.in[p.at:]
	if len(rest) < 2 { // cut off
		p.at++
		return
	}
	switch rest[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.out = append(p.out, rest[:2]...)
		p.at += 2
	case 'u':
		size := escape(rest)
		switch {
		case size > 0 && pairs(rest):
			p.out = append(p.out, rest[:size]...)
			p.at += size
		case size > 0: // half of a pair
			p.at += size
		case len(rest) < 6 && hexOnly(rest[2:]): // cut off
			p.at = len(p.in)
		default:
			p.out = append(p.out, '\\', '\\')
			p.at++
		}
	default:
		p.out = append(p.out, '\\', '\\')
		p.at++
	}
}

func (p *parser) control(c byte) {
	switch c {
	case '\n':
		p.out = append(p.out, '\\', 'n')
	case '\r':
		p.out = append(p.out, '\\', 'r')
	case '\t':
		p.out = append(p.out, '\\', 't')
	default:
		const hex = "0123456789abcdef"
		p.out = append(p.out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	}
}

// number copies the longest part that is a number.
func (p *parser) number() bool {
	end := p.at
	for end < len(p.in) && bytes.IndexByte([]byte("+-.eE0123456789"), p.in[end]) >= 0 {
		end++
	}
	whole := end
	for ; end > p.at; end-- {
		if json.Valid(p.in[p.at:end]) {
			p.out = append(p.out, p.in[p.at:end]...)
			p.at = whole
			return true
		}
	}
	return false
}

// literal copies true, false or null, and completes one that was cut off.
func (p *parser) literal() bool {
	rest := p.in[p.at:]
	for _, word := range []string{"true", "false", "null"} {
		n := min(len(rest), len(word))
		if string(rest[:n]) == word[:n] {
			p.out = append(p.out, word...)
			p.at += n
			return true
		}
	}
	return false
}

// escape returns the length of the \u escape at the start of b, 12 for a pair
// of surrogates, 0 if there is none.
func escape(b []byte) int {
	r, ok := hex4(b)
	if !ok {
		return 0
	}
	if utf16.IsSurrogate(r) {
		if low, ok := hex4(b[6:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			return 12
		}
	}
	return 6
}

// pairs reports whether the \u escape at the start of b is no lone surrogate.
func pairs(b []byte) bool {
	r, ok := hex4(b)
	return ok && (!utf16.IsSurrogate(r) || escape(b) == 12)
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' || !hexOnly(b[2:6]) {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= 'a':
			c -= 'a' - 10
		case c >= 'A':
			c -= 'A' - 10
		default:
			c -= '0'
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

func hexOnly(b []byte) bool {
	for _, c := range b {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			return false
		}
	}
	return true
}
