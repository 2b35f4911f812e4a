package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// DefaultMaxEvent is the largest event that is read when Options say nothing.
const DefaultMaxEvent = 16 << 20

const firstBuffer = 8 << 10

// Options tune a Reader. The zero value of a field means its default.
type Options struct {
	// MaxEvent is the largest event in bytes, field names included.
	// Default DefaultMaxEvent.
	MaxEvent int
	// Buffer is what the Reader begins to read into. Default one of its own.
	Buffer []byte
}

// Event is one event. The slices are only valid until the next call of Next.
type Event struct {
	// Name is the event field; empty means "message".
	Name []byte
	// Data is the data, several lines joined by a newline.
	Data []byte
}

// TooLargeError says that an event exceeded the limit. The stream cannot be
// read on.
type TooLargeError struct{ Limit int }

// Error names the limit.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("an event of the stream is larger than the limit of %d bytes", e.Limit)
}

// Reader reads events from a stream. It is not safe for concurrent use.
type Reader struct {
	src io.Reader
	max int

	buf        []byte
	start, end int // the unread bytes; start is where the current event begins
	pos        int // relative to start: the first byte not yet parsed
	scanned    int // relative to start+pos: bytes known to hold no line end

	name, data span
	multi      bool // data has several lines and lives in joined
	joined     []byte
	skipLF     bool // the last line ended with CR; an LF belongs to it
	begun      bool // the byte order mark has been dealt with
	err        error

	lastID []byte
	nextID []byte // of the current event; takes effect with its blank line
	newID  bool
	retry  time.Duration
}

// span is a part of the current event, relative to Reader.start.
type span struct {
	from, to int
	set      bool
}

// NewReader returns a Reader of r. opts may be nil.
func NewReader(r io.Reader, opts *Options) *Reader {
	out := &Reader{src: r, max: DefaultMaxEvent}
	if opts != nil {
		out.buf = opts.Buffer[:cap(opts.Buffer)]
		if opts.MaxEvent > 0 {
			out.max = opts.MaxEvent
		}
	}
	return out
}

// Buffer gives the buffer away, for the next Reader. The Reader and its events
// must not be used any more.
func (r *Reader) Buffer() []byte {
	b := r.buf
	r.buf = nil
	return b
}

// LastID is the id of the last whole event that set one; it stays in force
// until an event sets another. It is what Last-Event-ID should say.
func (r *Reader) LastID() string { return string(r.lastID) }

// Retry is the reconnection time the server last asked for; 0 if it did not.
func (r *Reader) Retry() time.Duration { return r.retry }

// Next returns the next event. At the end of the stream it returns io.EOF; an
// event that the end cut off is dropped. Any other error is the source's, or a
// *TooLargeError, and is final.
func (r *Reader) Next() (Event, error) {
	r.drop()
	for {
		from, to, ok := r.line()
		if !ok {
			if r.err != nil {
				return Event{}, r.err
			}
			r.fill()
			continue
		}
		if from == to { // a blank line ends the event
			if r.newID {
				r.lastID, r.nextID, r.newID = r.nextID, r.lastID, false
			}
			if r.data.set {
				return r.event(), nil
			}
			r.drop()
			continue
		}
		r.field(from, to)
	}
}

// drop forgets the event before pos.
func (r *Reader) drop() {
	r.start += r.pos
	r.pos = 0
	r.name, r.data, r.multi = span{}, span{}, false
	r.joined = r.joined[:0]
}

func (r *Reader) event() Event {
	var e Event
	if r.name.set {
		e.Name = r.buf[r.start+r.name.from : r.start+r.name.to]
	}
	if r.multi {
		e.Data = r.joined
	} else {
		e.Data = r.buf[r.start+r.data.from : r.start+r.data.to]
	}
	return e
}

// line finds the next whole line, relative to start and without its end, and
// moves pos past it.
func (r *Reader) line() (from, to int, ok bool) {
	if !r.begun && !r.mark() {
		return 0, 0, false
	}
	rest := r.buf[r.start+r.pos : r.end]
	if r.skipLF && len(rest) > 0 {
		if rest[0] == '\n' {
			r.pos++
			rest = rest[1:]
		}
		r.skipLF = false
	}
	fresh := rest[r.scanned:]
	lf := bytes.IndexByte(fresh, '\n')
	if lf >= 0 {
		fresh = fresh[:lf]
	}
	if cr := bytes.IndexByte(fresh, '\r'); cr >= 0 {
		from, to = r.pos, r.pos+r.scanned+cr
		r.pos, r.scanned = to+1, 0
		// The LF of a CRLF may not have arrived yet; waiting for it would
		// hold back an event that is complete.
		r.skipLF = true
		return from, to, true
	}
	if lf < 0 {
		r.scanned = len(rest)
		return 0, 0, false
	}
	from, to = r.pos, r.pos+r.scanned+lf
	r.pos, r.scanned = to+1, 0
	return from, to, true
}

// mark skips a byte order mark and reports whether enough has been read to know.
func (r *Reader) mark() bool {
	const bom = "\xef\xbb\xbf"
	have := r.buf[r.start:r.end]
	if len(have) < len(bom) && r.err == nil && bom[:len(have)] == string(have) {
		return false
	}
	r.begun = true
	if len(have) >= len(bom) && string(have[:len(bom)]) == bom {
		r.start += len(bom)
	}
	return true
}

func (r *Reader) field(from, to int) {
	line := r.buf[r.start+from : r.start+to]
	colon := bytes.IndexByte(line, ':')
	name, value := line, line[len(line):]
	at := to
	if colon >= 0 {
		name, value = line[:colon], line[colon+1:]
		at = from + colon + 1
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
			at++
		}
	}
	switch string(name) {
	case "data":
		if !r.data.set {
			r.data = span{at, to, true}
			return
		}
		if !r.multi {
			r.multi = true
			r.joined = append(r.joined[:0], r.buf[r.start+r.data.from:r.start+r.data.to]...)
		}
		r.joined = append(append(r.joined, '\n'), value...)
	case "event":
		r.name = span{at, to, true}
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			r.nextID, r.newID = append(r.nextID[:0], value...), true
		}
	case "retry":
		if ms, ok := digits(value); ok {
			r.retry = time.Duration(ms) * time.Millisecond
		}
	}
	if !r.data.set && !r.name.set {
		// Nothing of this event has to be kept, so that a long run of
		// comments does not count as one large event.
		r.start += r.pos
		r.pos = 0
	}
}

// digits reads a number of milliseconds below about eleven days; a larger one
// cannot be meant.
func digits(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 9 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// fill reads more. It sets err at the end of the source and when the event is
// too large.
func (r *Reader) fill() {
	if r.end-r.start >= r.max {
		r.err = &TooLargeError{Limit: r.max}
		return
	}
	if r.end == len(r.buf) {
		switch {
		case r.start > 0:
			copy(r.buf, r.buf[r.start:r.end])
		case len(r.buf) == 0:
			r.buf = make([]byte, firstBuffer)
		default:
			r.buf = append(r.buf, make([]byte, len(r.buf))...)
		}
		r.end -= r.start
		r.start = 0
	}
	// A reader that returns nothing without an error is asked a few times
	// before it counts as broken, as bufio does.
	for range 100 {
		n, err := r.src.Read(r.buf[r.end:])
		if n < 0 || n > len(r.buf)-r.end {
			r.err = errors.New("sse: the source returned an impossible count")
			return
		}
		r.end += n
		if err != nil {
			r.err = err
			return
		}
		if n > 0 {
			return
		}
	}
	r.err = io.ErrNoProgress
}
