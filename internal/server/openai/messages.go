package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"agentd/internal/engine"
	"agentd/internal/server/wire"
	"agentd/message"
)

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []chatToolCall  `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

type chatToolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type part struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Refusal  string `json:"refusal"`
	ImageURL *struct {
		URL string `json:"url"`
	} `json:"image_url"`
}

// conversation turns the messages into instructions, history and input.
func (b *chatRequest) conversation(req *engine.StartRequest) error {
	if len(b.Messages) == 0 {
		return invalid("messages", "messages is empty: give at least one.")
	}
	var system []string
	calls := map[string]string{} // id to name
	for i := range b.Messages {
		m := &b.Messages[i]
		at := fmt.Sprintf("messages[%d]", i)
		blocks, err := m.blocks(at)
		if err != nil {
			return err
		}
		switch m.Role {
		case "system", "developer":
			for _, block := range blocks {
				if block.Type != message.BlockText {
					return invalid(at+".content", "instructions are text.")
				}
				if block.Text != "" {
					system = append(system, block.Text)
				}
			}
		case "user":
			if len(blocks) == 0 {
				return invalid(at+".content", "the message is empty.")
			}
			req.History = append(req.History, message.Message{Role: message.RoleUser, Content: blocks})
		case "assistant":
			said := message.Message{Role: message.RoleAssistant, Content: blocks, StopReason: message.StopEnd}
			for j, c := range m.ToolCalls {
				if c.ID == "" || c.Function.Name == "" {
					return invalid(fmt.Sprintf("%s.tool_calls[%d]", at, j), "a tool call needs an id and a function name.")
				}
				calls[c.ID] = c.Function.Name
				said.Content = append(said.Content, message.Call(c.ID, c.Function.Name, arguments(c.Function.Arguments)))
				said.StopReason = message.StopToolUse
			}
			if len(said.Content) > 0 {
				req.History = append(req.History, said)
			}
		case "tool":
			name, ok := calls[m.ToolCallID]
			if !ok {
				return invalid(at+".tool_call_id", "no earlier tool call has the id %q.", wire.Clip(m.ToolCallID, 80))
			}
			if len(blocks) == 0 {
				blocks = []message.Block{message.Text("")}
			}
			req.History = append(req.History, message.ToolResult(m.ToolCallID, name, false, blocks...))
		case "function":
			return unsupported(at+".role", "messages of role function are not available: use tools.")
		default:
			return invalid(at+".role", "the role %q is not system, developer, user, assistant or tool.", wire.Clip(m.Role, 40))
		}
	}
	n := len(req.History)
	if n == 0 {
		return invalid("messages", "there are only instructions: give a user message.")
	}
	if last := &req.History[n-1]; last.Role == message.RoleUser {
		req.Input, req.History = last.Content, req.History[:n-1]
	}
	if len(req.History) == 0 {
		req.History = nil
	}
	req.Overrides.System = strings.Join(system, "\n\n")
	return nil
}

// blocks reads the content: a string, parts, or null.
func (m *chatMessage) blocks(at string) ([]message.Block, error) {
	if !wire.Given(m.Content) {
		if m.Role == "assistant" {
			return nil, nil
		}
		return nil, invalid(at+".content", "the content is missing.")
	}
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		if text == "" {
			return nil, nil
		}
		return []message.Block{message.Text(text)}, nil
	}
	var parts []part
	if json.Unmarshal(m.Content, &parts) != nil {
		return nil, invalid(at+".content", "the content must be a string or a list of parts.")
	}
	var blocks []message.Block
	for i, p := range parts {
		where := fmt.Sprintf("%s.content[%d]", at, i)
		switch p.Type {
		case "text":
			if p.Text != "" {
				blocks = append(blocks, message.Text(p.Text))
			}
		case "refusal":
			blocks = append(blocks, message.Text(p.Refusal))
		case "image_url":
			if m.Role != "user" && m.Role != "tool" {
				return nil, invalid(where, "only user messages have images.")
			}
			block, err := image(p, where)
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, block)
		default:
			return nil, unsupported(where+".type", "parts of type %q are not available: use text and image_url.", wire.Clip(p.Type, 40))
		}
	}
	return blocks, nil
}

// image reads a data URL. Others are not fetched: the server must not be made
// to call addresses for its clients.
func image(p part, where string) (message.Block, error) {
	if p.ImageURL == nil {
		return message.Block{}, invalid(where+".image_url", "image_url is missing.")
	}
	head, data, ok := strings.Cut(p.ImageURL.URL, ",")
	mime, isData := strings.CutPrefix(head, "data:")
	if !ok || !isData {
		return message.Block{}, unsupported(where+".image_url.url", "images are not fetched: send a data: URL.")
	}
	mime, isBase64 := strings.CutSuffix(mime, ";base64")
	if !isBase64 || !strings.HasPrefix(mime, "image/") {
		return message.Block{}, invalid(where+".image_url.url", "the data: URL must be data:image/...;base64,...")
	}
	block := message.Image(data, mime)
	if err := block.CheckImage(); err != nil {
		return message.Block{}, invalid(where+".image_url.url", "the image can not be used: its %v.", describe(err))
	}
	return block, nil
}

// describe names what of an image is wrong as its data: URL has it.
func describe(err error) string {
	var in *message.ImageError
	if errors.As(err, &in) && in.Field == "mimeType" {
		return "type " + in.Error()
	}
	return "data " + err.Error()
}

// arguments keeps what a model wrote, also if it is not the JSON object that it
// should be: it is history, and refusing it would end the conversation for good.
func arguments(s string) json.RawMessage {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	if raw := json.RawMessage(s); json.Valid(raw) && isObject(raw) {
		return raw
	}
	wrapped, err := json.Marshal(map[string]string{"arguments": s})
	if err != nil {
		return nil
	}
	return wrapped
}
