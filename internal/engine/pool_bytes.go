package engine

import (
	"encoding/json"

	"agentd/message"
	"agentd/model"
)

// What is sent to a provider, and what a model wrote, must be the same to the byte
// whichever node makes the call: caches go by it. [json.Marshal] writes JSON that it is
// given (arguments of calls, schemas) in a way of its own, so what holds such is written
// here. It reads back as what json.Marshal writes does.

// body is the call as pools are asked for it.
func (m *poolModel) body() ([]byte, error) {
	rest, err := json.Marshal(struct {
		*model.Request
		Scratch, Messages, Tools, Schema *struct{} `json:",omitempty"`
	}{Request: m.Request})
	if err != nil {
		return nil, err
	}
	b := append(message.AppendString([]byte(`{"model":{"name":`), m.Name), `,"request":`...)
	o := message.AppendObject(b)
	o.Key("Messages")
	o.B = append(o.B, '[')
	for i := range m.Request.Messages {
		if i > 0 {
			o.B = append(o.B, ',')
		}
		if o.B, err = m.Request.Messages[i].AppendJSON(o.B); err != nil {
			return nil, err
		}
	}
	o.B = append(o.B, ']')
	o.Key("Tools")
	o.B = append(o.B, '[')
	for i, t := range m.Request.Tools {
		if i > 0 {
			o.B = append(o.B, ',')
		}
		spec := message.AppendObject(o.B)
		spec.String("name", t.Name)
		spec.String("description", t.Description)
		spec.Raw("schema", t.Schema)
		if o.B, err = spec.End(); err != nil {
			return nil, err
		}
	}
	o.B = append(o.B, ']')
	o.Raw("Schema", m.Request.Schema)
	if b, err = o.End(); err != nil {
		return nil, err
	}
	b[len(b)-1] = ',' // the request always has a model
	return append(append(b, rest[1:]...), "}}"...), nil
}

// body is the result as its run gets it.
func (r *poolResult) body() ([]byte, error) {
	if r.Model == nil || r.Model.Reply == nil {
		return json.Marshal(r)
	}
	rest, err := json.Marshal(struct {
		*poolModelResult
		Reply *struct{} `json:"reply,omitempty"`
	}{poolModelResult: r.Model})
	if err != nil {
		return nil, err
	}
	b, err := r.Model.Reply.AppendJSON([]byte(`{"model":{"reply":`))
	if err != nil {
		return nil, err
	}
	if len(rest) > len("{}") {
		b = append(b, ',')
	}
	return append(append(b, rest[1:]...), '}'), nil
}
