package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Options say what is taken out besides secrets. The zero value takes out
// secrets alone.
type Options struct {
	// Fields are names of JSON fields and log attributes whose values are taken
	// out whole, compared without case, "-" and "_". They count as endings too:
	// "iban" also hides customer_iban.
	Fields []string
	// Personal lists kinds of personal data: see [Kinds].
	Personal []string
	// Patterns are regular expressions (RE2); what they match is taken out.
	Patterns []string
}

// Redactor takes things out. It is safe for concurrent use.
type Redactor struct {
	fields   []string
	exact    map[string]bool
	patterns []pattern
}

// New makes a redactor; o may be nil. The error says which entry is wrong.
func New(o *Options) (*Redactor, error) {
	r := &Redactor{exact: map[string]bool{"token": true, "key": true, "pass": true, "pwd": true, "auth": true}, patterns: secrets()}
	r.fields = secretFields()
	if o == nil {
		return r, nil
	}
	for _, f := range o.Fields {
		if f = fieldName(f); f == "" {
			return nil, fmt.Errorf("an empty field name")
		}
		r.fields = append(r.fields, f)
	}
	for _, kind := range o.Personal {
		p, ok := personal(kind)
		if !ok {
			return nil, fmt.Errorf("%q is not a kind of personal data: use %s", kind, strings.Join(Kinds(), ", "))
		}
		r.patterns = append(r.patterns, p)
	}
	for _, text := range o.Patterns {
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a regular expression: %w", text, err)
		}
		if re.MatchString("") || re.MatchString(Mask) {
			return nil, fmt.Errorf("%q matches everything", text)
		}
		r.patterns = append(r.patterns, pattern{name: text, re: re})
	}
	return r, nil
}

// Field reports whether the value of a field of that name is taken out whole.
func (r *Redactor) Field(name string) bool {
	n := fieldName(name)
	if r.exact[n] {
		return true
	}
	for _, f := range r.fields {
		if strings.HasSuffix(n, f) {
			return true
		}
	}
	return false
}

// Text takes secrets out of a text. A text that is JSON is treated like JSON.
func (r *Redactor) Text(s string) string {
	if t := strings.TrimSpace(s); len(t) > 1 && (t[0] == '{' || t[0] == '[') && json.Valid([]byte(t)) {
		return string(r.JSON(json.RawMessage(t)))
	}
	return r.plain(s)
}

func (r *Redactor) plain(s string) string {
	var low string
	for i := range r.patterns {
		p := &r.patterns[i]
		if p.fold && low == "" {
			low = lower(s)
		}
		if !p.possible(s, low) {
			continue
		}
		switch {
		case p.check != nil:
			s = p.re.ReplaceAllStringFunc(s, func(m string) string {
				if p.check(m) {
					return Mask
				}
				return m
			})
		case p.with != "":
			s = p.re.ReplaceAllString(s, p.with)
		default:
			s = p.re.ReplaceAllLiteralString(s, Mask)
		}
	}
	return s
}

// lower changes ASCII alone: the length stays, and so does what the text is made of.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func (p *pattern) possible(s, low string) bool {
	if !strings.Contains(s, p.needs) {
		return false
	}
	if p.fold {
		s = low
	}
	for _, h := range p.hints {
		if strings.Contains(s, h) {
			return true
		}
	}
	return len(p.hints) == 0
}

// JSON takes secrets out of fields and texts of JSON, which stays JSON. What is
// not JSON is taken out whole.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	hidden := json.RawMessage(`"` + Mask + `"`)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return hidden
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(r.value(v)) != nil {
		return hidden
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func (r *Redactor) value(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for name, field := range x {
			if r.Field(name) && !empty(field) {
				x[name] = Mask
			} else {
				x[name] = r.value(field)
			}
		}
	case []any:
		for i := range x {
			x[i] = r.value(x[i])
		}
	case string:
		return r.Text(x)
	case json.Number:
		if s := x.String(); len(s) > 12 && r.plain(s) != s { // a card number without quotes
			return Mask
		}
	}
	return v
}

// empty values tell that nothing was given, which is no secret.
func empty(v any) bool { return v == nil || v == "" || v == false || v == true }
