package engine

import (
	"context"
	"encoding/json"

	"agentd/model"
)

// TraceView is one input of a run with the effects that it led to.
type TraceView struct {
	// N counts from 1.
	N    int    `json:"n"`
	Time string `json:"ts"`
	// Input is the kind of the input, Data what it holds besides messages, which
	// are entries of the session.
	Input string          `json:"input"`
	Data  json.RawMessage `json:"data,omitempty"`
	// Effects are what was to be done because of it.
	Effects []EffectView `json:"effects,omitempty"`
	// Prompt is what was sent ahead of the conversation in a model call, in order; of
	// a call that had the same as the one before, and of other inputs, it is missing.
	Prompt []model.Section `json:"prompt,omitempty"`
}

// EffectView is an effect of the trace.
type EffectView struct {
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Trace lists a run's inputs and effects after a number (0: from the start), at
// most limit. more is whether there are others.
func (e *Engine) Trace(ctx context.Context, ref Ref, after, limit int) (rows []TraceView, more bool, err error) {
	if _, err := e.store.Run(ctx, ref.Tenant, ref.ID); err != nil {
		return nil, false, notFound("run", ref.ID, err)
	}
	raw, err := e.store.Trace(ctx, ref.Tenant, ref.ID, after, limit+1)
	if err != nil {
		return nil, false, internal("engine.Trace", err)
	}
	if more = len(raw) > limit; more {
		raw = raw[:limit]
	}
	for i, t := range raw {
		v := TraceView{N: after + i + 1, Time: timestamp(t.Time), Input: t.Kind}
		var body struct {
			In json.RawMessage `json:"in"`
			Do []struct {
				K string          `json:"k"`
				A json.RawMessage `json:"a"`
			} `json:"do"`
			Prompt []model.Section `json:"prompt"`
		}
		if json.Unmarshal(t.Body, &body) == nil {
			v.Data, v.Prompt = body.In, body.Prompt
			for _, d := range body.Do {
				v.Effects = append(v.Effects, EffectView{Kind: d.K, Data: d.A})
			}
		}
		rows = append(rows, v)
	}
	return rows, more, nil
}
