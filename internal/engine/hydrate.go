package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"agentd/event"
	"agentd/internal/store"
	"agentd/message"
)

// Stored events do not repeat what the session's entries hold: texts, arguments
// and results are stored as references and filled in when they are read. This
// keeps a run's disk use close to the size of its conversation.

// stored is the stored form of a payload: the payload without its texts, and
// where to find them.
type stored struct {
	// P is the rest of the payload.
	P json.RawMessage `json:"p,omitempty"`
	// Entry holds the text: the whole of it for a final text, the block's
	// bytes from Offset for a delta, the arguments of Call for a call.
	Entry  string `json:"e,omitempty"`
	Block  int    `json:"b,omitempty"`
	Offset int    `json:"o,omitempty"`
	Length int    `json:"n,omitempty"`
}

// append writes {"$": s}, as json.Marshal would.
func (s *stored) append(b []byte) ([]byte, error) {
	o := message.AppendObject(append(b, `{"$":`...))
	o.Raw("p", s.P)
	o.String("e", s.Entry)
	o.Int("b", int64(s.Block))
	o.Int("o", int64(s.Offset))
	o.Int("n", int64(s.Length))
	b, err := o.End()
	return append(b, '}'), err
}

// reply is the reply that a commit contains, which its events may refer to.
type reply struct {
	entry string
	msg   *message.Message
	// used is how much of each block's text earlier deltas of it cover.
	used map[int]int
}

// encodeEvent gives the stored row of an event. Events of calls refer to the
// reply with the calls, or to their result.
func encodeEvent(ev event.Event, r *reply, callsEntry string, buf *[]byte) (row *store.Event, err error) {
	row = &store.Event{RunID: ev.RunID, Seq: ev.Seq, Time: ev.Time, Type: string(ev.Type), Step: ev.Step}
	s := stored{}
	data := ev.Data
	switch d := ev.Data.(type) {
	case *event.Delta:
		if r.locate(d, &s) {
			data = nil
		}
	case *event.Text:
		if d.EntryID != "" && r != nil && r.entry == d.EntryID {
			s.Entry, data = d.EntryID, nil
		}
	case *event.Ended:
		c := *d
		c.Output = ""
		data = &c
	case *event.Tool:
		c := *d
		switch ev.Type {
		case event.ToolStarted:
			if callsEntry != "" && c.Decision == "" {
				s.Entry, c.Args = callsEntry, nil
			}
		case event.ToolCompleted, event.ToolFailed:
			if c.EntryID != "" {
				c.Result = ""
			}
		}
		data = &c
	}
	b := (*buf)[:0]
	defer func() { *buf = b }()
	if data != nil {
		if b, err = event.AppendData(b, data); err != nil {
			return nil, err
		}
		s.P = b
	}
	from := 0
	if s.Entry != "" {
		from = len(b)
		b, err = s.append(b)
	}
	if len(b) > from {
		row.Data = bytes.Clone(b[from:])
	}
	return row, err
}

// locate finds a delta's text in the reply.
func (r *reply) locate(d *event.Delta, s *stored) bool {
	if r == nil || d.Block >= len(r.msg.Content) {
		return false
	}
	if r.used == nil {
		r.used = map[int]int{}
	}
	text, from := r.msg.Content[d.Block].Text, r.used[d.Block]
	if from+len(d.Text) > len(text) || text[from:from+len(d.Text)] != d.Text {
		return false
	}
	r.used[d.Block] = from + len(d.Text)
	s.Entry, s.Block, s.Offset, s.Length = r.entry, d.Block, from, len(d.Text)
	return true
}

// hydrator fills stored events in. It keeps the last entry it read, because
// neighbouring events refer to the same one.
type hydrator struct {
	id    string
	entry *message.Message
	// session, output and redact are of the run that is read.
	session string
	output  string
	redact  Redact
	loaded  bool
}

func (h *hydrator) message(ctx context.Context, e *Engine, tenant, session, id string) *message.Message {
	if id == "" {
		return nil
	}
	if h.id == id {
		return h.entry
	}
	h.id, h.entry = id, nil
	row, err := e.store.Entry(ctx, tenant, session, id)
	if err != nil {
		return nil
	}
	var m message.Message
	if json.Unmarshal(row.Body, &m) == nil {
		h.entry = &m
	}
	return h.entry
}

