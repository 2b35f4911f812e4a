package message

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
)

// BlockType names the kind of a content block.
type BlockType string

// The kinds of content.
const (
	BlockText     BlockType = "text"
	BlockThinking BlockType = "thinking"
	BlockImage    BlockType = "image"
	BlockToolCall BlockType = "toolCall"
)

// Block is one piece of content. Type decides which fields mean something:
//
//	text      Text, Signature?, Context?
//	thinking  Text, Signature?, Redacted?
//	image     Data (base64), MimeType
//	toolCall  ID, Name, Arguments, Signature?, Via?
type Block struct {
	Type BlockType `json:"type"`
	// Text is the text, or the thinking, of the block.
	Text string `json:"text,omitempty"`
	// Context says that a text is no words of whoever speaks but was put beside them,
	// and of what kind it is (page, date, …): models read it, people are not shown
	// it. Empty for words.
	Context string `json:"context,omitempty"`
	// Signature is opaque provider state that must be sent back unchanged.
	Signature string `json:"signature,omitempty"`
	// Redacted marks thinking whose text the provider withheld; Signature
	// then holds the provider's encrypted payload.
	Redacted bool `json:"redacted,omitempty"`
	// Data is the base64 content of an image.
	Data     string `json:"data,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
	// ID is the tool call's id as the provider gave it.
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	// Arguments is the JSON object of the call as the model wrote it
	// (repaired if it had to be); never nil for a tool call.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Via names the tool through which the model made the call, because Name was not
	// among the tools that it could call directly; empty for a direct call. Requests
	// have the call as the model made it.
	Via string `json:"via,omitempty"`
}

// Text returns a text block.
func Text(s string) Block { return Block{Type: BlockText, Text: s} }

// Image returns an image block of base64 data.
func Image(base64Data, mimeType string) Block {
	return Block{Type: BlockImage, Data: base64Data, MimeType: mimeType}
}

// Call returns a tool call block. Empty arguments become {}.
func Call(id, name string, arguments json.RawMessage) Block {
	if len(bytes.TrimSpace(arguments)) == 0 {
		arguments = json.RawMessage("{}")
	}
	return Block{Type: BlockToolCall, ID: id, Name: name, Arguments: arguments}
}

// UnmarshalContent reads content as clients write it: a string, one block, or
// a list of blocks. The error names the block that is wrong.
func UnmarshalContent(raw json.RawMessage) ([]Block, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil, fmt.Errorf("content is missing: give a string or a list of blocks")
	}
	switch raw[0] {
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
		return []Block{Text(s)}, nil
	case '{':
		raw = append(append([]byte{'['}, raw...), ']')
	case '[':
	default:
		return nil, fmt.Errorf("content must be a string or a list of blocks, not %s", raw[:1])
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	blocks := make([]Block, len(list))
	for i, b := range list {
		err := json.Unmarshal(b, &blocks[i])
		if t := (*json.UnmarshalTypeError)(nil); errors.As(err, &t) {
			err = fmt.Errorf("%s can not be a JSON %s", cmp.Or(t.Field, "a block"), t.Value)
		}
		if err == nil {
			err = blocks[i].Validate()
		}
		if err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
	}
	return blocks, nil
}

// Validate reports what makes the block unusable, or nil.
func (b *Block) Validate() error {
	if b.Context != "" && b.Type != BlockText {
		return fmt.Errorf("only a text can be context, not %q", b.Type)
	}
	switch b.Type {
	case BlockText, BlockThinking:
	case BlockImage:
		if b.Data == "" || b.MimeType == "" {
			return fmt.Errorf("an image needs data (base64) and mimeType")
		}
	case BlockToolCall:
		if b.Name == "" {
			return fmt.Errorf("a tool call needs a name")
		}
		if len(b.Arguments) > 0 && !json.Valid(b.Arguments) {
			return fmt.Errorf("the arguments of tool call %q are not JSON", b.Name)
		}
	default:
		return fmt.Errorf("unknown block type %q: use text, image, thinking or toolCall", b.Type)
	}
	return nil
}
