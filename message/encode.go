package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// AppendJSON appends the message as JSON to b. It reads back as what
// [json.Marshal] writes does, and takes a fraction of the time: every message of
// every run is written once. The error is that of a RawMessage that is not JSON;
// b then holds a partial message.
func (m *Message) AppendJSON(b []byte) ([]byte, error) {
	o := AppendObject(b)
	o.Key("role")
	o.B = AppendString(o.B, string(m.Role))
	o.Key("content")
	if m.Content == nil {
		o.B = append(o.B, "null"...)
	} else {
		o.B = append(o.B, '[')
		for i := range m.Content {
			if i > 0 {
				o.B = append(o.B, ',')
			}
			var err error
			if o.B, err = m.Content[i].appendJSON(o.B); err != nil {
				return o.B, fmt.Errorf("content[%d]: %w", i, err)
			}
		}
		o.B = append(o.B, ']')
	}
	o.Int("timestamp", m.Timestamp)
	o.String("api", m.API)
	o.String("provider", m.Provider)
	o.String("model", m.Model)
	o.String("responseId", m.ResponseID)
	o.String("stopReason", string(m.StopReason))
	o.String("errorMessage", m.ErrorMessage)
	if m.Usage != nil {
		o.Key("usage")
		o.B = m.Usage.AppendJSON(o.B)
	}
	o.String("toolCallId", m.ToolCallID)
	o.String("toolName", m.ToolName)
	o.Raw("details", m.Details)
	o.Bool("isError", m.IsError)
	return o.End()
}

func (c *Block) appendJSON(b []byte) ([]byte, error) {
	o := AppendObject(b)
	o.Key("type")
	o.B = AppendString(o.B, string(c.Type))
	o.String("text", c.Text)
	o.String("context", c.Context)
	o.String("signature", c.Signature)
	o.Bool("redacted", c.Redacted)
	o.String("data", c.Data)
	o.String("mimeType", c.MimeType)
	o.String("id", c.ID)
	o.String("name", c.Name)
	o.Raw("arguments", c.Arguments)
	o.String("via", c.Via)
	return o.End()
}

// AppendJSON appends the usage as JSON to b, as [json.Marshal] writes it.
func (u *Usage) AppendJSON(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"input":`...), u.Input, 10)
	b = strconv.AppendInt(append(b, `,"output":`...), u.Output, 10)
	for _, f := range []struct {
		key string
		n   int64
	}{{`,"cacheRead":`, u.CacheRead}, {`,"cacheWrite":`, u.CacheWrite}, {`,"reasoning":`, u.Reasoning}} {
		if f.n != 0 {
			b = strconv.AppendInt(append(b, f.key...), f.n, 10)
		}
	}
	b = strconv.AppendInt(append(b, `,"totalTokens":`...), u.TotalTokens, 10)
	if u.Estimated {
		b = append(b, `,"estimated":true`...)
	}
	if u.Tier != "" {
		b = AppendString(append(b, `,"tier":`...), u.Tier)
	}
	b = u.Cost.Input.append(append(b, `,"cost":{"input":`...))
	b = u.Cost.Output.append(append(b, `,"output":`...))
	b = u.Cost.CacheRead.append(append(b, `,"cacheRead":`...))
	b = u.Cost.CacheWrite.append(append(b, `,"cacheWrite":`...))
	b = u.Cost.Total.append(append(b, `,"total":`...))
	if u.Cost.Estimated {
		b = append(b, `,"estimated":true`...)
	}
	return append(b, '}', '}')
}

// Object writes a JSON object member by member. Members that are zero are left
// out, as by omitempty. Keys must need no escape.
type Object struct {
	// B is what was written so far. The value of a Key is appended to it.
	B     []byte
	begun bool
	err   error
}

// AppendObject begins an object at the end of b.
func AppendObject(b []byte) Object { return Object{B: append(b, '{')} }

// Key writes a key and its colon.
func (o *Object) Key(key string) {
	if o.begun {
		o.B = append(o.B, ',')
	}
	o.begun = true
	o.B = append(append(append(o.B, '"'), key...), '"', ':')
}

// String writes a member that is a string.
func (o *Object) String(key, s string) {
	if s != "" {
		o.Key(key)
		o.B = AppendString(o.B, s)
	}
}

// Int writes a member that is a whole number.
func (o *Object) Int(key string, n int64) {
	if n != 0 {
		o.Key(key)
		o.B = strconv.AppendInt(o.B, n, 10)
	}
}

// Float writes a member that is a number. JSON has none that is infinite.
func (o *Object) Float(key string, f float64) {
	if f != 0 {
		raw, err := json.Marshal(f)
		if err != nil {
			o.fail(key, err)
		}
		o.Key(key)
		o.B = append(o.B, raw...)
	}
}

// Bool writes a member that is true.
func (o *Object) Bool(key string, v bool) {
	if v {
		o.Key(key)
		o.B = append(o.B, "true"...)
	}
}

// Money writes an amount, unless it is 0.
func (o *Object) Money(key string, m Money) {
	if m != 0 {
		o.Key(key)
		o.B = m.append(o.B)
	}
}

// Raw writes a member that is JSON already, as it is.
func (o *Object) Raw(key string, raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	o.Key(key)
	if !json.Valid(raw) {
		o.fail(key, errNotJSON)
		return
	}
	o.B = append(o.B, raw...)
}

// Line writes a member that is JSON already, without line breaks.
func (o *Object) Line(key string, raw json.RawMessage) {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		o.Raw(key, raw)
		return
	}
	o.Key(key)
	buf := bytes.NewBuffer(o.B)
	if err := json.Compact(buf, raw); err != nil {
		o.fail(key, errNotJSON)
	}
	o.B = buf.Bytes()
}

var errNotJSON = errors.New("it is not JSON")

func (o *Object) fail(key string, err error) {
	if o.err == nil {
		o.err = fmt.Errorf("%s: %w", key, err)
	}
}

// End ends the object and gives everything with the first error.
func (o *Object) End() ([]byte, error) { return append(o.B, '}'), o.err }

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD; U+2028 and U+2029 are escaped, because they end lines in JavaScript.
func AppendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && size == 1:
				b = append(b, s[start:i]...)
				b = append(b, `\ufffd`...)
				start = i + size
			case r == '\u2028' || r == '\u2029':
				b = append(b, s[start:i]...)
				b = append(b, `\u202`...)
				b = append(b, hex[r&0xf])
				start = i + size
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}
