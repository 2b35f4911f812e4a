package model

import (
	"context"
	"encoding/json"

	"agentd/message"
)

// Provider generates replies. Implementations are safe for concurrent use.
type Provider interface {
	// Generate sends req and streams the reply: emit is called for each
	// event in order, from the calling goroutine, and must not block. The
	// returned message is complete, with usage and stop reason. Every error
	// is an *Error; emit may have been called before it is returned. emit
	// may be nil.
	Generate(ctx context.Context, req *Request, emit func(StreamEvent)) (*message.Message, error)
}

// Request is one call. The zero value of every optional field means "the
// provider's default".
type Request struct {
	// Model is the provider's id of the model.
	Model string
	// System is the system prompt in parts, most stable first.
	System []SystemPart
	// Sections says what the system prompt is made of, in order, for whoever wants
	// to know what changed between two requests. Adapters do not read it.
	Sections []Section `json:"-"`
	// Messages is the conversation, oldest first.
	Messages []message.Message
	// Tools are the tools the model may call, sorted by name.
	Tools      []ToolSpec
	ToolChoice ToolChoice
	// SingleToolCall asks for replies with at most one tool call. Models that
	// have no such switch are not asked.
	SingleToolCall bool

	MaxTokens   int
	Temperature *float64
	TopP        *float64
	Stop        []string
	Thinking    ThinkingLevel
	// JSON asks for an answer that is a JSON value; with Schema, one that
	// follows it.
	JSON   bool
	Schema json.RawMessage
	// CacheLast marks the last message as the end of a cacheable prefix.
	CacheLast bool
	// SessionID groups requests that share a prefix, for providers that
	// route by it.
	SessionID string
	// Scratch may be kept by the caller from request to request of one
	// conversation; adapters store what saves encoding the same messages
	// again. Nil is fine.
	Scratch *Scratch
}

// Scratch holds an adapter's private state between requests of one
// conversation. The zero value is ready. It is not safe for concurrent use.
type Scratch struct{ Value any }

// SystemPart is a piece of the system prompt. Cache marks the end of a prefix
// worth caching. Name says which it is, for people; it is not sent.
type SystemPart struct {
	Text  string
	Cache bool
	Name  string
}

// Section names a piece of what is sent ahead of a conversation.
type Section struct {
	Name string `json:"name"`
	// Tier is static, org or turn.
	Tier string `json:"tier"`
	// Hash is of its text: equal texts have equal hashes. Bytes is its length.
	Hash  string `json:"hash"`
	Bytes int    `json:"bytes"`
}

// ToolSpec tells a model about a tool.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

// ToolChoice says whether the model may, must or must not call tools. Any other
// value than those below names the one tool that it must call.
type ToolChoice string

// The tool choices.
const (
	ToolChoiceAuto     ToolChoice = ""
	ToolChoiceNone     ToolChoice = "none"
	ToolChoiceRequired ToolChoice = "required"
)

// ThinkingLevel says how much the model should think before it answers. Adapters
// map a level to the nearest that the model has.
type ThinkingLevel string

// The thinking levels. The empty level leaves it to the provider.
const (
	ThinkingOff      ThinkingLevel = "off"
	ThinkingAdaptive ThinkingLevel = "adaptive"
	ThinkingMinimal  ThinkingLevel = "minimal"
	ThinkingLow      ThinkingLevel = "low"
	ThinkingMedium   ThinkingLevel = "medium"
	ThinkingHigh     ThinkingLevel = "high"
	ThinkingXHigh    ThinkingLevel = "xhigh"
	ThinkingMax      ThinkingLevel = "max" // as much as the model can; slow and dear
)

// CredentialFunc gives the key for a request. It is asked before each request,
// because keys expire. An error that the context did not cause is one of class auth, as
// there is no key to call with; a *fault.Error of kind unavailable is one of class
// connection, because it may go away.
type CredentialFunc func(ctx context.Context) (string, error)
