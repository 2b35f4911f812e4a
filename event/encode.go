package event

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"agentd/message"
)

// MarshalJSON writes the wire form.
func (e Event) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil) }

// AppendJSON appends the wire form to b, on one line. It does not allocate for
// deltas if b has room. On error b holds a partial event.
func (e Event) AppendJSON(b []byte) ([]byte, error) {
	b = append(b, `{"v":`...)
	b = strconv.AppendInt(b, Version, 10)
	b = append(b, `,"run_id":`...)
	b = AppendString(b, e.RunID)
	b = append(b, `,"seq":`...)
	b = strconv.AppendInt(b, e.Seq, 10)
	b = append(b, `,"ts":"`...)
	b = time.UnixMilli(e.Time).UTC().AppendFormat(b, TimeLayout)
	b = append(b, `","type":`...)
	b = AppendString(b, string(e.Type))
	b = append(b, `,"step":`...)
	b = strconv.AppendInt(b, int64(e.Step), 10)
	b = append(b, `,"data":`...)
	b, err := AppendData(b, e.Data)
	return append(b, '}'), err
}

// AppendData appends the JSON of a payload on one line; nil becomes {}.
func AppendData(b []byte, data any) ([]byte, error) {
	switch d := data.(type) {
	case nil:
		return append(b, '{', '}'), nil
	case *Delta:
		if d != nil {
			return d.append(b), nil
		}
	case *Text:
		if d != nil {
			return d.append(b), nil
		}
	case *Step:
		if d != nil {
			return d.append(b)
		}
	case *Tool:
		if d != nil {
			return d.append(b)
		}
	case json.RawMessage:
		return appendRaw(b, d)
	}
	raw, err := json.Marshal(data)
	return append(b, raw...), err
}

// appendRaw appends JSON without line breaks: they would end a line of an event
// stream.
func appendRaw(b []byte, raw json.RawMessage) ([]byte, error) {
	switch {
	case len(raw) == 0:
		return append(b, '{', '}'), nil
	case bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0:
		return append(b, raw...), nil
	}
	buf := bytes.NewBuffer(b)
	err := json.Compact(buf, raw)
	return buf.Bytes(), err
}

func (d *Delta) append(b []byte) []byte {
	b = append(b, `{"text":`...)
	b = AppendString(b, d.Text)
	if d.Block != 0 {
		b = append(b, `,"block":`...)
		b = strconv.AppendInt(b, int64(d.Block), 10)
	}
	return append(b, '}')
}

func (d *Text) append(b []byte) []byte {
	b = append(b, `{"text":`...)
	b = AppendString(b, d.Text)
	if d.EntryID != "" {
		b = append(b, `,"entry_id":`...)
		b = AppendString(b, d.EntryID)
	}
	return append(b, '}')
}

func (d *Step) append(b []byte) ([]byte, error) {
	o := message.AppendObject(b)
	o.String("model", d.Model)
	o.String("stop_reason", d.StopReason)
	if d.Usage != nil {
		o.Key("usage")
		o.B = d.Usage.AppendJSON(o.B)
	}
	o.Float("cache_ratio", d.CacheRatio)
	o.Money("saved_usd", d.Saved)
	o.Int("cache_seconds", d.CacheSeconds)
	o.Int("tool_calls", int64(d.ToolCalls))
	o.String("entry_id", d.EntryID)
	return o.End()
}

func (d *Tool) append(b []byte) ([]byte, error) {
	o := message.AppendObject(b)
	o.Key("tool_call_id")
	o.B = message.AppendString(o.B, d.ToolCallID)
	o.Key("name")
	o.B = message.AppendString(o.B, d.Name)
	o.Line("args", d.Args)
	o.String("result", d.Result)
	o.String("entry_id", d.EntryID)
	o.String("text", d.Text)
	o.Float("progress", d.Progress)
	o.Float("total", d.Total)
	o.Int("duration_ms", d.DurationMS)
	o.String("decision", d.Decision)
	o.String("reason", d.Reason)
	o.Line("details", d.Details)
	return o.End()
}

// AppendString is [message.AppendString].
func AppendString(b []byte, s string) []byte { return message.AppendString(b, s) }
