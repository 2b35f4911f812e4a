package engine

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"agentd/event"
	"agentd/message"
)

// Bus carries short messages between the nodes of a store. It may lose messages, hold
// them back and bring them twice or in another order: rows are the truth, and a note
// only says where to look. Messages are texts of at most busMost bytes.
type Bus interface {
	// Publish sends a message to everybody, the sender too. It does not wait.
	Publish(message []byte)
	// Subscribe calls f for each message, one after the other, until stop.
	Subscribe(f func(message []byte)) (stop func())
}

const (
	// busMost is the size of a message: PostgreSQL's notifications take 8,000 bytes.
	busMost = 7000
	// busPause is how long notes gather for the next message.
	busPause = 10 * time.Millisecond
	// busQueue bounds the bytes that wait for the bus; what is over it goes without its
	// events, which readers then take from the store.
	busQueue = 1 << 20
	// busDeltas is the longest text in one event on the bus.
	busDeltas = 3000
)

// MemoryBus is a bus for engines in one process. Its zero value is ready.
type MemoryBus struct {
	order sync.Mutex // one message after the other

	mu   sync.Mutex
	subs map[int]func([]byte)
	next int
}

// Publish implements Bus.
func (b *MemoryBus) Publish(message []byte) {
	b.order.Lock()
	defer b.order.Unlock()
	b.mu.Lock()
	subs := make([]func([]byte), 0, len(b.subs))
	for i := range b.next {
		if f := b.subs[i]; f != nil {
			subs = append(subs, f)
		}
	}
	b.mu.Unlock()
	for _, f := range subs {
		f(message)
	}
}

// Subscribe implements Bus.
func (b *MemoryBus) Subscribe(f func(message []byte)) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subs == nil {
		b.subs = map[int]func([]byte){}
	}
	id := b.next
	b.next++
	b.subs[id] = f
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.subs, id)
	}
}

// Kinds of notes.
const (
	noteEvents = "events" // of a run; without Events: read the store
	noteMail   = "mail"   // waits for a run
	noteCancel = "cancel" // the same, and it asks the run to stop
	noteDone   = "done"   // mail was applied
	noteWork   = "work"   // somebody may have something to do
	noteEnd    = "end"    // a run has ended
	noteWatch  = "watch"  // somebody reads a run's events here
	noteHome   = "home"   // a run is driven here from now on
	noteAsk    = "ask"    // a pool was asked for a call
	noteStop   = "stop"   // a call that a pool was asked for is to end
	noteResult = "result" // a pool has made a call
	noteNews   = "news"   // what a call tells while it is made
)

// note is one thing that nodes tell each other.
type note struct {
	Kind   string `json:"k"`
	Tenant string `json:"t,omitempty"`
	Run    string `json:"r,omitempty"`
	// ID is that of mail or of a call, or names a pool; Data is what a call tells.
	ID   string          `json:"i,omitempty"`
	Data json.RawMessage `json:"x,omitempty"`
	// Prev is the number of the event ahead of Events, Durable one up to which the
	// store has all of the run's events.
	Prev    int64 `json:"p,omitempty"`
	Durable int64 `json:"d,omitempty"`
	// Whole, of noteWatch: whoever reads lacks what is live and in no commit; of
	// noteEvents: this is that, and what is ahead of it is in the store.
	Whole  bool          `json:"w,omitempty"`
	Events []event.Event `json:"e,omitempty"`
	// Words are events in another form, on the bus alone.
	Words []word `json:"y,omitempty"`
}

func (n *note) ref() Ref { return Ref{n.Tenant, n.Run} }

// busMessage is what goes over the bus: notes of one sender, who counts messages, so
// that others know when one was lost.
type busMessage struct {
	Sender string            `json:"s"`
	Count  int64             `json:"c"`
	Notes  []json.RawMessage `json:"n,omitempty"`
}

// hub gathers a node's notes into messages, and takes those of others apart.
type hub struct {
	bus  Bus
	id   string
	own  []byte // how messages of this node begin
	take func(note)
	// missed is told that something was lost.
	missed func()
	// order keeps messages in the order of their counts, whole those of one flush
	// together.
	order, whole sync.Mutex

	mu        sync.Mutex
	out       []note
	size      int
	count     int64
	last      time.Time // of the last message
	scheduled bool
	closed    bool
	heard     time.Time // when the last own message came back
	senders   map[string]int64
	stop      func()
}

