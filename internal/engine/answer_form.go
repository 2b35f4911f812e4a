package engine

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"agentd/internal/prompt"
	"agentd/message"
	"agentd/tool"
)

// answerForm is what an answer must be: one JSON value, of a schema if there is one. Nil is
// any text.
type answerForm struct{ schema json.RawMessage }

func formOf(o *prompt.Options) *answerForm {
	if !o.JSON && len(o.Schema) == 0 {
		return nil
	}
	return &answerForm{schema: o.Schema}
}

// maxUnfit bounds what a model is told of what is wrong with its answer.
const maxUnfit = 2000

// unfit is why a reply is not of the form, for the model; "" if it is, or if it is no
// answer.
func (f *answerForm) unfit(v *tool.Validator, reply *message.Message) string {
	if f == nil || len(reply.ToolCalls()) > 0 {
		return ""
	}
	raw := bytes.TrimSpace([]byte(reply.Text()))
	given, err := decodeAny(raw)
	switch {
	case len(raw) == 0:
		return "it is empty"
	case err != nil:
		return "it is not one JSON value (" + head(strings.ToValidUTF8(err.Error(), ""), maxUnfit) + ")"
	case len(f.schema) == 0:
		return ""
	}
	out, verr := v.Value(f.schema, raw)
	if verr != nil {
		return "it does not fit the schema: " + head(strings.ToValidUTF8(verr.Error(), ""), maxUnfit)
	}
	// What fits only after a conversion is not what was asked for.
	if now, err := decodeAny(out); err != nil || !reflect.DeepEqual(given, now) {
		return "a value in it is not of the type that the schema gives it; converted, it would be " + head(string(out), maxUnfit)
	}
	return ""
}

// decodeAny reads one JSON value, numbers as they are written.
func decodeAny(raw []byte) (v any, err error) {
	if err := json.Unmarshal(raw, new(json.RawMessage)); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return v, dec.Decode(&v)
}