// event gives the event of a row. What it refers to and can not be read is left
// out, and so is a payload that can not: a damaged one must not hide the rest of the
// run, of which the last event is its end.
func (h *hydrator) event(ctx context.Context, e *Engine, tenant string, row *store.Event) event.Event {
	ev := event.Event{RunID: row.RunID, Seq: row.Seq, Time: row.Time, Type: event.Type(row.Type), Step: row.Step}
	raw := row.Data
	var ref struct {
		R *stored `json:"$"`
	}
	var err error
	if len(raw) > 5 && string(raw[:5]) == `{"$":` {
		if err = json.Unmarshal(raw, &ref); err == nil && ref.R != nil {
			raw = ref.R.P
		}
	}
	if err == nil && len(raw) > 0 && !json.Valid(raw) {
		err = errors.New("it is not JSON")
	}
	if err == nil {
		ev.Data, err = event.Decode(ev.Type, raw)
	}
	if err != nil {
		e.log.Error("the payload of an event is damaged and is left out", "run", row.RunID, "event", row.Seq, "type", row.Type, "error", err)
		ref.R = nil
		if ev.Data, err = event.Decode(ev.Type, nil); err != nil {
			ev.Data = json.RawMessage("{}")
		}
	}
	h.run(ctx, e, tenant, row.RunID)
	session := h.session
	switch d := ev.Data.(type) {
	case *event.Delta:
		if ref.R != nil {
			d.Block = ref.R.Block
			if m := h.message(ctx, e, tenant, session, ref.R.Entry); m != nil && d.Block < len(m.Content) {
				if text := m.Content[d.Block].Text; ref.R.Offset+ref.R.Length <= len(text) {
					d.Text = text[ref.R.Offset : ref.R.Offset+ref.R.Length]
				}
			}
		}
	case *event.Text:
		if ref.R != nil {
			d.EntryID = ref.R.Entry
			if m := h.message(ctx, e, tenant, session, ref.R.Entry); m != nil {
				d.Text = m.Text()
			}
		}
	case *event.Ended:
		// The run may have ended since its row was read first.
		if now, err := e.store.Run(ctx, tenant, row.RunID); err == nil {
			h.output = now.OutputEntry
		}
		if m := h.message(ctx, e, tenant, session, h.output); m != nil {
			d.Output = m.Text()
		}
	case *event.Tool:
		if ref.R != nil && d.Args == nil {
			if m := h.message(ctx, e, tenant, session, ref.R.Entry); m != nil {
				for _, b := range m.Content {
					if b.Type == message.BlockToolCall && b.ID == d.ToolCallID {
						d.Args = h.redact.data(d.Name, b.Arguments)
					}
				}
			}
		}
		if d.Result == "" && d.EntryID != "" && (ev.Type == event.ToolCompleted || ev.Type == event.ToolFailed) {
			if m := h.message(ctx, e, tenant, session, d.EntryID); m != nil {
				d.Result = h.redact.text(d.Name, m.Text())
			}
		}
	}
	return ev
}

// run learns what is needed of the run whose events are read. If nobody knows
// what must be hidden, everything is.
func (h *hydrator) run(ctx context.Context, e *Engine, tenant, id string) {
	if h.loaded {
		return
	}
	h.redact = hideAll
	row, err := e.store.Run(ctx, tenant, id)
	if err != nil {
		return
	}
	h.loaded, h.session, h.output = true, row.SessionID, row.OutputEntry
	redact, err := e.cfg.Agents.Redactor(tenant, profileRef(row.Profile, row.Version))
	if err != nil {
		redact, err = e.cfg.Agents.Redactor(tenant, row.Profile)
	}
	if err == nil {
		h.redact = redact
	}
}

func hideAll(string, json.RawMessage) json.RawMessage {
	return json.RawMessage(`"[hidden: this configuration does not have the profile that says what may be shown]"`)
}

// data hides in JSON.
func (r Redact) data(name string, data json.RawMessage) json.RawMessage {
	if r == nil || len(data) == 0 {
		return data
	}
	return r(name, data)
}

// text hides in a text.
func (r Redact) text(name, text string) string {
	if r == nil || text == "" {
		return text
	}
	if strings.HasPrefix(text, persisted) {
		// A part of what was to be masked whole: nobody can say what is in it.
		return "[hidden: the beginning of an output that was too large, of a tool whose output is masked]"
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return ""
	}
	var s string
	if json.Unmarshal(r(name, raw), &s) != nil {
		return ""
	}
	return s
}
