package session

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"agentd/internal/store"
	"agentd/message"
)

// Ahead reads the messages of entries while their store still reads more of them (see
// [store.AheadReader]): a long session that nobody holds in memory is there sooner. What
// its methods give is what [Items] and [Context] give. It is for the paths of one reading;
// the zero value is ready, and nil has read nothing ahead.
type Ahead struct {
	mu       sync.Mutex
	parts    []readPart
	decoders []*message.Decoder // that nobody uses
	from     string             // what is older is not needed, most likely
	bytes    int64
}

// decoder takes one that nobody uses.
func (a *Ahead) decoder() *message.Decoder {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := len(a.decoders)
	if n == 0 {
		return &message.Decoder{}
	}
	d := a.decoders[n-1]
	a.decoders = a.decoders[:n-1]
	return d
}

// readPart is entries that were read together, in the order of their ids, and the items of
// messages among them.
type readPart struct {
	entries []*store.Entry
	items   []Item
	of      []place
}

// place is where the item of an entry is, and of how many bytes it was read. It has none
// if that is 0.
type place struct{ item, bytes int }

// Read takes in entries of a session, the newest first, each of them once. It may be called
// from several goroutines. Of an entry that is read the body is left out; runs need not be
// known yet. What a compaction that was read before does not keep is left for the path.
func (a *Ahead) Read(entries []*store.Entry, body func(*store.Entry) ([]byte, error)) {
	p := readPart{entries: slices.Clone(entries), items: make([]Item, 0, len(entries)), of: make([]place, len(entries))}
	slices.Reverse(p.entries)
	d := a.decoder()
	from := a.keeps("")
	for i, e := range slices.Backward(p.entries) {
		if e.Kind == KindCompaction {
			from = a.keeps(a.first(e, body))
		}
		if e.Kind != KindMessage || e.ID < from {
			continue // others are few, and more is done with them
		}
		raw, err := body(e)
		if err != nil || len(raw) == 0 {
			continue
		}
		n := len(p.items)
		p.items = p.items[:n+1]
		if ok, _ := p.items[n].message(d, e, raw); !ok {
			p.items = p.items[:n] // it is reported when the path is read
			continue
		}
		p.of[i] = place{n, len(raw)}
		e.Body = nil
	}
	a.mu.Lock()
	a.parts, a.decoders = append(a.parts, p), append(a.decoders, d)
	a.mu.Unlock()
}

// first gives the first entry that a compaction keeps, itself if it keeps none, "" if
// nobody can tell.
func (a *Ahead) first(e *store.Entry, body func(*store.Entry) ([]byte, error)) string {
	raw, err := body(e)
	if err != nil {
		return ""
	}
	c, err := decodeCompaction(raw)
	switch {
	case err != nil:
		return ""
	case c.FirstKept == "":
		return e.ID
	}
	return c.FirstKept
}

// keeps notes that what is older than an entry is not needed where a compaction counts,
// and gives the newest such entry.
func (a *Ahead) keeps(from string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.from = max(a.from, from)
	return a.from
}

func compareIDs(e *store.Entry, id string) int { return strings.Compare(e.ID, id) }

// cursor finds what was read ahead. It is fast for the entries of a path that are in the
// order of their ids, as those of nearly every session are.
type cursor struct {
	parts   []readPart
	part, i int
}

func (a *Ahead) cursor() (c cursor) {
	if a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		slices.SortFunc(a.parts, func(x, y readPart) int { return compareIDs(x.entries[0], y.entries[0].ID) })
		c.parts = a.parts
	}
	return c
}

// find gives the item of an entry and of how many bytes it was read, nil if it was not
// read ahead.
func (c *cursor) find(e *store.Entry) (*Item, int) {
	if c.part < len(c.parts) && c.i == len(c.parts[c.part].entries) {
		c.part, c.i = c.part+1, 0
	}
	if c.part >= len(c.parts) || c.parts[c.part].entries[c.i] != e {
		part, exact := slices.BinarySearchFunc(c.parts, e.ID, func(p readPart, id string) int { return compareIDs(p.entries[0], id) })
		if !exact {
			part--
		}
		if part < 0 {
			return nil, 0
		}
		i, exact := slices.BinarySearchFunc(c.parts[part].entries, e.ID, compareIDs)
		if !exact || c.parts[part].entries[i] != e {
			return nil, 0
		}
		c.part, c.i = part, i
	}
	p, of := &c.parts[c.part], c.parts[c.part].of[c.i]
	c.i++
	if of.bytes == 0 {
		return nil, 0
	}
	return &p.items[of.item], of.bytes
}

// Items is the [Items] of a path of which entries may have been read ahead.
func (a *Ahead) Items(path []*store.Entry) (items []Item, problems []Problem) {
	c := a.cursor()
	if len(c.parts) == 0 {
		return Items(path)
	}
	items = make([]Item, len(path))
	n := 0
	var d message.Decoder
	for _, e := range path {
		if it, bytes := c.find(e); it != nil {
			items[n] = *it
			items[n].Run = e.RunID
			a.bytes += int64(bytes)
			n++
			continue
		}
		switch ok, what := items[n].read(&d, e); {
		case ok:
			n++
		case what != "":
			problems = append(problems, Problem{e.ID, what})
		}
	}
	clear(items[n:])
	return items[:n], problems
}

// role gives the role of an entry's message, "" if it is none.
func (c *cursor) role(e *store.Entry) message.Role {
	if it, _ := c.find(e); it != nil {
		return it.Role
	}
	var m struct{ Role message.Role }
	if e.Kind != KindMessage || json.Unmarshal(e.Body, &m) != nil {
		return ""
	}
	return m.Role
}

// Bytes is of how many bytes the items were read that were given so far: entries that
// were read ahead have no bodies any more.
func (a *Ahead) Bytes() int64 { return a.bytes }
