package session

import (
	"slices"

	"agentd/message"
)

// DropReasoning leaves the reasoning of answered turns out of a conversation: that
// before the last message of a person which came at least after milliseconds later
// than the answer ahead of it. 0 leaves nothing out. note says which messages only
// look like a person's, and begin no turn; nil: none.
//
// Times of messages do not change, so what is left out once is left out for ever, and
// the beginning of later requests stays as it is. A turn that ended without an
// answer, in the middle of its tool calls, is not cut from the next one: providers may
// want the reasoning of calls that were made. The messages are not changed; where nothing
// is left out they are the ones that are given.
func DropReasoning(msgs []message.Message, after int64, note func(*message.Message) bool) []message.Message {
	if after <= 0 {
		return msgs
	}
	cut, answer := 0, -1
	for i := range msgs {
		m := &msgs[i]
		switch {
		case m.Custom(): // the application's, which may come at any place
		case m.Role != message.RoleUser:
			if answer = -1; m.Role == message.RoleAssistant && !slices.ContainsFunc(m.Content, isCall) {
				answer = i
			}
		case answer < 0 || note != nil && note(m):
		case m.Timestamp > 0 && msgs[answer].Timestamp > 0 && m.Timestamp-msgs[answer].Timestamp >= after:
			cut = i
		}
	}
	if !slices.ContainsFunc(msgs[:cut], func(m message.Message) bool { return slices.ContainsFunc(m.Content, isThinking) }) {
		return msgs
	}
	out := slices.Clone(msgs)
	for i := range out[:cut] {
		if m := &out[i]; m.Role == message.RoleAssistant && slices.ContainsFunc(m.Content, isThinking) {
			m.Content = slices.DeleteFunc(slices.Clone(m.Content), isThinking)
		}
	}
	return out
}

func isThinking(b message.Block) bool { return b.Type == message.BlockThinking }

func isCall(b message.Block) bool { return b.Type == message.BlockToolCall }
