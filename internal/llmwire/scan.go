package llmwire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Valid reports whether raw is JSON. On the chunks of a stream it is several
// times faster than json.Valid, which looks at every byte through a table of
// states.
func Valid(raw []byte) bool { return gjson.ValidBytes(raw) }

// Cursor walks the members of a JSON object or the elements of an array. The
// JSON must be valid: check it once with [Valid], then walk it as often as
// needed. The slices it gives alias the JSON.
type Cursor struct {
	b []byte
	i int
}

// Object returns a cursor over the members of raw; over none if raw is not an
// object.
func Object(raw []byte) Cursor { return open(raw, '{') }

// Array returns a cursor over the elements of raw; over none if raw is not an
// array.
func Array(raw []byte) Cursor { return open(raw, '[') }

func open(raw []byte, brace byte) Cursor {
	c := Cursor{b: raw}
	c.space()
	if c.i < len(raw) && raw[c.i] == brace {
		c.i++
		return c
	}
	return Cursor{}
}

func (c *Cursor) space() {
	for c.i < len(c.b) && (c.b[c.i] == ' ' || c.b[c.i] == '\n' || c.b[c.i] == '\t' || c.b[c.i] == '\r') {
		c.i++
	}
}

// Member returns the next member of an object: the key between its quotes, and
// the raw value.
func (c *Cursor) Member() (key, value []byte, ok bool) {
	raw, ok := c.Element()
	if !ok || len(raw) < 2 {
		return nil, nil, false
	}
	c.space()
	c.i++ // the colon
	value, ok = c.value()
	return raw[1 : len(raw)-1], value, ok
}

// Element returns the next element of an array.
func (c *Cursor) Element() (value []byte, ok bool) {
	c.space()
	if c.i < len(c.b) && c.b[c.i] == ',' {
		c.i++
	}
	return c.value()
}

func (c *Cursor) value() ([]byte, bool) {
	c.space()
	from := c.i
	if from >= len(c.b) {
		return nil, false
	}
	switch c.b[from] {
	case '}', ']':
		return nil, false
	case '"':
		c.str()
	case '{', '[':
		for depth := 0; c.i < len(c.b); {
			switch c.b[c.i] {
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			case '"':
				c.str()
				continue
			}
			c.i++
			if depth == 0 {
				break
			}
		}
	default:
		for c.i < len(c.b) && bytes.IndexByte([]byte(",}] \n\t\r"), c.b[c.i]) < 0 {
			c.i++
		}
	}
	return c.b[from:c.i], true
}

// str moves past a string.
func (c *Cursor) str() {
	c.i++
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case '"':
			c.i++
			return
		case '\\':
			c.i++
		}
		c.i++
	}
	c.i = len(c.b)
}

// Get returns the value of a member of an object, nil if there is none.
func Get(object []byte, key string) []byte {
	for c := Object(object); ; {
		k, v, ok := c.Member()
		if !ok {
			return nil
		}
		if string(k) == key {
			return v
		}
	}
}

// IsString reports whether raw is a JSON string.
func IsString(raw []byte) bool { return len(raw) >= 2 && raw[0] == '"' }

// String returns the text of a JSON string, "" if raw is none.
func String(raw []byte) string {
	if !IsString(raw) {
		return ""
	}
	in := raw[1 : len(raw)-1]
	if plain(in) {
		return string(in)
	}
	var b strings.Builder
	unescape(&b, in)
	return b.String()
}

// Int returns the whole number raw holds, 0 if it holds none or a negative one.
func Int(raw []byte) int64 {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(string(raw), 64)
		if ferr != nil || !(f >= 0 && f < 1<<53) {
			return 0
		}
		n = int64(f)
	}
	return max(n, 0)
}

// Null reports whether raw is absent or null.
func Null(raw []byte) bool { return len(raw) == 0 || raw[0] == 'n' }

// Raw returns a copy of raw.
func Raw(raw []byte) json.RawMessage { return bytes.Clone(raw) }

// plain reports whether the inside of a JSON string stands for itself.
func plain(in []byte) bool {
	return bytes.IndexByte(in, '\\') < 0 && utf8.Valid(in)
}

// unescape writes the text that the inside of a JSON string stands for, without
// invalid UTF-8 and lone surrogates.
func unescape(b *strings.Builder, in []byte) {
	for i := 0; i < len(in); {
		c := in[i]
		if c != '\\' {
			from := i
			for i < len(in) && in[i] != '\\' && in[i] < utf8.RuneSelf {
				i++
			}
			b.Write(in[from:i])
			if i < len(in) && in[i] >= utf8.RuneSelf {
				r, size := utf8.DecodeRune(in[i:])
				if r != utf8.RuneError || size > 1 {
					b.Write(in[i : i+size])
				}
				i += size
			}
			continue
		}
		if i+1 >= len(in) {
			return
		}
		i++
		switch in[i] {
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'u':
			r := hex4(in[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				full := rune(utf8.RuneError)
				if i+2 < len(in) && in[i+1] == '\\' && in[i+2] == 'u' {
					full = utf16.DecodeRune(r, hex4(in[i+3:]))
				}
				if full == utf8.RuneError { // half of a pair
					i++
					continue
				}
				r = full
				i += 6
			}
			b.WriteRune(r)
		default:
			b.WriteByte(in[i])
		}
		i++
	}
}

// hex4 reads four hexadecimal digits; in valid JSON they are there.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return utf8.RuneError
	}
	var r rune
	for _, c := range b[:4] {
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
	return r
}