func newHub(bus Bus, id string, take func(note), missed func()) *hub {
	own := append(message.AppendString([]byte(`{"s":`), id), ',')
	h := &hub{bus: bus, id: id, own: own, take: take, missed: missed, senders: map[string]int64{}}
	if bus != nil {
		h.stop = bus.Subscribe(h.receive)
	}
	return h
}

func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	if h.stop != nil {
		h.stop()
	}
}

// send hands a note to the bus.
func (h *hub) send(n note) {
	if h.bus == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	size := 100
	for _, ev := range n.Events {
		size += 200
		if d, ok := ev.Data.(*event.Delta); ok {
			size += len(d.Text)
		}
	}
	size += len(n.Data)
	if h.size+size > busQueue {
		if n.Kind == noteNews {
			return
		}
		n.Events = nil
	}
	k := len(h.out) - 1
	if k >= 0 && !n.Whole && n.Kind == noteEvents && h.out[k].Kind == noteEvents && h.out[k].ref() == n.ref() && len(n.Events) > 0 && len(h.out[k].Events) > 0 {
		h.out[k].Events = append(h.out[k].Events, n.Events...)
		h.out[k].Durable = n.Durable
	} else if k < 0 || n.Kind != h.out[k].Kind || n.ID != h.out[k].ID || n.ref() != h.out[k].ref() || len(n.Events)+len(n.Data) > 0 {
		n.Events = slices.Clone(n.Events)
		h.out = append(h.out, n)
	} else {
		h.out[k] = n // said again
	}
	h.size += size
	h.schedule()
}

func (h *hub) schedule() {
	if h.scheduled {
		return
	}
	h.scheduled = true
	time.AfterFunc(max(0, busPause-time.Since(h.last)), h.flush)
}

// flush sends what has gathered, in as many messages as it takes.
func (h *hub) flush() {
	h.whole.Lock()
	defer h.whole.Unlock()
	h.mu.Lock()
	notes := h.out
	h.out, h.size, h.scheduled, h.last = nil, 0, false, time.Now()
	h.mu.Unlock()
	var raws [][]byte
	size := 0
	emit := func() {
		h.publish(raws)
		raws, size = nil, 0
	}
	for i := range notes {
		for _, raw := range notes[i].encode() {
			if size > 0 && size+len(raw) > busMost-200 {
				emit()
			}
			raws, size = append(raws, raw), size+len(raw)+1
		}
	}
	if len(raws) > 0 {
		emit()
	}
}

// publish sends one message; without notes it is a sign of life.
func (h *hub) publish(notes [][]byte) {
	if h.bus == nil {
		return
	}
	h.order.Lock()
	defer h.order.Unlock()
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return
	}
	h.count++
	raw := encodeMessage(h.id, h.count, notes)
	h.mu.Unlock()
	h.bus.Publish(raw)
}

// pieces cuts a long delta; a part of it has the number of its last byte.
func pieces(ev event.Event) []event.Event {
	d, ok := ev.Data.(*event.Delta)
	if !ok || !ev.Type.Delta() || len(d.Text) <= busDeltas {
		return []event.Event{ev}
	}
	var out []event.Event
	start := ev.Seq - int64(len(d.Text))
	for from := 0; from < len(d.Text); {
		to := min(from+busDeltas, len(d.Text))
		for to < len(d.Text) && to > from+1 && d.Text[to]&0xC0 == 0x80 {
			to-- // between runes
		}
		p := ev
		p.Seq, p.Data = start+int64(to), &event.Delta{Text: d.Text[from:to], Block: d.Block}
		out = append(out, p)
		from = to
	}
	return out
}

func (h *hub) receive(raw []byte) {
	if bytes.HasPrefix(raw, h.own) {
		h.mu.Lock()
		h.heard = time.Now()
		h.mu.Unlock()
		return
	}
	m, notes, ok := decodeMessage(raw)
	if !ok {
		return // somebody else's
	}
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return
	}
	before, known := h.senders[m.Sender]
	if len(h.senders) > 4096 {
		clear(h.senders)
	}
	h.senders[m.Sender] = max(before, m.Count)
	h.mu.Unlock()
	// One that comes again, or late, is no loss.
	if lost := m.Count > before+1 && (known || m.Count != 1); lost {
		h.missed()
	}
	for i := range notes {
		h.take(notes[i])
	}
}

// deaf is whether the bus seems dead: nothing of what was said came back for a while.
func (h *hub) deaf(patience time.Duration) bool {
	if h.bus == nil {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.heard) > patience
}
