package sqlite

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"agentd/internal/store"
)

// journal is what one Tx adds to the journal of one run.
type journal struct {
	run         string
	first, last int64 // event numbers; 0, 0 without events
	// body is packed against entries[from:to] of the Tx.
	body     []byte
	from, to int
}

// journals encodes the events and trace of tx, one journal per run. It is done
// before the writer has the Tx, on as many processors as there are committers.
func (c *codec) journals(tx *store.Tx) ([]journal, error) {
	if len(tx.Events)+len(tx.Trace) == 0 {
		return nil, nil
	}
	js := make([]journal, 0, 1)
	add := func(run string) error {
		if run == "" {
			return errors.New("an event or trace without a run")
		}
		for i := range js {
			if js[i].run == run {
				return nil
			}
		}
		js = append(js, journal{run: run})
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
func (c *codec) encode(j *journal, tx *store.Tx) error {
	p := c.pool.Get().(*packer)
	defer c.keep(p)
	var err error
	if p.plain, err = j.append(p.plain[:0], tx); err != nil {
		return err
	}
	dict := append(j.dictionary(tx), []byte(j.run))
	p.packed = c.pack(p.packed[:0], p.plain, dict...)
	j.body = bytes.Clone(p.packed)
	return nil
}

// append writes: the number of events; each as its distance in number and time
// from the one before, step, type, data; the number of trace rows; each as its
// distance in time, kind, body.
func (j *journal) append(b []byte, tx *store.Tx) ([]byte, error) {
	events, trace := 0, 0
	for _, e := range tx.Events {
		if e.RunID == j.run {
			events++
		}
	}
	for _, t := range tx.Trace {
		if t.RunID == j.run {
			trace++
		}
	}
	j.first = 0
	b = binary.AppendUvarint(b, uint64(events))
	var seq, time int64
	for _, e := range tx.Events {
		if e.RunID != j.run {
			continue
		}
		if e.Seq <= seq {
			return b, fmt.Errorf("event %d of run %s does not rise above %d", e.Seq, e.RunID, seq)
		}
		if j.first == 0 {
			j.first = e.Seq
		}
		b = binary.AppendUvarint(b, uint64(e.Seq-seq))
		b = binary.AppendVarint(b, e.Time-time)
		b = binary.AppendVarint(b, int64(e.Step))
		b = appendBytes(b, e.Type)
		b = appendBytes(b, e.Data)
		seq, time = e.Seq, e.Time
	}
	j.last = seq
	b = binary.AppendUvarint(b, uint64(trace))
	for _, t := range tx.Trace {
		if t.RunID != j.run {
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
func (j *journal) dictionary(tx *store.Tx) [][]byte {
	es := tx.Entries
	for j.from < len(es) && es[j.from].RunID != j.run {
		j.from++
	}
	var dict [][]byte
	n := 0
	for j.to = j.from; j.to < len(es); j.to++ {
		e := es[j.to]
		if n += len(e.Body); e.RunID != j.run || e.SessionID != es[j.from].SessionID || n > maxDict {
			break
		}
		dict = append(dict, e.Body)
	}
	return dict
}

// journalKey is the last dictionary of a journal: the id of its run, which the keys
// of effects repeat. Form 1 had none.
func journalKey(body []byte, run string) []byte {
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

// decode reads what encode wrote. Either function may be nil; event returns
// false to stop.
func decode(run string, b []byte, event func(*store.Event) bool, trace func(*store.Trace)) error {
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
		r.b, r.err = nil, errPacked
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.b, r.err = nil, errPacked
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.b, r.err = nil, errPacked
		return nil
	}
	if n == 0 {
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}
