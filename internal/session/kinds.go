package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"agentd/internal/store"
	"agentd/message"
)

// Kinds of entries besides messages, compactions and rollbacks. What their bodies
// are is said by the type that each names.
const (
	// KindBranch continues a path from an earlier entry: [Branch].
	KindBranch = "branch"
	// KindBranchSummary is a branch that tells the model what became of the path
	// that was left: [BranchSummary].
	KindBranchSummary = "branch_summary"
	// KindLabel names an entry for people: [Label].
	KindLabel = "label"
	// KindFork is the end of what a session has from another one: [Fork].
	KindFork = "fork"
	// KindModelChange, KindModeChange and KindThinkingChange note a setting that
	// counts from there on: [ModelChange], [ModeChange], [ThinkingChange].
	KindModelChange    = "model_change"
	KindModeChange     = "mode_change"
	KindThinkingChange = "thinking_change"
	// KindCustom is an application's own: [Custom].
	KindCustom = "custom"
)

// Branch is the body of an entry of [KindBranch]. Its parent is where it goes on.
type Branch struct {
	// From is where the session stood, "" at its beginning.
	From string `json:"from,omitempty"`
	// Label is what people call the branch.
	Label string `json:"label,omitempty"`
	// Asked is what made the branch, nil where nobody gave a key. It is of this session
	// alone: copies and files are without it, see [Unasked].
	Asked *Asked `json:"asked,omitempty"`
}

// Asked tells a repetition of a request: by the hash of its key, and of what it asked for.
type Asked struct {
	Key     string `json:"key"`
	Request string `json:"request"`
}

// AskedOf gives what made a branch, or nil.
func AskedOf(e *store.Entry) *Asked {
	if !asked(e.Kind, e.Body) {
		return nil
	}
	var b Branch
	if json.Unmarshal(e.Body, &b) != nil {
		return nil
	}
	return b.Asked
}

func asked(kind string, body json.RawMessage) bool {
	return (kind == KindBranch || kind == KindBranchSummary) && bytes.Contains(body, []byte(`"asked"`))
}

// Unasked gives the body of an entry without what made a branch; any other body as it is.
func Unasked(kind string, body json.RawMessage) json.RawMessage {
	var with map[string]json.RawMessage
	if !asked(kind, body) || json.Unmarshal(body, &with) != nil || with["asked"] == nil {
		return body
	}
	delete(with, "asked")
	b, err := json.Marshal(with)
	if err == nil {
		b, err = CheckData(kind, b) // in the order that it is written in
	}
	if err != nil {
		return body
	}
	return b
}

// BranchSummary is the body of an entry of [KindBranchSummary].
type BranchSummary struct {
	Branch
	// Summary is what the model is told of the path that was left.
	Summary string `json:"summary"`
	// ReadFiles and ModifiedFiles are the files of all calls on that path, also through
	// summaries on it. A file is in one of the lists.
	ReadFiles     []string `json:"read_files,omitempty"`
	ModifiedFiles []string `json:"modified_files,omitempty"`
	// Model wrote the summary; empty: somebody else did.
	Model string         `json:"model,omitempty"`
	Usage *message.Usage `json:"usage,omitempty"`
}

// branchDetails marks the message of a branch summary.
const branchDetails = `{"branch_summary":true}`

// Retold is whether a message is a summary that a model wrote: of what came before it,
// or of a way that was left. What it says may be from outputs of tools.
func Retold(m *message.Message) bool {
	return Summary(m) || m.Role == message.RoleUser && string(m.Details) == branchDetails
}

// Message is what models read of the summary, made at a time in Unix milliseconds.
func (s *BranchSummary) Message(at int64) message.Message {
	var b strings.Builder
	b.WriteString("The conversation went another way from here before, and came back. This is a summary of that way:\n\n<summary>\n")
	b.WriteString(strings.ReplaceAll(s.Summary, "</summary>", "</ summary>"))
	b.WriteString("\n</summary>")
	writeFiles(&b, s.ReadFiles, s.ModifiedFiles)
	m := message.Message{Role: message.RoleUser, Content: []message.Block{message.Text(b.String())}, Timestamp: at}
	m.Details = json.RawMessage(branchDetails)
	return m
}

// Label is the body of an entry of [KindLabel]. The last label of a target counts;
// an empty one takes it away.
type Label struct {
	Target string `json:"target"`
	Label  string `json:"label"`
}

