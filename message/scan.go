package message

import (
	"encoding/json"
	"math/bits"
	"unicode/utf8"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// odd marks the bytes of a word that end a piece of a string or may not be in one:
// quotes, backslashes, control characters, and what is not ASCII. The lowest mark is
// right; those above it may be wrong.
func odd(w uint64) uint64 {
	quote, back := w^(ones*'"'), w^(ones*'\\')
	return ((quote-ones)&^quote | (back-ones)&^back | (w - ones*' ') | w) & highs
}

// run is how many bytes of b from i on are plain: printable ASCII that stands for itself.
func run(b []byte, i int) int {
	for len(b)-i >= 8 {
		w := b[i : i+8 : i+8]
		if m := odd(uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 | uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	for i < len(b) && b[i] >= ' ' && b[i] < utf8.RuneSelf && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// key takes a key without escapes.
func (r *reader) key() ([]byte, bool) {
	if !r.is('"') {
		return nil, false
	}
	from := r.i
	r.i = run(r.b, r.i)
	if r.i == len(r.b) || r.b[r.i] != '"' {
		return nil, false
	}
	r.i++
	return r.b[from : r.i-1], true
}

// bytes takes a string and gives what it says, until the next is taken.
func (r *reader) bytes() ([]byte, bool) {
	if !r.is('"') {
		return nil, false
	}
	b, from := r.b, r.i
	i := run(b, from)
	if i < len(b) && b[i] == '"' {
		r.i = i + 1
		return b[from:i], true
	}
	out, wide := r.d.text[:0], false
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			out = append(out, b[from:i]...)
			r.i = i + 1
			if r.d.text = out; cap(out) > keptText {
				r.d.text = nil
			}
			return out, !wide || utf8.Valid(out)
		case c == '\\':
			out = append(out, b[from:i]...)
			if i+1 == len(b) {
				return nil, false
			}
			if c = escape(b[i+1]); c != 0 {
				out = append(out, c)
				i += 2
			} else {
				n, ok := hex4(b[i+1:])
				if !ok || n >= 0xd800 && n < 0xe000 {
					return nil, false // pairs of surrogates, and halves of them
				}
				out = utf8.AppendRune(out, n)
				i += 6
			}
			from = i
			i = run(b, i)
		case c >= utf8.RuneSelf:
			wide = true
			for i < len(b) && b[i] >= utf8.RuneSelf {
				i++
			}
			i = run(b, i)
		default:
			return nil, false
		}
	}
	return nil, false
}

// escape is what a letter behind a backslash means; 0 for u and for what may not be there.
func escape(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return 0
}

// hex4 reads what is behind the backslash of uXXXX.
func hex4(s []byte) (n rune, ok bool) {
	if len(s) < 5 || s[0] != 'u' {
		return 0, false
	}
	for _, c := range s[1:5] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		n = n<<4 | rune(c)
	}
	return n, true
}

func (r *reader) string(to *string) bool {
	s, ok := r.bytes()
	*to = r.d.string(s)
	return ok
}

// longName bounds what is looked up among names.
const longName = 64

// name takes a string that is likely to be there often.
func (r *reader) name(to *string) bool {
	s, ok := r.bytes()
	if !ok {
		return false
	}
	switch string(s) {
	case "":
	case string(RoleUser):
		*to = string(RoleUser)
	case string(RoleAssistant):
		*to = string(RoleAssistant)
	case string(RoleToolResult):
		*to = string(RoleToolResult)
	case string(BlockText):
		*to = string(BlockText)
	case string(BlockToolCall):
		*to = string(BlockToolCall)
	case string(BlockThinking):
		*to = string(BlockThinking)
	case string(StopEnd):
		*to = string(StopEnd)
	case string(StopToolUse):
		*to = string(StopToolUse)
	default:
		*to = r.d.known(s)
	}
	return true
}

// known gives a string, the same one for the same bytes if they were there lately.
func (d *Decoder) known(s []byte) string {
	for _, n := range d.names {
		if n == string(s) {
			return n
		}
	}
	n := string(s)
	if len(n) <= longName {
		d.names[d.next] = n
		d.next = (d.next + 1) % len(d.names)
	}
	return n
}

// raw takes any value but null, as it is.
func (r *reader) raw(to *json.RawMessage) bool {
	from := r.i
	if r.i < len(r.b) && r.b[r.i] == 'n' || !r.value(0) {
		return false
	}
	*to = append(json.RawMessage(nil), r.b[from:r.i]...)
	return true
}

// deepest bounds how deep values are nested that are not left to encoding/json.
const deepest = 64

// value goes over a value and is whether it is JSON, whatever its strings say.
func (r *reader) value(depth int) bool {
	r.space()
	if r.i == len(r.b) || depth == deepest {
		return false
	}
	switch c := r.b[r.i]; c {
	case '{', '[':
		r.i++
		end := c + 2
		if r.is(end) {
			return true
		}
		for {
			if c == '{' && (!r.text() || !r.is(':')) || !r.value(depth+1) {
				return false
			}
			if r.is(end) {
				return true
			}
			if !r.is(',') {
				return false
			}
		}
	case '"':
		return r.text()
	case 't':
		return r.word("true")
	case 'f':
		return r.word("false")
	case 'n':
		return r.word("null")
	}
	return r.number()
}

// text goes over a string of a value that is taken as it is.
func (r *reader) text() bool {
	if !r.is('"') {
		return false
	}
	for {
		r.i = run(r.b, r.i)
		if r.i == len(r.b) {
			return false
		}
		switch c := r.b[r.i]; {
		case c == '"':
			r.i++
			return true
		case c == '\\':
			if r.i+1 == len(r.b) {
				return false
			}
			if escape(r.b[r.i+1]) == 0 {
				if _, ok := hex4(r.b[r.i+1:]); !ok {
					return false
				}
				r.i += 4
			}
			r.i += 2
		case c >= utf8.RuneSelf:
			r.i++ // encoding/json takes raw values also where they are not UTF-8
		default:
			return false
		}
	}
}

// number goes over a number.
func (r *reader) number() bool {
	if r.i < len(r.b) && r.b[r.i] == '-' {
		r.i++
	}
	from := r.i
	if !r.figures() || r.b[from] == '0' && r.i > from+1 {
		return false
	}
	if r.i < len(r.b) && r.b[r.i] == '.' {
		if r.i++; !r.figures() {
			return false
		}
	}
	if r.i < len(r.b) && r.b[r.i]|0x20 == 'e' {
		if r.i++; r.i < len(r.b) && (r.b[r.i] == '+' || r.b[r.i] == '-') {
			r.i++
		}
		if !r.figures() {
			return false
		}
	}
	return r.ends()
}

func (r *reader) figures() bool {
	from := r.i
	for r.i < len(r.b) && r.b[r.i]-'0' <= 9 {
		r.i++
	}
	return r.i > from
}
