package message

import (
	"strings"
	"unicode/utf8"
)

// Clean gives a message whose texts, names and ids are valid UTF-8; what is not, and
// with it halves of surrogate pairs, becomes U+FFFD. One such byte makes providers
// refuse a request, and a message that is cleaned when it is stored and not before is
// sent in two forms. A message that is clean is given back itself; m is never changed.
// JSON (Arguments, Details) is left as it is.
func Clean(m *Message) *Message {
	dirty := false
	m.texts(func(s *string) { dirty = dirty || !utf8.ValidString(*s) })
	if !dirty {
		return m
	}
	c := *m
	c.Content = append([]Block(nil), m.Content...)
	c.texts(func(s *string) {
		if !utf8.ValidString(*s) {
			*s = strings.ToValidUTF8(*s, "\uFFFD")
		}
	})
	return &c
}

// texts calls f with every text of the message.
func (m *Message) texts(f func(*string)) {
	for _, s := range []*string{&m.API, &m.Provider, &m.Model, &m.ResponseID, &m.ErrorMessage, &m.ToolCallID, &m.ToolName} {
		f(s)
	}
	for i := range m.Content {
		b := &m.Content[i]
		for _, s := range []*string{&b.Text, &b.Context, &b.Signature, &b.Data, &b.MimeType, &b.ID, &b.Name, &b.Via} {
			f(s)
		}
	}
}
