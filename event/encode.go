package event

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// MarshalJSON writes the wire form.
func (e Event) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil) }

// AppendJSON appends the wire form to b, on one line. It does not allocate for
// deltas if b has room. On error b holds a partial event.
func (e Event) AppendJSON(b []byte) ([]byte, error) {
	b = append(b, `{"v":`...)
	b = strconv.AppendInt(b, Version, 10)
	b = append(b, `,"run_id":`...)
	b = AppendString(b, e.RunID)
	b = append(b, `,"seq":`...)
	b = strconv.AppendInt(b, e.Seq, 10)
	b = append(b, `,"ts":"`...)
	b = time.UnixMilli(e.Time).UTC().AppendFormat(b, TimeLayout)
	b = append(b, `","type":`...)
	b = AppendString(b, string(e.Type))
	b = append(b, `,"step":`...)
	b = strconv.AppendInt(b, int64(e.Step), 10)
	b = append(b, `,"data":`...)
	b, err := AppendData(b, e.Data)
	return append(b, '}'), err
}

// AppendData appends the JSON of a payload on one line; nil becomes {}.
func AppendData(b []byte, data any) ([]byte, error) {
	switch d := data.(type) {
	case nil:
		return append(b, '{', '}'), nil
	case *Delta:
		if d != nil {
			return d.append(b), nil
		}
	case *Text:
		if d != nil {
			return d.append(b), nil
		}
	case json.RawMessage:
		return appendRaw(b, d)
	}
	raw, err := json.Marshal(data)
	return append(b, raw...), err
}

// appendRaw appends JSON without line breaks: they would end a line of an event
// stream.
func appendRaw(b []byte, raw json.RawMessage) ([]byte, error) {
	switch {
	case len(raw) == 0:
		return append(b, '{', '}'), nil
	case bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0:
		return append(b, raw...), nil
	}
	buf := bytes.NewBuffer(b)
	err := json.Compact(buf, raw)
	return buf.Bytes(), err
}

func (d *Delta) append(b []byte) []byte {
	b = append(b, `{"text":`...)
	b = AppendString(b, d.Text)
	if d.Block != 0 {
		b = append(b, `,"block":`...)
		b = strconv.AppendInt(b, int64(d.Block), 10)
	}
	return append(b, '}')
}

func (d *Text) append(b []byte) []byte {
	b = append(b, `{"text":`...)
	b = AppendString(b, d.Text)
	if d.EntryID != "" {
		b = append(b, `,"entry_id":`...)
		b = AppendString(b, d.EntryID)
	}
	return append(b, '}')
}

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