// Fork is the body of an entry of [KindFork]: where what is before it is from.
type Fork struct {
	Session string `json:"session"`
	Entry   string `json:"entry,omitempty"`
}

// ModelChange is the body of an entry of [KindModelChange].
type ModelChange struct {
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model"`
}

// Name is "provider/model", or the model alone.
func (m *ModelChange) Name() string {
	if m.Provider == "" {
		return m.Model
	}
	return m.Provider + "/" + m.Model
}

// ModeChange is the body of an entry of [KindModeChange].
type ModeChange struct {
	Mode string `json:"mode"`
}

// ThinkingChange is the body of an entry of [KindThinkingChange].
type ThinkingChange struct {
	Level string `json:"level"`
}

// Custom is the body of an entry of [KindCustom]. Models are shown what is in
// Content, as a user's message, and nothing of an entry without it.
type Custom struct {
	// Type is the application's name for what this is.
	Type string `json:"type"`
	// Data is for the application, never for a model.
	Data json.RawMessage `json:"data,omitempty"`
	// Content is what models are shown: text and images.
	Content []message.Block `json:"content,omitempty"`
	// Display says whether people are to see it; nil is the application's choice.
	Display *bool `json:"display,omitempty"`
}

// MaxLabel bounds labels, and the names of models, modes and types, in bytes.
const MaxLabel = 256

// silent are the known kinds of which models are never shown anything.
func silent(kind string) bool {
	switch kind {
	case KindCompaction, KindRollback, KindBranch, KindLabel, KindFork, KindModelChange, KindModeChange, KindThinkingChange:
		return true
	}
	return false
}

// shown is what a model is shown of a custom entry or a branch summary; false: nothing.
func shown(e *store.Entry) (m message.Message, ok bool, err error) {
	switch e.Kind {
	case KindCustom:
		var c Custom
		if len(e.Body) == 0 {
			return m, false, nil
		}
		if err := json.Unmarshal(e.Body, &c); err != nil {
			return m, false, err
		}
		return message.Message{Role: message.RoleUser, Content: c.Content, Timestamp: e.Created, Details: json.RawMessage(`{"entry":"custom"}`)}, len(c.Content) > 0, nil
	case KindBranchSummary:
		var s BranchSummary
		if err := json.Unmarshal(e.Body, &s); err != nil {
			return m, false, err
		}
		return s.Message(e.Created), s.Summary != "", nil
	}
	return m, false, nil
}

// BodyError says which member of an entry's body is wrong.
type BodyError struct {
	// Field is its path, such as "data.target"; "" is the body itself.
	Field string
	Err   error
}

// Error is the message, with the field.
func (e *BodyError) Error() string {
	if e.Field == "" {
		return e.Err.Error()
	}
	return e.Field + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *BodyError) Unwrap() error { return e.Err }

func wrong(field, format string, args ...any) error {
	return &BodyError{Field: field, Err: fmt.Errorf(format, args...)}
}

// CheckMessage says what would make a stored message unusable. The error is a
// [*BodyError].
func CheckMessage(m *message.Message) error {
	if m.Role == "" {
		return wrong("message.role", "is missing")
	}
	if len(m.Role) > MaxLabel {
		return wrong("message.role", "has more than %d bytes", MaxLabel)
	}
	for i := range m.Content {
		if err := m.Content[i].Validate(); err != nil {
			return wrong(fmt.Sprintf("message.content[%d]", i), "%w", err)
		}
		if err := m.Content[i].CheckImage(); err != nil {
			return wrong(fmt.Sprintf("message.content[%d]", i), "%w", err)
		}
	}
	if m.Role == message.RoleToolResult && m.ToolCallID == "" {
		return wrong("message.toolCallId", "is missing: which call does the result answer?")
	}
	if m.Role != message.RoleAssistant && len(m.ToolCalls()) > 0 {
		return wrong("message.content", "only the assistant calls tools")
	}
	if len(m.Details) > 0 && !json.Valid(m.Details) {
		return wrong("message.details", "is not JSON")
	}
	return nil
}

