package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"agentd/internal/engine"
	"agentd/internal/server/wire"
)

// chatRequest is the body of a call. Fields that it does not have are ignored:
// clients send many.
type chatRequest struct {
	Model               string          `json:"model"`
	Messages            []chatMessage   `json:"messages"`
	Stream              bool            `json:"stream"`
	StreamOptions       *streamOptions  `json:"stream_options"`
	Temperature         *float64        `json:"temperature"`
	TopP                *float64        `json:"top_p"`
	Stop                json.RawMessage `json:"stop"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	ResponseFormat      *responseFormat `json:"response_format"`
	Tools               []chatTool      `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	ParallelToolCalls   *bool           `json:"parallel_tool_calls"`
	User                string          `json:"user"`
	SafetyIdentifier    string          `json:"safety_identifier"`
	Metadata            json.RawMessage `json:"metadata"`
	ReasoningEffort     string          `json:"reasoning_effort"`
	// ContextBlocks are agentd's own: what else the model is to know with the input.
	ContextBlocks []struct {
		Kind string `json:"kind"`
		Text string `json:"text"`
	} `json:"context_blocks"`

	// What can not be done is refused rather than ignored.
	N            *int            `json:"n"`
	Logprobs     *bool           `json:"logprobs"`
	TopLogprobs  *int            `json:"top_logprobs"`
	LogitBias    json.RawMessage `json:"logit_bias"`
	Modalities   []string        `json:"modalities"`
	Audio        json.RawMessage `json:"audio"`
	Functions    json.RawMessage `json:"functions"`
	FunctionCall json.RawMessage `json:"function_call"`
	WebSearch    json.RawMessage `json:"web_search_options"`

	// Hints that have no effect are named in a header.
	Seed             *int64   `json:"seed"`
	FrequencyPenalty *float64 `json:"frequency_penalty"`
	PresencePenalty  *float64 `json:"presence_penalty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type responseFormat struct {
	Type       string `json:"type"`
	JSONSchema *struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// call is a request, understood.
type call struct {
	start        engine.StartRequest
	model        string
	stream       bool
	includeUsage bool
	// ignored names the hints that have no effect.
	ignored []string
}

// decodeCall reads a body. The error is an *Error or a *fault.Error.
func decodeCall(raw []byte) (*call, *chatRequest, error) {
	var b chatRequest
	if err := wire.DecodeLoose(raw, &b); err != nil {
		return nil, nil, err
	}
	if err := b.refuse(); err != nil {
		return nil, nil, err
	}
	c := &call{model: b.Model, stream: b.Stream, includeUsage: b.Stream && b.StreamOptions != nil && b.StreamOptions.IncludeUsage, ignored: b.ignored()}
	if err := b.conversation(&c.start); err != nil {
		return nil, nil, err
	}
	if len(c.start.Input) > 0 { // a client that goes on with its tools' results says nothing new
		for _, x := range b.ContextBlocks {
			c.start.ContextBlocks = append(c.start.ContextBlocks, engine.ContextBlock{Kind: x.Kind, Text: x.Text})
		}
	}
	o := &c.start.Overrides
	for _, step := range []func(*engine.Overrides) *Error{b.sampling, b.format, b.tools, b.effort} {
		if err := step(o); err != nil {
			return nil, nil, err
		}
	}
	meta, err := b.metadata()
	if err != nil {
		return nil, nil, err
	}
	c.start.Metadata, c.start.User = meta, cmp.Or(b.SafetyIdentifier, b.User)
	return c, &b, nil
}

// refuse names the first parameter that can not be honoured.
func (b *chatRequest) refuse() error {
	switch {
	case b.N != nil && *b.N != 1:
		return unsupported("n", "n must be 1: a run has one answer.")
	case b.Logprobs != nil && *b.Logprobs:
		return unsupported("logprobs", "logprobs are not available.")
	case b.TopLogprobs != nil && *b.TopLogprobs != 0:
		return unsupported("top_logprobs", "logprobs are not available.")
	case wire.Given(b.LogitBias) && strings.TrimSpace(string(b.LogitBias)) != "{}":
		return unsupported("logit_bias", "logit_bias is not available.")
	case slices.ContainsFunc(b.Modalities, func(m string) bool { return m != "text" }):
		return unsupported("modalities", "only text can be answered.")
	case wire.Given(b.Audio):
		return unsupported("audio", "only text can be answered.")
	case wire.Given(b.Functions):
		return unsupported("functions", "functions are not available: use tools.")
	case wire.Given(b.FunctionCall):
		return unsupported("function_call", "function_call is not available: use tool_choice.")
	case wire.Given(b.WebSearch):
		return unsupported("web_search_options", "web_search_options are not available: give the profile a search tool.")
	}
	return nil
}

func (b *chatRequest) ignored() []string {
	var names []string
	if b.Seed != nil {
		names = append(names, "seed")
	}
	if b.FrequencyPenalty != nil && *b.FrequencyPenalty != 0 {
		names = append(names, "frequency_penalty")
	}
	if b.PresencePenalty != nil && *b.PresencePenalty != 0 {
		names = append(names, "presence_penalty")
	}
	return names
}

func (b *chatRequest) sampling(o *engine.Overrides) *Error {
	if t := b.Temperature; t != nil && (*t < 0 || *t > 2 || math.IsNaN(*t)) {
		return invalid("temperature", "temperature must be from 0 to 2.")
	}
	if p := b.TopP; p != nil && (*p < 0 || *p > 1 || math.IsNaN(*p)) {
		return invalid("top_p", "top_p must be from 0 to 1.")
	}
	o.Temperature, o.TopP = b.Temperature, b.TopP
	for _, m := range []struct {
		name  string
		value *int
	}{{"max_tokens", b.MaxTokens}, {"max_completion_tokens", b.MaxCompletionTokens}} {
		if m.value == nil {
			continue
		}
		if *m.value < 1 {
			return invalid(m.name, "%s must be at least 1.", m.name)
		}
		o.MaxOutputTokens = *m.value
	}
	return b.stops(o)
}

func (b *chatRequest) stops(o *engine.Overrides) *Error {
	if !wire.Given(b.Stop) {
		return nil
	}
	var one string
	if json.Unmarshal(b.Stop, &one) == nil {
		o.Stop = []string{one}
	} else if json.Unmarshal(b.Stop, &o.Stop) != nil {
		return invalid("stop", "stop must be a string or a list of strings.")
	}
	if len(o.Stop) > 16 {
		return invalid("stop", "stop has more than 16 sequences.")
	}
	if slices.Contains(o.Stop, "") {
		return invalid("stop", "a stop sequence is empty.")
	}
	return nil
}

func (b *chatRequest) format(o *engine.Overrides) *Error {
	f := b.ResponseFormat
	if f == nil {
		return nil
	}
	switch f.Type {
	case "text":
	case "json_object":
		o.JSON = true
	case "json_schema":
		if f.JSONSchema == nil || !isObject(f.JSONSchema.Schema) {
			return invalid("response_format.json_schema.schema", "json_schema needs a schema.")
		}
		o.JSON, o.Schema = true, f.JSONSchema.Schema
	default:
		return invalid("response_format.type", "response_format.type must be text, json_object or json_schema.")
	}
	return nil
}

func (b *chatRequest) tools(o *engine.Overrides) *Error {
	seen := map[string]bool{}
	for i, t := range b.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		if t.Type != "function" {
			return unsupported(at+".type", "only tools of type function can be handed back, not %q.", wire.Clip(t.Type, 40))
		}
		f := t.Function
		switch {
		case !isToolName(f.Name):
			return invalid(at+".function.name", "a tool's name has 1 to 64 letters, digits, _ or -.")
		case seen[f.Name]:
			return invalid(at+".function.name", "two tools are called %q.", f.Name)
		case !wire.Given(f.Parameters):
			f.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		case !isObject(f.Parameters):
			return invalid(at+".function.parameters", "parameters must be a JSON Schema object.")
		}
		seen[f.Name] = true
		o.ClientTools = append(o.ClientTools, engine.ClientTool{Name: f.Name, Description: f.Description, Schema: f.Parameters})
	}
	o.SingleToolCall = b.ParallelToolCalls != nil && !*b.ParallelToolCalls
	if !wire.Given(b.ToolChoice) {
		return nil
	}
	var word string
	if json.Unmarshal(b.ToolChoice, &word) == nil {
		switch word {
		case "auto":
		case "none", "required":
			o.ToolChoice = word
		default:
			return invalid("tool_choice", "tool_choice must be auto, none, required or a function.")
		}
		return nil
	}
	var named struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(b.ToolChoice, &named) != nil || named.Type != "function" {
		return unsupported("tool_choice", "tool_choice must be auto, none, required or a function.")
	}
	if !seen[named.Function.Name] {
		return invalid("tool_choice", "tool_choice names %q, which is not in tools.", wire.Clip(named.Function.Name, 64))
	}
	o.ToolChoice = named.Function.Name
	return nil
}

func (b *chatRequest) effort(o *engine.Overrides) *Error {
	switch b.ReasoningEffort {
	case "":
	case "none":
		o.Thinking = "off"
	case "minimal", "low", "medium", "high", "xhigh", "max":
		o.Thinking = b.ReasoningEffort
	default:
		return invalid("reasoning_effort", "reasoning_effort must be none, minimal, low, medium, high, xhigh or max.")
	}
	return nil
}

// metadata joins metadata and user.
func (b *chatRequest) metadata() (json.RawMessage, error) {
	m := map[string]json.RawMessage{}
	if wire.Given(b.Metadata) {
		if err := json.Unmarshal(b.Metadata, &m); err != nil {
			return nil, invalid("metadata", "metadata must be an object.")
		}
	}
	if _, taken := m["user"]; b.User != "" && !taken {
		user, err := json.Marshal(b.User)
		if err != nil {
			return nil, err
		}
		m = maps.Clone(m)
		m["user"] = user
	}
	if len(m) == 0 {
		return nil, nil
	}
	return json.Marshal(m)
}

// isToolName reports whether every provider takes the name.
func isToolName(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-'
	})
}

func isObject(raw json.RawMessage) bool {
	return strings.HasPrefix(strings.TrimSpace(string(raw)), "{")
}
