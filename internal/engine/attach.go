package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"agentd/fault"
	"agentd/internal/prompt"
	"agentd/message"
)

// What a request gives beside its input (the page that is open, what the person
// attached, free-form context) is shown to the model ahead of the input, in the
// same message: it changes with every request, and what was sent before stays
// as it was sent. Each part is one block of context; see package prompt for its form.

// attached checks and completes what goes with the input: page and references
// become what is shown, with the same bytes for the same content.
func (e *Engine) attached(req *StartRequest) error {
	if len(req.Input) == 0 {
		for _, given := range []struct {
			name string
			is   bool
		}{{"page", len(req.Page) > 0}, {"references", len(req.References) > 0}, {"context", len(req.Context) > 0}, {"context_blocks", len(req.ContextBlocks) > 0}} {
			if given.is {
				return &fault.Error{Kind: fault.Invalid, Field: given.name, Err: errors.New("it goes with input, and there is none")}
			}
		}
	}
	err := e.contextBlocks(req.ContextBlocks)
	if err != nil {
		return err
	}
	if len(req.Page) > 0 {
		if req.Page, err = canonical("page", req.Page, false); err != nil {
			return err
		}
		if len(req.Page) > e.cfg.MaxPageBytes {
			return tooLarge("page", len(req.Page), e.cfg.MaxPageBytes, "limits.max_page_bytes")
		}
	}
	size := 0
	refs := make([]json.RawMessage, 0, len(req.References)) // the caller keeps its own
	for i, raw := range req.References {
		ref, err := canonical(fmt.Sprintf("references[%d]", i), raw, true)
		if err != nil {
			return err
		}
		if size += len(ref) + 1; size > e.cfg.MaxReferencesBytes {
			return tooLarge("references", size, e.cfg.MaxReferencesBytes, "limits.max_references_bytes")
		}
		refs = append(refs, ref)
	}
	if req.References = refs; len(refs) == 0 {
		req.References = nil // an empty list is none
	}
	return nil
}

func tooLarge(field string, size, limit int, key string) error {
	return &fault.Error{Kind: fault.TooLarge, Field: field, Err: fmt.Errorf("%d bytes or more, and the limit is %d", size, limit),
		Hint: "Name things instead of copying them, or raise " + key + " in agentd.yaml."}
}

// canonical writes a text or an object in one way: keys sorted, no space, no
// character that could be part of a tag. An object that is a reference must say of
// what kind it is, and which.
func canonical(field string, raw json.RawMessage, reference bool) (json.RawMessage, error) {
	bad := func(f, what string) error {
		return &fault.Error{Kind: fault.Invalid, Field: f, Err: errors.New(what)}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // numbers keep every digit
	var v any
	if !json.Valid(raw) || d.Decode(&v) != nil {
		return nil, bad(field, "it is not JSON")
	}
	switch v := v.(type) {
	case string:
		if v == "" {
			return nil, bad(field, "must not be empty")
		}
	case map[string]any:
		for _, name := range []string{"kind", "id", "title"} {
			member, there := v[name]
			text, isText := member.(string)
			switch {
			case !reference || name == "title" && member == nil:
			case !there:
				return nil, bad(field+"."+name, "is missing")
			case !isText || text == "" && name != "title":
				return nil, bad(field+"."+name, "must be a text that is not empty")
			}
		}
	default:
		return nil, bad(field, "must be a text or an object")
	}
	// Marshal sorts keys and escapes <, > and &.
	out, err := json.Marshal(v)
	if err != nil {
		return nil, bad(field, "it is not JSON")
	}
	return out, nil
}

// blocks is what the model gets to read of the request.
func (req *StartRequest) blocks() []message.Block {
	var out []message.Block
	add := func(b ContextBlock) { out = append(out, b.Content()) }
	for _, b := range req.ContextBlocks {
		add(b)
	}
	if len(req.Page) > 0 {
		add(ContextBlock{Kind: "page", Text: string(req.Page)})
	}
	if len(req.References) > 0 {
		add(ContextBlock{Kind: prompt.References, Text: string(bytes.Join(rawBytes(req.References), []byte("\n")))})
	}
	if len(req.Context) > 0 {
		var b bytes.Buffer
		json.HTMLEscape(&b, req.Context)
		add(ContextBlock{Kind: "context", Text: b.String()})
	}
	if req.skill != "" {
		add(ContextBlock{Kind: prompt.Skill, Text: req.skill})
	}
	return append(out, req.Input...)
}

// calls gives the skill that words call, "" if they call none. It is read now and stored
// with the message: what becomes of the skill later changes nothing.
func (a *Agent) calls(words []message.Block) (string, error) {
	if a.Skill == nil {
		return "", nil
	}
	text, err := a.Skill(firstText(words))
	var f *fault.Error
	if errors.As(err, &f) {
		of := *f // the same error may be others', too
		of.Field = "input"
		return "", &of
	}
	return text, err
}

// firstText is how a message begins.
func firstText(words []message.Block) string {
	for i := range words {
		if words[i].Type == message.BlockText {
			return words[i].Text
		}
	}
	return ""
}

// checkWords refuses input that claims to be context: that has a member of its own.
func checkWords(input []message.Block) error {
	for i := range input {
		if input[i].Context != "" {
			return &fault.Error{Kind: fault.Invalid, Field: fmt.Sprintf("input[%d].context", i), Err: errors.New("input is what the person says"), Hint: "Give what goes with it as context_blocks."}
		}
	}
	return nil
}

// maxContextBlocks is how many kinds of context a request may bring.
const maxContextBlocks = 64

// contextBlocks checks the blocks of context of a request.
func (e *Engine) contextBlocks(blocks []ContextBlock) error {
	if len(blocks) > maxContextBlocks {
		return &fault.Error{Kind: fault.Invalid, Field: "context_blocks", Err: fmt.Errorf("there are %d, and %d are the most", len(blocks), maxContextBlocks), Hint: "Put what belongs together into one block."}
	}
	size, seen := 0, map[string]bool{}
	for i, b := range blocks {
		field := fmt.Sprintf("context_blocks[%d].kind", i)
		switch {
		case !prompt.Kind(b.Kind):
			return &fault.Error{Kind: fault.Invalid, Field: field, Err: fmt.Errorf("%.80q is no kind", b.Kind), Hint: "Use 1 to 64 small letters, digits, _, . or -."}
		case seen[b.Kind]:
			return &fault.Error{Kind: fault.Invalid, Field: field, Err: fmt.Errorf("%q comes twice", b.Kind), Hint: "There is one block of a kind."}
		case b.Kind == "page" || b.Kind == prompt.References || b.Kind == "context" || prompt.Own(b.Kind):
			return &fault.Error{Kind: fault.Invalid, Field: field, Err: fmt.Errorf("%q is agentd's own", b.Kind), Hint: "Use page, references and context of the request, or another kind."}
		}
		seen[b.Kind] = true
		size += len(b.Kind) + len(b.Text)
	}
	if size > e.cfg.MaxContextBytes {
		return tooLarge("context_blocks", size, e.cfg.MaxContextBytes, "limits.max_context_bytes")
	}
	return nil
}

func rawBytes(raws []json.RawMessage) [][]byte {
	out := make([][]byte, len(raws))
	for i, r := range raws {
		out[i] = r
	}
	return out
}
