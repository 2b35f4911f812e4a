package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"agentd/fault"
	"agentd/message"
)

// What a request gives beside its input (the page that is open, what the person
// attached, free-form context) is shown to the model ahead of the input, in the
// same message: it changes with every request, and what was sent before stays
// as it was sent. Each part is one block of text between tags; what is inside
// can not end them, because JSON can be written without < and >.

// attached checks and completes what goes with the input: page and references
// become what is shown, with the same bytes for the same content.
func (e *Engine) attached(req *StartRequest) error {
	if len(req.Input) == 0 {
		for _, given := range []struct {
			name string
			is   bool
		}{{"page", len(req.Page) > 0}, {"references", len(req.References) > 0}, {"context", len(req.Context) > 0}} {
			if given.is {
				return &fault.Error{Kind: fault.Invalid, Field: given.name, Err: errors.New("it goes with input, and there is none")}
			}
		}
	}
	var err error
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
	tagged := func(tag string, lines ...json.RawMessage) {
		if len(lines) > 0 && len(lines[0]) > 0 {
			b := append([]byte("<"+tag+">\n"), bytes.Join(rawBytes(lines), []byte("\n"))...)
			out = append(out, message.Text(string(append(b, "\n</"+tag+">"...))))
		}
	}
	tagged("page", req.Page)
	tagged("references", req.References...)
	if len(req.Context) > 0 {
		var b bytes.Buffer
		json.HTMLEscape(&b, req.Context)
		tagged("context", b.Bytes())
	}
	return append(out, req.Input...)
}

func rawBytes(raws []json.RawMessage) [][]byte {
	out := make([][]byte, len(raws))
	for i, r := range raws {
		out[i] = r
	}
	return out
}
