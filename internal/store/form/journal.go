package form

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"agentd/internal/store"
)

// Journal is what one Tx adds to the journal of one run.
type Journal struct {
	Run         string
	First, Last int64 // event numbers; 0, 0 without events
	// Body is packed against Entries[From:To] of the Tx.
	Body     []byte
	From, To int
}

// Journals encodes the events and trace of tx, one journal per run. A store that
// can not keep the rows of entries together gives a Tx without entries: then no
// journal depends on any. It is done before a writer has the Tx, on as many
// processors as there are committers.
func (c *Codec) Journals(tx *store.Tx) ([]Journal, error) {
	if len(tx.Events)+len(tx.Trace) == 0 {
		return nil, nil
	}
	js := make([]Journal, 0, 1)
	add := func(run string) error {
		if run == "" {
			return errors.New("an event or trace without a run")
		}
		for i := range js {
			if js[i].Run == run {
				return nil
			}
		}
		js = append(js, Journal{Run: run})
		return nil
	}
	for _, e := range tx.Events {
		if err := add(e.RunID); err != nil {
			return nil, err
		}
	}
	for _, t := range tx.Trace {
		if err := add(t.RunID); err != nil {
			return nil, err
		}
	}
	for i := range js {
		if err := c.encode(&js[i], tx); err != nil {
			return nil, err
		}
	}
	return js, nil
}

// encode makes the body of a journal.
func (c *Codec) encode(j *Journal, tx *store.Tx) error {
	p := c.pool.Get().(*packer)
	defer c.keep(p)
	var err error
	if p.plain, err = j.Plain(p.plain[:0], tx); err != nil {
		return err
	}
	dict := append(j.dictionary(tx), []byte(j.Run))
	p.packed = c.Pack(p.packed[:0], p.plain, dict...)
	j.Body = bytes.Clone(p.packed)
	return nil
}

// Plain appends to b: the number of events; each as its distance in number and time
// from the one before, step, type, data; the number of trace rows; each as its
// distance in time, kind, body.
func (j *Journal) Plain(b []byte, tx *store.Tx) ([]byte, error) {
	events, trace := 0, 0
	for _, e := range tx.Events {
		if e.RunID == j.Run {
			events++
		}
	}
	for _, t := range tx.Trace {
		if t.RunID == j.Run {
			trace++
		}
	}
	j.First = 0
	b = binary.AppendUvarint(b, uint64(events))
	var seq, time int64
	for _, e := range tx.Events {
		if e.RunID != j.Run {
			continue
		}
		if e.Seq <= seq {
			return b, fmt.Errorf("event %d of run %s does not rise above %d", e.Seq, e.RunID, seq)
		}
		if j.First == 0 {
			j.First = e.Seq
		}
		b = binary.AppendUvarint(b, uint64(e.Seq-seq))
		b = binary.AppendVarint(b, e.Time-time)
		b = binary.AppendVarint(b, int64(e.Step))
		b = appendBytes(b, e.Type)
		b = appendBytes(b, e.Data)
		seq, time = e.Seq, e.Time
	}
	j.Last = seq
	b = binary.AppendUvarint(b, uint64(trace))
	for _, t := range tx.Trace {
		if t.RunID != j.Run {
			continue
		}
		b = binary.AppendVarint(b, t.Time-time)
		b = appendBytes(b, t.Kind)
		b = appendBytes(b, t.Body)
		time = t.Time
	}
	return b, nil
}

// dictionary chooses the entries whose bodies the journal may copy from: the
// first unbroken row of entries that this run wrote. They live in the run's own
// session, so journal and dictionary are deleted together.
func (j *Journal) dictionary(tx *store.Tx) [][]byte {
	es := tx.Entries
	for j.From < len(es) && es[j.From].RunID != j.Run {
		j.From++
	}
	var dict [][]byte
	n := 0
	for j.To = j.From; j.To < len(es); j.To++ {
		e := es[j.To]
		if n += len(e.Body); e.RunID != j.Run || e.SessionID != es[j.From].SessionID || n > maxDict {
			break
		}
		dict = append(dict, e.Body)
	}
	return dict
}

// JournalKey is the last dictionary of a journal: the id of its run, which the keys
// of effects repeat. Form 1 had none.
func JournalKey(body []byte, run string) []byte {
	if len(body) > 0 && body[0] == formLZ1 {
		return nil
	}
	return []byte(run)
}

// appendBytes keeps nil and empty apart, as far as readers care: both are
// written as length 0 and read as nil.
func appendBytes[T string | []byte | json.RawMessage](b []byte, p T) []byte {
	b = binary.AppendUvarint(b, uint64(len(p)))
	return append(b, p...)
}

// Decode reads what Plain wrote. Either function may be nil; event returns
// false to stop.
func Decode(run string, b []byte, event func(*store.Event) bool, trace func(*store.Trace)) error {
	r := reader{b: b}
	var seq, time int64
	for n := r.uvarint(); n > 0 && r.ok(); n-- {
		e := &store.Event{RunID: run}
		seq += int64(r.uvarint())
		time += r.varint()
		e.Seq, e.Time = seq, time
		e.Step = int(r.varint())
		e.Type = string(r.bytes())
		e.Data = r.bytes()
		if r.ok() && event != nil && !event(e) {
			return nil
		}
	}
	if trace == nil {
		return r.err
	}
	for n := r.uvarint(); n > 0 && r.ok(); n-- {
		t := &store.Trace{RunID: run}
		time += r.varint()
		t.Time = time
		t.Kind = string(r.bytes())
		t.Body = r.bytes()
		if r.ok() {
			trace(t)
		}
	}
	return r.err
}

// reader reads varints until something is wrong with them.
type reader struct {
	b   []byte
	err error
}

func (r *reader) ok() bool { return r.err == nil }

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.b, r.err = nil, ErrDamaged
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.b, r.err = nil, ErrDamaged
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.b, r.err = nil, ErrDamaged
		return nil
	}
	if n == 0 {
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}
