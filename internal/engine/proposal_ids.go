package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/tool"
)

// Temporary ids are "tmp." and the id of their proposal. A model writes them where
// it would write the real one: alone, within a text, as a key; and it may know them
// from an earlier run of the conversation. Each is replaced, or the call is not made:
// a tool that is handed a temporary id writes to the wrong thing.

// substitute puts the ids of what was made into a proposal's arguments, in place of
// the temporary ones. all are the proposals of its tree of runs.
func (e *Engine) substitute(ctx context.Context, tenant string, p *store.Proposal, all []*store.Proposal) (json.RawMessage, error) {
	if !bytes.Contains(p.Args, []byte("tmp.")) {
		return p.Args, nil
	}
	d := json.NewDecoder(bytes.NewReader(p.Args))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, internal("engine.substitute", err)
	}
	s := &substitution{of: p, temp: temporary(), lookup: func(runID string) ([]*store.Proposal, error) {
		if within(p.RunID, runID) {
			return all, nil
		}
		return e.store.Proposals(ctx, tenant, runID)
	}}
	v, err := s.value(v)
	if err != nil {
		return nil, err
	}
	return tool.EncodeJSON(v)
}

// temporary matches temporary ids.
func temporary() *regexp.Regexp {
	return regexp.MustCompile(`tmp\.run_[0-9a-z]+(?:\.c[0-9]+)*\.p[0-9]+`)
}

// substitution is the way through the arguments of one proposal.
type substitution struct {
	of   *store.Proposal
	temp *regexp.Regexp
	// lookup gives the proposals of a run that was started from outside, and of
	// those below it.
	lookup func(runID string) ([]*store.Proposal, error)
}

// value gives a value with the real ids.
func (s *substitution) value(v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			name, err := s.text(k)
			if err != nil {
				return nil, err
			}
			key := fmt.Sprint(name)
			if _, twice := out[key]; twice {
				return nil, s.refuse(fmt.Errorf("it has the member %q twice, once by a temporary id", key))
			}
			if out[key], err = s.value(x); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		for i := range v {
			var err error
			if v[i], err = s.value(v[i]); err != nil {
				return nil, err
			}
		}
	case string:
		return s.text(v)
	}
	return v, nil
}

// text gives a text with the real ids. One that is nothing but an id takes the
// id's own type.
func (s *substitution) text(v string) (out any, err error) {
	text := s.temp.ReplaceAllStringFunc(v, func(temp string) string {
		if err != nil {
			return temp
		}
		var id any
		if id, err = s.id(temp); err != nil {
			return temp
		}
		if temp == v {
			out = id
		}
		return fmt.Sprint(id)
	})
	if out == nil {
		out = text
	}
	return out, err
}

// id gives the real id of what a proposal made.
func (s *substitution) id(temp string) (any, error) {
	id := strings.TrimPrefix(temp, "tmp.")
	root, _, _ := strings.Cut(id, ".")
	made, err := s.lookup(root)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, internal("engine.substitute", err)
	}
	i := slices.IndexFunc(made, func(o *store.Proposal) bool { return o.ID == id })
	switch {
	case i < 0:
		return nil, s.refuse(fmt.Errorf("it names %s, and there is no such proposal", temp))
	case made[i].Status != applied:
		return nil, s.refuse(fmt.Errorf("it needs the id that %s makes, and there is none: it is %s", id, made[i].Status))
	case len(made[i].Real) == 0:
		return nil, s.refuse(fmt.Errorf("it needs the id that %s makes, and there is none: its result names no id", id))
	}
	d := json.NewDecoder(bytes.NewReader(made[i].Real))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		return nil, internal("engine.substitute", err)
	}
	return out, nil
}

func (s *substitution) refuse(why error) error {
	return &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("proposal %s (%s) can not be applied: %w", s.of.ID, s.of.Name, why),
		Hint: "Apply that one first, or discard this one too."}
}

// madeID finds the id of what a call made in its result: an object's id, or a text
// of one word. It is nil if there is none that is certain. A word without a digit is
// more likely "ok" or "done" than an id.
func madeID(result string) json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal([]byte(result), &o) == nil {
		if id := scalar(o["id"]); id != nil {
			return id
		}
		var only json.RawMessage
		for k, v := range o {
			if id := scalar(v); id != nil && strings.HasSuffix(k, "_id") {
				if only != nil {
					return nil
				}
				only = id
			}
		}
		return only
	}
	result = strings.TrimSpace(result)
	if result == "" || len(result) > 128 || strings.ContainsAny(result, " \t\n{}[]\"") || !strings.ContainsAny(result, "0123456789") {
		return nil
	}
	id, _ := json.Marshal(result)
	return id
}

// scalar gives a text or a number, and nil for anything else.
func scalar(v json.RawMessage) json.RawMessage {
	if len(v) > 0 && (v[0] == '"' && string(v) != `""` || v[0] == '-' || v[0] >= '0' && v[0] <= '9') {
		return v
	}
	return nil
}
