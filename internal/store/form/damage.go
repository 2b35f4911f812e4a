package form

import (
	"encoding/json"

	"agentd/event"
	"agentd/internal/store"
)

// Events decodes the events of a row of a journal whose last one is numbered last.
// damage is what unpacking the row said. Of a row that can not be read it gives one
// event, numbered last, that says so.
func Events(run string, b []byte, last int64, damage error) (es []*store.Event) {
	// What comes of a damaged row may look like events; their numbers tell.
	seq := int64(0)
	if damage == nil {
		damage = Decode(run, b, func(e *store.Event) bool {
			if e.Seq <= seq {
				seq = -1
				return false
			}
			seq = e.Seq
			es = append(es, e)
			return true
		}, nil)
	}
	if damage == nil && seq == last {
		return es
	}
	return []*store.Event{{RunID: run, Seq: last, Type: string(event.EventsLost),
		Data: json.RawMessage(`{"message":"Events up to this one are damaged and can not be read. The conversation is not touched by it; agentd doctor says more."}`)}}
}

// Trace decodes the trace of a row of a journal. Of a row that can not be read it
// gives one that says so.
func Trace(run string, b []byte, damage error) (ts []*store.Trace) {
	if damage == nil {
		damage = Decode(run, b, nil, func(t *store.Trace) { ts = append(ts, t) })
	}
	if damage != nil {
		return []*store.Trace{{RunID: run, Kind: "Lost", Body: json.RawMessage(`{"in":{"message":"this part of the trace is damaged"}}`)}}
	}
	return ts
}

// UnpackOrDamaged is Unpack that gives a damaged value as it is: it is nothing that
// anybody can decode, and whoever needs it says so. The rest of its row must be
// readable, and a run's session free. nil stays nil.
func (c *Codec) UnpackOrDamaged(v []byte) []byte {
	if v == nil {
		return nil
	}
	b, err := c.Unpack(v)
	if err != nil {
		return v
	}
	return b
}
