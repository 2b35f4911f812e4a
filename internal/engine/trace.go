package engine

import (
	"bytes"
	"encoding/json"
	"strconv"

	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
)

// trace is the record of a transition for replay and audit.
func (d *driver) trace(in run.Input, tr *run.Transition, now int64) *store.Trace {
	t := &store.Trace{RunID: d.ref.ID, Time: now, Kind: in.Kind()}
	b, err := appendInput(append(d.buf[:0], `{"in":`...), in)
	for i, e := range tr.Effects {
		if i == 0 {
			b = append(b, `,"do":[`...)
		} else {
			b = append(b, ',')
		}
		b = append(message.AppendString(append(b, `{"k":`...), e.EffectKind()), `,"a":`...)
		var eerr error
		if b, eerr = appendEffect(b, e); err == nil {
			err = eerr
		}
		b = append(b, '}')
	}
	if len(tr.Effects) > 0 {
		b = append(b, ']')
	}
	switch in.(type) {
	case run.ModelDone, run.ModelFailed:
		if made := d.newSections(); len(made) > 0 {
			raw, merr := json.Marshal(made)
			if b = append(append(b, `,"prompt":`...), raw...); err == nil {
				err = merr
			}
		}
	}
	if d.cacheNote != nil {
		b = append(append(b, `,"cache":`...), d.cacheNote...)
		d.cacheNote = nil
	}
	if d.toolsNote != nil {
		b = append(append(b, `,"toolset":`...), d.toolsNote...)
		d.toolsNote = nil
	}
	d.buf = append(b, '}')
	if t.Body = json.RawMessage(`{}`); err == nil {
		t.Body = bytes.Clone(d.buf)
	}
	return t
}

// appendInput writes what json.Marshal writes, faster for what comes in every step.
func appendInput(b []byte, in run.Input) ([]byte, error) {
	switch in := in.(type) {
	case run.ModelDone:
		o := began(b, in.Now)
		o.String("unfit", in.Unfit)
		return o.End()
	case run.ToolDone:
		o := began(b, in.Now)
		o.Key("call")
		o.B = message.AppendString(o.B, in.CallID)
		o.Bool("terminate", in.Terminate)
		o.Int("duration_ms", in.DurationMS)
		o.Bool("cancelled", in.Cancelled)
		o.Bool("cached", in.Cached)
		return o.End()
	case run.Verdict:
		o := began(b, in.Now)
		o.Key("call")
		o.B = message.AppendString(o.B, in.CallID)
		o.Key("decision")
		o.B = message.AppendString(o.B, string(in.Decision))
		o.String("reason", in.Reason)
		o.String("effect", in.Effect)
		o.Bool("sequential", in.Sequential)
		o.String("tool_kind", in.ToolKind)
		o.String("prompt", in.Prompt)
		o.Raw("schema", in.Schema)
		o.Int("expires_at", in.ExpiresAt)
		o.Bool("grave", in.Grave)
		o.String("cache_key", in.CacheKey)
		return o.End()
	}
	return appendAny(b, in)
}

func appendEffect(b []byte, e run.Effect) ([]byte, error) {
	o := message.AppendObject(b)
	switch e := e.(type) {
	case run.CallModel:
		o.Key("step")
		o.B = strconv.AppendInt(o.B, int64(e.Step), 10)
		o.Key("attempt")
		o.B = strconv.AppendInt(o.B, int64(e.Attempt), 10)
		o.Int("index", int64(e.Index))
		o.Key("entry")
		o.B = message.AppendString(o.B, e.Entry)
		o.String("closing", e.Closing)
	case run.Judge:
		o.Key("call")
		o.B = message.AppendString(o.B, e.CallID)
		o.Key("name")
		o.B = message.AppendString(o.B, e.Name)
	case run.CallTool:
		for _, f := range [][2]string{{"call", e.CallID}, {"name", e.Name}, {"effect", e.Effect}, {"key", e.Key}} {
			o.Key(f[0])
			o.B = message.AppendString(o.B, f[1])
		}
		o.Key("step")
		o.B = strconv.AppendInt(o.B, int64(e.Step), 10)
		o.String("interrupt", e.Interrupt)
		o.String("cached", e.Cached)
	default:
		return appendAny(b, e)
	}
	return o.End()
}

func began(b []byte, now int64) message.Object {
	o := message.AppendObject(b)
	o.Key("now")
	o.B = strconv.AppendInt(o.B, now, 10)
	return o
}

func appendAny(b []byte, v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	return append(b, raw...), err
}