// CheckData says what is wrong with the body of an entry that is no message, and
// gives it as it is stored. Kinds that this agentd does not know, and compactions,
// have to be objects. The error is a [*BodyError].
func CheckData(kind string, data json.RawMessage) (json.RawMessage, error) {
	name := func(field, s string, need bool) error {
		switch {
		case need && strings.TrimSpace(s) == "":
			return wrong("data."+field, "is missing")
		case len(s) > MaxLabel:
			return wrong("data."+field, "has more than %d bytes", MaxLabel)
		case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }):
			return wrong("data."+field, "has control characters")
		}
		return nil
	}
	data = bytes.TrimSpace(data)
	if bytes.Equal(data, []byte("null")) {
		data = nil
	}
	var body any
	var check func() error
	switch kind {
	case KindBranch:
		b := &Branch{}
		body, check = b, func() error { return name("label", b.Label, false) }
	case KindBranchSummary:
		b := &BranchSummary{}
		body, check = b, func() error {
			if strings.TrimSpace(b.Summary) == "" {
				return wrong("data.summary", "is missing")
			}
			return name("label", b.Label, false)
		}
	case KindLabel:
		b := &Label{}
		body, check = b, func() error {
			if b.Target == "" {
				return wrong("data.target", "is missing: which entry is it for?")
			}
			return name("label", b.Label, false)
		}
	case KindFork:
		b := &Fork{}
		body, check = b, func() error { return errors.Join(name("session", b.Session, true), name("entry", b.Entry, false)) }
	case KindModelChange:
		b := &ModelChange{}
		body, check = b, func() error {
			if err := name("model", b.Model, true); err != nil {
				return err
			}
			return name("provider", b.Provider, false)
		}
	case KindModeChange:
		b := &ModeChange{}
		body, check = b, func() error { return name("mode", b.Mode, true) }
	case KindThinkingChange:
		b := &ThinkingChange{}
		body, check = b, func() error { return name("level", b.Level, true) }
	case KindCustom:
		b := &Custom{}
		body, check = b, func() error {
			if err := name("type", b.Type, true); err != nil {
				return err
			}
			for i := range b.Content {
				if t := b.Content[i].Type; t != message.BlockText && t != message.BlockImage {
					return wrong(fmt.Sprintf("data.content[%d]", i), "is %q: only text and images can be shown", t)
				}
				if err := errors.Join(b.Content[i].Validate(), b.Content[i].CheckImage()); err != nil {
					return wrong(fmt.Sprintf("data.content[%d]", i), "%w", err)
				}
			}
			return nil
		}
	default:
		if len(data) == 0 {
			return nil, nil
		}
		if data[0] != '{' || !json.Valid(data) {
			return nil, wrong("data", "must be a JSON object")
		}
		return compact(data), nil
	}
	if len(data) == 0 {
		data = []byte("{}")
	}
	if kind == KindCustom {
		data = blocks(data)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(body); err != nil {
		return nil, unread(err)
	}
	if dec.More() {
		return nil, wrong("data", "there is more than one value")
	}
	if err := check(); err != nil {
		return nil, err
	}
	out, err := json.Marshal(body)
	if err != nil {
		return nil, wrong("data", "%w", err)
	}
	return out, nil
}

// blocks makes a content that is a string the one block that it stands for. Any other body
// stays as it is, for whoever reads it to say what is wrong.
func blocks(data json.RawMessage) json.RawMessage {
	var with map[string]json.RawMessage
	var text string
	if json.Unmarshal(data, &with) != nil || len(with["content"]) == 0 || with["content"][0] != '"' || json.Unmarshal(with["content"], &text) != nil {
		return data
	}
	delete(with, "content")
	if text != "" {
		b, err := json.Marshal([]message.Block{message.Text(text)})
		if err != nil {
			return data
		}
		with["content"] = b
	}
	out, err := json.Marshal(with)
	if err != nil {
		return data
	}
	return out
}

// unread says why a body can not be decoded.
func unread(err error) error {
	if t := (*json.UnmarshalTypeError)(nil); errors.As(err, &t) {
		return wrong(strings.TrimSuffix("data."+t.Field, "."), "can not be a JSON %s", clip(t.Value))
	}
	return wrong("data", "%s", strings.TrimPrefix(err.Error(), "json: "))
}

// legible says in terms of the JSON, and not of Go's types, why it can not be decoded.
func legible(err error) error {
	if t := (*json.UnmarshalTypeError)(nil); errors.As(err, &t) {
		return fmt.Errorf("%s can not be a JSON %s", cmp.Or(t.Field, "it"), clip(t.Value))
	}
	return err
}

func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return slices.Clone(raw)
	}
	return b.Bytes()
}
