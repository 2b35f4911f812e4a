package model

import (
	"slices"
	"strings"

	"agentd/message"
)

// Maker is who makes a reply: the wire format, the provider and the model. Only its own
// replies can be sent back to a model as they came.
type Maker struct{ API, Provider, Model string }

// Made reports whether the maker made a reply. What a reply does not say counts as the
// maker's: histories that a program put together say nothing.
func (k *Maker) Made(m *message.Message) bool {
	return (m.API == "" || m.API == k.API) && (m.Provider == "" || m.Provider == k.Provider) && (m.Model == "" || m.Model == k.Model)
}

// Handoff makes a reply one that the maker can be sent, so that a conversation can change
// its model at any step. Of another's reply
//
//   - thinking becomes plain text, without tags, as models would imitate them; what was
//     withheld (redacted) or is blank is left out;
//   - signatures of texts and calls are left out: they mean something to who signed
//     them, and others refuse them.
//
// The maker's own replies, and all that are no replies, are given back as they are; m is
// never changed. The same reply always becomes the same, so that prompt caches hold. Ids
// of calls are each adapter's to shorten, as its provider takes them; calls without
// results, results without calls, repeated ids and images are a matter of whole
// conversations (internal/session: Heal and Fit).
func (k *Maker) Handoff(m *message.Message) *message.Message {
	if m.Role != message.RoleAssistant || k.Made(m) || !slices.ContainsFunc(m.Content, foreign) {
		return m
	}
	out := *m
	out.Content = make([]message.Block, 0, len(m.Content))
	for i := range m.Content {
		b := m.Content[i]
		switch b.Type {
		case message.BlockThinking:
			text := strings.TrimSpace(b.Text)
			if b.Redacted || text == "" {
				continue
			}
			b = message.Text(text)
		default:
			b.Signature = ""
		}
		out.Content = append(out.Content, b)
	}
	return &out
}

// foreign reports whether a block of another's reply has to change.
func foreign(b message.Block) bool { return b.Type == message.BlockThinking || b.Signature != "" }
