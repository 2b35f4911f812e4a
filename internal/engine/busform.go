package engine

import (
	"encoding/json"
	"strconv"

	"agentd/event"
	"agentd/message"
)

// Most of what goes over a bus is text that comes word by word, and an event has ten
// times the bytes of a word. In a note words have a form of their own; a node that is
// older than that form sees a note without events, and looks into the store.

// word is a delta in a note. The run is the note's.
type word struct {
	Seq  int64  `json:"s"`
	Time int64  `json:"t"`
	Step int    `json:"p,omitempty"`
	Text string `json:"x"`
	// Block is that of the text.
	Block int `json:"b,omitempty"`
	// Thinking: it is a thinking delta.
	Thinking bool `json:"h,omitempty"`
}

func (w *word) event(run string) event.Event {
	ev := event.Event{RunID: run, Seq: w.Seq, Time: w.Time, Type: event.TextDelta, Step: w.Step, Data: &event.Delta{Text: w.Text, Block: w.Block}}
	if w.Thinking {
		ev.Type = event.ThinkingDelta
	}
	return ev
}

// appendWord appends a delta as a word, false for other events.
func appendWord(b []byte, ev *event.Event, run string) (_ []byte, ok bool) {
	d, ok := ev.Data.(*event.Delta)
	if !ok || d == nil || !ev.Type.Delta() || ev.RunID != run {
		return b, false
	}
	b = strconv.AppendInt(append(b, `{"s":`...), ev.Seq, 10)
	b = strconv.AppendInt(append(b, `,"t":`...), ev.Time, 10)
	if ev.Step != 0 {
		b = strconv.AppendInt(append(b, `,"p":`...), int64(ev.Step), 10)
	}
	if d.Block != 0 {
		b = strconv.AppendInt(append(b, `,"b":`...), int64(d.Block), 10)
	}
	if ev.Type == event.ThinkingDelta {
		b = append(b, `,"h":true`...)
	}
	return append(message.AppendString(append(b, `,"x":`...), d.Text), '}'), true
}

// encode gives a note as texts that fit into messages. An event that does not fit goes
// without: the numbers of the next show that it is missing.
func (n *note) encode() (out [][]byte) {
	head := *n
	head.Events, head.Words = nil, nil
	if len(n.Events) == 0 {
		if raw, err := json.Marshal(&head); err == nil {
			out = append(out, raw)
		}
		return out
	}
	var list []byte // of one kind
	var words bool
	prev := n.Prev
	cut := func() {
		if raw, err := json.Marshal(&head); err == nil { // if not, the store has it
			key := `,"e":[`
			if words {
				key = `,"y":[`
			}
			out = append(out, append(append(append(raw[:len(raw)-1], key...), list...), ']', '}'))
		}
		head.Prev, head.Whole, list = prev, false, nil
	}
	for _, whole := range n.Events {
		for _, ev := range pieces(whole) {
			raw, isWord := appendWord(nil, &ev, n.Run)
			if !isWord {
				var err error
				if raw, err = json.Marshal(ev); err != nil {
					raw = nil
				}
			}
			if len(list) > 0 && (isWord != words || len(list)+len(raw) > busMost-500) {
				cut()
			}
			if raw == nil || len(raw) > busMost-500 {
				if len(list) > 0 {
					cut()
				}
				head.Prev, head.Whole, prev = ev.Seq, false, ev.Seq
				if raw, err := json.Marshal(&head); err == nil {
					out = append(out, raw)
				}
				continue
			}
			if words = isWord; len(list) > 0 {
				list = append(list, ',')
			}
			list, prev = append(list, raw...), ev.Seq
		}
	}
	if len(list) > 0 {
		cut()
	}
	return out
}

// open puts words where events are.
func (n *note) open() {
	for i := range n.Words {
		n.Events = append(n.Events, n.Words[i].event(n.Run))
	}
	n.Words = nil
}

// encodeMessage is a message of a sender with notes.
func encodeMessage(sender string, count int64, notes [][]byte) []byte {
	b := message.AppendString([]byte(`{"s":`), sender)
	b = strconv.AppendInt(append(b, `,"c":`...), count, 10)
	for i, n := range notes {
		if i == 0 {
			b = append(b, `,"n":[`...)
		} else {
			b = append(b, ',')
		}
		b = append(b, n...)
	}
	if len(notes) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

// decodeMessage reads a message. A note that can not be read is left out, as from a
// node that is newer.
func decodeMessage(raw []byte) (m busMessage, notes []note, ok bool) {
	var quick struct {
		Sender string `json:"s"`
		Count  int64  `json:"c"`
		Notes  []note `json:"n"`
	}
	if json.Unmarshal(raw, &quick) == nil {
		m.Sender, m.Count, notes = quick.Sender, quick.Count, quick.Notes
	} else {
		if json.Unmarshal(raw, &m) != nil {
			return m, nil, false
		}
		for _, r := range m.Notes {
			var n note
			if json.Unmarshal(r, &n) == nil {
				notes = append(notes, n)
			}
		}
	}
	for i := range notes {
		notes[i].open()
	}
	return m, notes, true
}
