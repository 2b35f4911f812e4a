package engine

import (
	"agentd/event"
)

// tail is what another node sent of a run and the store may not have yet, for readers
// who come in the middle of it. It has no gap: what does not follow begins it anew.
// Guarded by the stream's mu.
type tail struct {
	prev, last, durable int64
	events              []liveEvent
	size                int
}

// tailMost bounds the text of a tail, in bytes: a reply is rarely longer. What is
// longer is dropped, and who comes then has it from the store a step later.
const tailMost = 1 << 20

func (t *tail) clear() { *t = tail{} }

// add takes in what came, and reports whether something ahead of it is missing.
func (t *tail) add(p *piece) (gap bool) {
	if t.durable = max(t.durable, p.durable); t.last <= t.durable {
		*t = tail{durable: t.durable}
	}
	if p.whole {
		*t = tail{durable: t.durable}
	}
	for i := range p.events {
		ev := p.events[i]
		if ev.Seq <= t.durable {
			continue // a reader who lacks it finds it in the store
		}
		switch at := before(&ev); {
		case len(t.events) == 0:
			if i == 0 {
				at = min(at, p.prev)
			}
			gap = gap || at > t.durable && !p.whole
			t.prev = at
		default:
			var fresh bool
			if ev, fresh = event.After(ev, t.last); !fresh {
				continue
			}
			// Numbers may rise by more than one: what is sent says what is ahead of it.
			if i == 0 && p.prev > t.last {
				gap = true
				*t = tail{durable: t.durable, prev: p.prev}
			}
		}
		t.put(ev)
	}
	if t.size > tailMost {
		*t = tail{durable: t.durable}
	}
	return gap
}

// put appends an event; text joins what it goes on with.
func (t *tail) put(ev event.Event) {
	t.last = ev.Seq
	d, isDelta := ev.Data.(*event.Delta)
	if !isDelta || !ev.Type.Delta() {
		t.size += weight(&ev)
		t.events = append(t.events, liveEvent{Event: ev})
		return
	}
	t.size += len(d.Text)
	if k := len(t.events) - 1; k >= 0 && t.events[k].Type == ev.Type && t.events[k].Step == ev.Step && t.events[k].block == d.Block && t.events[k].Seq == ev.Seq-int64(len(d.Text)) {
		t.events[k].text = append(t.events[k].text, d.Text...)
		t.events[k].Seq = ev.Seq
		return
	}
	t.size += weight(&ev)
	t.events = append(t.events, liveEvent{Event: ev, text: append(make([]byte, 0, 512), d.Text...), block: d.Block})
}

// piece is all of it.
func (t *tail) piece() (p piece, some bool) {
	if len(t.events) == 0 {
		return p, false
	}
	p = piece{prev: t.prev, durable: t.durable}
	for i := range t.events {
		p.events = append(p.events, t.events[i].materialise())
	}
	return p, true
}
