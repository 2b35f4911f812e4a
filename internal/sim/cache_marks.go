package sim

import (
	"strings"

	"github.com/tidwall/gjson"
)

// mark is a cache_control of Anthropic.
type mark int

const (
	markShort mark = 1 // 5m
	markHour  mark = 2 // 1h
)

// stripMarks cuts every cache_control out of a raw JSON object. Inside a JSON
// string the quotes of its name would be escaped, so a plain search is right.
func stripMarks(raw string) (plain string, m mark, n int) {
	const key = `"cache_control"`
	from := 0
	for {
		i := strings.Index(raw[from:], key)
		if i < 0 {
			return raw, m, n
		}
		i += from
		tail := raw[i+len(key):]
		val := strings.TrimLeft(tail, " \t\r\n")
		if !strings.HasPrefix(val, ":") { // a string, not a key
			from = i + len(key)
			continue
		}
		val = strings.TrimLeft(val[1:], " \t\r\n")
		rest := len(val)
		val = val[:valueEnd(val)]
		if v := gjson.Parse(val); v.IsObject() {
			n++
			m = max(m, markShort)
			if v.Get("ttl").String() == "1h" {
				m = markHour
			}
		}
		pre, post := raw[:i], raw[len(raw)-rest+len(val):]
		if after := strings.TrimLeft(post, " \t\r\n"); strings.HasPrefix(after, ",") {
			post = strings.TrimLeft(after[1:], " \t\r\n")
		} else if before := strings.TrimRight(pre, " \t\r\n"); strings.HasSuffix(before, ",") {
			pre = before[:len(before)-1]
		}
		raw, from = pre+post, len(pre)
	}
}

// valueEnd is the length of the JSON value that s begins with. s is a part of a
// valid document.
func valueEnd(s string) int {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
			if !quoted && depth == 0 {
				return i + 1
			}
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth <= 0 {
				return i + 1 + min(depth, 0)
			}
		case c == ',' && depth == 0:
			return i
		}
	}
	return len(s)
}

// badMark is what is wrong with the cache_control of a block, or "".
func badMark(b gjson.Result) string {
	c := b.Get("cache_control")
	switch typ := b.Get("type").String(); {
	case !c.Exists() || c.Type == gjson.Null:
		return ""
	case typ == "thinking" || typ == "redacted_thinking":
		return typ + ".cache_control: Extra inputs are not permitted"
	case !c.IsObject():
		return "cache_control: Input should be a valid dictionary or object to extract fields from"
	case c.Get("type").String() != "ephemeral":
		return "cache_control.type: Input should be 'ephemeral'"
	}
	if ttl := c.Get("ttl"); ttl.Exists() && ttl.Type != gjson.Null && ttl.String() != "5m" && ttl.String() != "1h" {
		return "cache_control.ephemeral.ttl: Input should be '5m' or '1h'"
	}
	return ""
}
