package message

import (
	"encoding/json"
	"strings"
)

// Role names who speaks. Roles other than the three below are the
// application's own ([Message.Custom] is true for them); they are stored and
// shown, and reach a model only if the application converts them.
type Role string

// The three roles that models know.
const (
	RoleUser       Role = "user"
	RoleAssistant  Role = "assistant"
	RoleToolResult Role = "toolResult"
)

// StopReason says why a model stopped.
type StopReason string

// The stop reasons. Every provider's own words are mapped to one of these.
const (
	StopEnd     StopReason = "stop"    // the answer is complete
	StopLength  StopReason = "length"  // cut by the output limit; tool calls in it are not executed
	StopToolUse StopReason = "toolUse" // the model waits for tool results
	StopError   StopReason = "error"   // the call failed; ErrorMessage says how
	StopAborted StopReason = "aborted" // the caller cancelled
)

// Message is one turn of a conversation. Which fields are set depends on Role.
type Message struct {
	Role    Role    `json:"role"`
	Content []Block `json:"content"`
	// Timestamp is Unix milliseconds; zero means not known.
	Timestamp int64 `json:"timestamp,omitempty"`

	// Assistant messages: who made it, why it stopped, what it used.
	API          string     `json:"api,omitempty"`
	Provider     string     `json:"provider,omitempty"`
	Model        string     `json:"model,omitempty"`
	ResponseID   string     `json:"responseId,omitempty"`
	StopReason   StopReason `json:"stopReason,omitempty"`
	ErrorMessage string     `json:"errorMessage,omitempty"`
	Usage        *Usage     `json:"usage,omitempty"`

	// Tool results: which call they answer. Details is for programs and
	// people, never for the model.
	ToolCallID string          `json:"toolCallId,omitempty"`
	ToolName   string          `json:"toolName,omitempty"`
	Details    json.RawMessage `json:"details,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
}

// Custom reports whether the message has a role of the application's own.
func (m *Message) Custom() bool {
	return m.Role != RoleUser && m.Role != RoleAssistant && m.Role != RoleToolResult
}

// Text joins the text blocks of the message with nothing between them: the words
// alone, without what was put beside them ([Block.Context]).
func (m *Message) Text() string {
	n, last := 0, -1
	for i := range m.Content {
		if m.Content[i].words() {
			n++
			last = i
		}
	}
	if n == 1 {
		return m.Content[last].Text
	}
	var b strings.Builder
	for i := range m.Content {
		if m.Content[i].words() {
			b.WriteString(m.Content[i].Text)
		}
	}
	return b.String()
}

func (b *Block) words() bool { return b.Type == BlockText && b.Context == "" }

// Split gives what was put beside the words of a message, and the words with
// everything else: what people are shown. The message is not changed.
func (m *Message) Split() (context, words []Block) {
	for i := range m.Content {
		if m.Content[i].Context == "" {
			continue
		}
		words = append(words, m.Content[:i]...)
		for _, b := range m.Content[i:] {
			if b.Context != "" {
				context = append(context, b)
			} else {
				words = append(words, b)
			}
		}
		return context, words
	}
	return nil, m.Content
}

// ToolCalls returns the tool calls of the message in source order.
func (m *Message) ToolCalls() []Block {
	var calls []Block
	for _, b := range m.Content {
		if b.Type == BlockToolCall {
			calls = append(calls, b)
		}
	}
	return calls
}

// User returns a user message of one text block.
func User(text string) Message {
	return Message{Role: RoleUser, Content: []Block{Text(text)}}
}

// ToolResult returns the result message of a call.
func ToolResult(callID, name string, isError bool, content ...Block) Message {
	return Message{Role: RoleToolResult, ToolCallID: callID, ToolName: name, IsError: isError, Content: content}
}
