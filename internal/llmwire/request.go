package llmwire

import (
	"strings"

	"agentd/message"
	"agentd/model"
)

// Scratch is what an adapter keeps between the requests of a conversation. The zero value
// is ready. Each adapter has a type of its own that embeds it, because what is kept of
// one format is wrong in another: see [ScratchOf].
type Scratch struct {
	History History
	Tools   Tools
	Stream  []byte // what the last reply was read into
}

// ScratchOf gives what an adapter, known by the type S, kept of the conversation of a
// request, or what it will keep. What another adapter kept is forgotten.
func ScratchOf[S any](req *model.Request) *S {
	s := new(S)
	if req.Scratch != nil {
		if kept, ok := req.Scratch.Value.(*S); ok {
			return kept
		}
		req.Scratch.Value = s
	}
	return s
}

// Conversation is the encoded conversation of a request, as [History.Encode] gives it. The
// error is one of class invalid: every API refuses a request that says nothing.
func (s *Scratch) Conversation(req *model.Request, key string, enc Encoder) (history []byte, mark int, failed *model.Error) {
	history, mark = s.History.Encode(key, req.Messages, enc)
	if len(history) == 0 {
		return nil, -1, &model.Error{Class: model.ClassInvalid, Message: "there is no message to send"}
	}
	return history, mark, nil
}

// NewBody is the beginning of a request's body, an open object, with room for the rest of
// it: the system prompt and the pieces that are encoded already.
func NewBody(req *model.Request, pieces ...[]byte) []byte {
	size := 1024 + len(req.Schema)
	for _, p := range pieces {
		size += len(p)
	}
	for _, part := range req.System {
		const frame = 64 // what an API writes around a part
		size += len(part.Text) + len(part.Text)/8 + frame
	}
	return append(make([]byte, 0, size), '{')
}

// JoinSystem is the system prompt as one text, for APIs that take one.
func JoinSystem(parts []model.SystemPart) string {
	texts := make([]string, 0, len(parts))
	for _, part := range parts {
		if !Blank(part.Text) {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// AppendSystemFirst appends the messages of an API in which the system prompt is the first
// one, with the role that it has there. system may be empty; history is not.
func AppendSystemFirst(dst []byte, role, system string, history []byte) []byte {
	if system == "" {
		return append(dst, history[1:]...) // without its comma
	}
	dst = append(append(append(dst, `{"role":"`...), role...), `","content":`...)
	return append(append(AppendString(dst, system), '}'), history...)
}

// AppendSampling appends temperature and top_p, where they are set, under these keys. The
// error is one of class invalid: a value that is no number.
func AppendSampling(dst []byte, req *model.Request, temperature, topP string) ([]byte, *model.Error) {
	for _, f := range [...]struct {
		key   string
		value *float64
	}{{temperature, req.Temperature}, {topP, req.TopP}} {
		if f.value == nil {
			continue
		}
		var ok bool
		if dst, ok = AppendFloat(AppendKey(dst, f.key), *f.value); !ok {
			return nil, &model.Error{Class: model.ClassInvalid, Message: f.key + " is not a number"}
		}
	}
	return dst, nil
}

// AppendTexts appends a list of texts under a key, and nothing where there are none.
func AppendTexts(dst []byte, key string, texts []string) []byte {
	if len(texts) == 0 {
		return dst
	}
	dst = append(AppendKey(dst, key), '[')
	for i, s := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, s)
	}
	return append(dst, ']')
}

// AppendFunctions appends tools as OpenAI's Chat Completions has them, and Ollama after
// it: each inside an object of type function. schema writes the schema of one that has
// one.
func AppendFunctions(dst []byte, specs []model.ToolSpec, schema func(dst, schema []byte) []byte) []byte {
	for i, t := range specs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(append(dst, `{"type":"function","function":{"name":`...), t.Name)
		if t.Description != "" {
			dst = AppendString(AppendKey(dst, "description"), t.Description)
		}
		dst = append(AppendParameters(AppendKey(dst, "parameters"), t.Schema, schema), '}', '}')
	}
	return dst
}

// AppendParameters appends the schema of a tool, as write writes it; that of a tool
// without one is an object without properties.
func AppendParameters(dst, schema []byte, write func(dst, schema []byte) []byte) []byte {
	if len(schema) == 0 {
		return append(dst, `{"type":"object","properties":{}}`...)
	}
	return write(dst, schema)
}

// Results is how many of msgs, at least one, make a unit where the results of one batch of
// tool calls are written together.
func Results(msgs []message.Message) int {
	n := 1
	if msgs[0].Role == message.RoleToolResult {
		for n < len(msgs) && msgs[n].Role == message.RoleToolResult {
			n++
		}
	}
	return n
}
