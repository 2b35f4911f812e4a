package tool

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// maxExponent bounds what a number may grow to when it is written out.
const maxExponent = 400

// PlainNumbers gives arguments with every number written out: without an exponent,
// needless zeros or a point that nothing follows. 1e3, 1000.0 and 1000 are the same
// number, and a pattern over the arguments' JSON that is meant for one of them must
// see it in all. Numbers with exponents beyond 400 stay as they are. Arguments that
// are not JSON, or have nothing to write out, are given back as they came; keys are
// sorted otherwise.
func PlainNumbers(args json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return args
	}
	changed := false
	v = writeOut(v, &changed)
	if !changed {
		return args
	}
	out, err := EncodeJSON(v)
	if err != nil {
		return args
	}
	return out
}

func writeOut(v any, changed *bool) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = writeOut(v[k], changed)
		}
	case []any:
		for i := range v {
			v[i] = writeOut(v[i], changed)
		}
	case json.Number:
		plain := plainNumber(string(v))
		*changed = *changed || plain != string(v)
		return json.Number(plain)
	}
	return v
}

// plainNumber writes a JSON number out.
func plainNumber(s string) string {
	mantissa, exp := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		var err error
		if exp, err = strconv.Atoi(s[i+1:]); err != nil || exp > maxExponent || exp < -maxExponent {
			return s
		}
		mantissa = s[:i]
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits, point := whole+fraction, len(whole)+exp
	if point < 0 {
		digits, point = strings.Repeat("0", -point)+digits, 0
	}
	if point > len(digits) {
		digits += strings.Repeat("0", point-len(digits))
	}
	whole, fraction = strings.TrimLeft(digits[:point], "0"), strings.TrimRight(digits[point:], "0")
	out := whole
	if out == "" {
		out = "0"
	}
	if fraction != "" {
		out += "." + fraction
	}
	if negative && out != "0" {
		out = "-" + out
	}
	return out
}
