package memory

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"agentd/fault"
	"agentd/internal/redact"
)

// Filter makes what is to be remembered fit to be kept, or says why it is not.
type Filter struct {
	secrets, personal, masked *redact.Redactor
	kinds                     []string
}

// NewFilter makes a filter. Secrets are refused always, and so are the kinds of
// personal data in never that [redact.Kinds] has; what patterns (RE2) match is
// masked. The error says which pattern is wrong.
func NewFilter(never, patterns []string) (*Filter, error) {
	f := &Filter{}
	for _, k := range never {
		if slices.Contains(redact.Kinds(), k) {
			f.kinds = append(f.kinds, k)
		}
	}
	var err error
	if f.secrets, err = redact.New(nil); err != nil {
		return nil, err
	}
	if f.personal, err = redact.New(&redact.Options{Personal: f.kinds}); err != nil {
		return nil, err
	}
	if f.masked, err = redact.New(&redact.Options{Patterns: patterns}); err != nil {
		return nil, err
	}
	return f, nil
}

// Clean gives one line of text without what could be taken for a part of the
// document, or a *fault.Error of kind Invalid.
func (f *Filter) Clean(text string, limit int) (string, error) {
	bad := func(what, hint string) (string, error) {
		return "", &fault.Error{Op: "memory", Kind: fault.Invalid, Field: "text", Err: errors.New(what), Hint: hint}
	}
	if len(text) > 16*limit {
		return bad(fmt.Sprintf("it has %d bytes, and the limit is %d", len(text), limit), "Say it in one short sentence.")
	}
	line := oneLine(text)
	switch {
	case !strings.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }):
		return bad("there is nothing to remember", "Give one sentence.")
	case f.secrets.Text(line) != line:
		return bad("it looks like it holds a password, a key or another secret, and secrets are not remembered", "Remember where the secret is kept instead.")
	case f.personal.Text(line) != line:
		return bad("it holds personal data that is never stored ("+strings.Join(f.kinds, ", ")+")", "Leave it out. The profile's pii_policy.never_store says what.")
	}
	line = oneLine(f.masked.Text(line))
	if len(line) > limit {
		return bad(fmt.Sprintf("it has %d bytes, and the limit is %d", len(line), limit), "Say it in one short sentence (memory.max_entry_bytes in agentd.yaml).")
	}
	return line, nil
}

// oneLine makes a text one line that is an item's text and nothing else: no line
// breaks, no characters that are not seen, no comment, no mark of a list or heading.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), unicode.Is(unicode.Cs, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	for {
		short := strings.ReplaceAll(strings.ReplaceAll(text, "<!--", ""), "-->", "")
		if short == text {
			break
		}
		text = short
	}
	return strings.TrimSpace(strings.TrimLeft(strings.Join(strings.Fields(text), " "), "-*+#>= "))
}

// section is a section's name as it may stand in a heading.
func section(name string) (string, error) {
	if name = oneLine(name); name == "" {
		return Context, nil
	}
	for _, s := range Sections() {
		if strings.EqualFold(s, name) {
			return s, nil
		}
	}
	if len(name) > 80 {
		return "", &fault.Error{Op: "memory", Kind: fault.Invalid, Field: "section", Err: errors.New("it is longer than 80 bytes"), Hint: "Use " + strings.Join(Sections(), ", ") + "."}
	}
	return name, nil
}
