package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"agentd/tool"
)

const mask = "[redacted]"

// redactor masks fields by name and parts of texts by expression.
type redactor struct {
	fields []*regexp.Regexp
	texts  []*regexp.Regexp
}

func newRedactor(entries []string) (*redactor, error) {
	r := &redactor{}
	for _, e := range entries {
		switch {
		case e == "":
			return nil, fmt.Errorf("an empty entry")
		case len(e) > 2 && e[0] == '/' && e[len(e)-1] == '/':
			re, err := regexp.Compile(e[1 : len(e)-1])
			if err != nil {
				return nil, fmt.Errorf("%s is not a regular expression", e)
			}
			r.texts = append(r.texts, re)
		default:
			r.fields = append(r.fields, glob(strings.ToLower(e)))
		}
	}
	return r, nil
}

func (r *redactor) empty() bool { return r == nil || len(r.fields) == 0 && len(r.texts) == 0 }

// json masks data, which stays JSON. What is not JSON is masked as a whole.
func (r *redactor) json(data json.RawMessage) json.RawMessage {
	if r.empty() || len(data) == 0 {
		return data
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return json.RawMessage(`"` + mask + `"`)
	}
	out, err := tool.EncodeJSON(r.value(v))
	if err != nil {
		return json.RawMessage(`"` + mask + `"`)
	}
	return out
}

func (r *redactor) value(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for name, field := range x {
			if r.hides(name) {
				x[name] = mask
			} else {
				x[name] = r.value(field)
			}
		}
	case []any:
		for i := range x {
			x[i] = r.value(x[i])
		}
	case string:
		return r.text(x)
	}
	return v
}

func (r *redactor) hides(field string) bool {
	field = strings.ToLower(field)
	for _, re := range r.fields {
		if re.MatchString(field) {
			return true
		}
	}
	return false
}

// text masks a text. One that is itself JSON is masked like JSON: results of
// tools are often an object written into a text.
func (r *redactor) text(s string) string {
	if r.empty() {
		return s
	}
	if t := strings.TrimSpace(s); len(r.fields) > 0 && t != "" && (t[0] == '{' || t[0] == '[') && json.Valid([]byte(t)) {
		return string(r.json(json.RawMessage(t)))
	}
	for _, re := range r.texts {
		s = re.ReplaceAllString(s, mask)
	}
	return s
}
