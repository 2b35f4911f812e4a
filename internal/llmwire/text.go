package llmwire

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentd/internal/jsonrepair"
	"agentd/message"
)

// AppendString appends s as a JSON string. Invalid UTF-8, and with it lone
// surrogates, is left out: providers refuse a request for one such byte.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(dst, s[from:i]...)
				from = i + 1
			}
			i += size
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}

// AppendObject appends a JSON object, repaired if it is none.
func AppendObject(dst []byte, object json.RawMessage) []byte {
	o, _ := jsonrepair.Object(object)
	return append(dst, o...)
}

// maxToolName is how long names of tools may be.
const maxToolName = 64

// ToolName is the name of a call as every provider takes it: 1 to 64 letters, digits,
// _ and -. Models make names up, and one that providers refuse would stay in the
// history of its session.
func ToolName(name string) string {
	ok := name != "" && len(name) <= maxToolName
	for i := 0; ok && i < len(name); i++ {
		ok = inToolName(name[i])
	}
	if ok {
		return name
	}
	out := []byte(name[:min(len(name), maxToolName)])
	for i := range out {
		if !inToolName(out[i]) {
			out[i] = '_'
		}
	}
	if len(out) == 0 {
		return "unknown"
	}
	return string(out)
}

func inToolName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// AppendKey appends a comma, unless dst ends where an object begins, and the
// key with its colon. key must need no escape.
func AppendKey(dst []byte, key string) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' {
		dst = append(dst, ',')
	}
	return append(append(append(dst, '"'), key...), '"', ':')
}

// AppendFloat appends f as a JSON number, and reports false if it is none.
func AppendFloat(dst []byte, f float64) ([]byte, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, false
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64), true
}

// Blank reports whether s has nothing a model could read: no text at all, or
// only white space and bytes that are left out when s is sent.
func Blank(s string) bool {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
		case r == ' ', r == '\n', r == '\t', r == '\r', r == '\f', r == '\v', r == 0xa0, r == 0x85:
		default:
			return false
		}
		i += size
	}
	return true
}

// ResultText is the text of a tool's result, for formats in which it has to have one.
func ResultText(r *message.Message, images bool) string {
	switch text := r.Text(); {
	case !Blank(text):
		return text
	case images:
		return "(see the attached image)"
	}
	return "(no tool output)"
}

// ReplyText is the text of a reply, for formats in which a reply has one. The blocks of
// one that was handed over from another model stand apart: thoughts are among them.
func ReplyText(m *message.Message, handed bool) string {
	if !handed {
		return m.Text()
	}
	var texts []string
	for i := range m.Content {
		if c := &m.Content[i]; c.Type == message.BlockText && !Blank(c.Text) {
			texts = append(texts, c.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}
