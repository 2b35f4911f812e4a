package message

import (
	"encoding/json"
	"strings"
)

// Decoder reads messages as they are stored, in a fraction of the time that
// [json.Unmarshal] takes: a long conversation is thousands of them, and is read as a
// whole when a session goes on in a process that does not have it. It keeps names that
// come again and again (of models, tools) once, and puts what it reads into few pieces of
// memory, each of which stays as long as a message in it is used: what is decoded together
// should be kept together. The zero value is ready; it is for one goroutine, and is not
// copied.
type Decoder struct {
	names [8]string
	next  int
	text  []byte // of the last string with escapes

	decoded int // how many messages were
	texts   strings.Builder
	content []Block // of the message that is being decoded
	blocks  []Block
	usages  []Usage
}

const (
	// single is how many messages are decoded before memory is taken for more than one.
	single = 8
	// For how many at a time it is taken then.
	textsBytes = 16 << 10
	blocksMany = 32
	usagesMany = 16
)

// string copies a text.
func (d *Decoder) string(s []byte) string {
	if d.decoded < single || len(s) > textsBytes/8 {
		return string(s)
	}
	if len(s) > d.texts.Cap()-d.texts.Len() {
		d.texts.Reset() // what it gave keeps its memory
		d.texts.Grow(textsBytes)
	}
	from := d.texts.Len()
	d.texts.Write(s)
	return d.texts.String()[from:]
}

// keep copies the content of a message, and forgets it.
func (d *Decoder) keep(content []Block) (out []Block) {
	n := len(content)
	if d.decoded < single || n > blocksMany/4 {
		out = make([]Block, n)
	} else {
		if n > len(d.blocks) {
			d.blocks = make([]Block, blocksMany)
		}
		out, d.blocks = d.blocks[:n:n], d.blocks[n:]
	}
	copy(out, content)
	clear(content)
	if d.content = content[:0]; cap(content) > blocksMany {
		d.content = nil
	}
	return out
}

func (d *Decoder) usage() *Usage {
	if d.decoded < single {
		return &Usage{}
	}
	if len(d.usages) == 0 {
		d.usages = make([]Usage, usagesMany)
	}
	u := &d.usages[0]
	d.usages = d.usages[1:]
	return u
}

// keptText bounds what is kept of a buffer that was grown for a long text.
const keptText = 64 << 10

// Decode reads a message. What it gives, and the error, are those of [json.Unmarshal]
// into a Message without content: what it does not know it leaves to that. Nothing of
// the message shares memory with data.
func (d *Decoder) Decode(data []byte, m *Message) error {
	*m = Message{}
	r := reader{b: data, d: d}
	if r.message(m) && r.end() {
		d.decoded++
		return nil
	}
	d.content = nil
	*m = Message{}
	return json.Unmarshal(data, m)
}

// Decode reads one message, as [Decoder.Decode] does.
func Decode(data []byte, m *Message) error {
	var d Decoder
	return d.Decode(data, m)
}

// reader goes over the JSON of a message. Its methods give false for what is not
// as AppendJSON or json.Marshal write it: broken, of another form, or with members that
// are unknown, twice there, or null. Numbers, names and nesting are taken as far as they
// are plain.
type reader struct {
	b []byte
	i int
	d *Decoder
}

func (r *reader) space() {
	for r.i < len(r.b) {
		switch r.b[r.i] {
		case ' ', '\t', '\n', '\r':
			r.i++
		default:
			return
		}
	}
}

// is takes a byte, with the space ahead of it.
func (r *reader) is(c byte) bool {
	if r.i < len(r.b) && r.b[r.i] == c {
		r.i++
		return true
	}
	r.space()
	if r.i < len(r.b) && r.b[r.i] == c {
		r.i++
		return true
	}
	return false
}

// end is whether nothing follows.
func (r *reader) end() bool {
	r.space()
	return r.i == len(r.b)
}

// word takes a literal.
func (r *reader) word(w string) bool {
	r.space()
	if len(r.b)-r.i < len(w) || string(r.b[r.i:r.i+len(w)]) != w {
		return false
	}
	r.i += len(w)
	return true
}

// members calls each with every key of an object; it reads the value, and gives the
// key's bit, or 0 if all is left to encoding/json.
func (r *reader) members(each func(key []byte) (bit uint32)) bool {
	if !r.is('{') {
		return false
	}
	if r.is('}') {
		return true
	}
	for seen := uint32(0); ; {
		key, ok := r.key()
		if !ok || !r.is(':') {
			return false
		}
		r.space()
		bit := each(key)
		if bit == 0 || seen&bit != 0 {
			return false
		}
		seen |= bit
		if r.is('}') {
			return true
		}
		if !r.is(',') {
			return false
		}
	}
}

func (r *reader) message(m *Message) bool {
	return r.members(func(key []byte) uint32 {
		ok, bit := false, uint32(0)
		switch string(key) {
		case "role":
			bit, ok = 1<<0, r.name((*string)(&m.Role))
		case "content":
			bit, ok = 1<<1, r.content(&m.Content)
		case "timestamp":
			bit, ok = 1<<2, r.int(&m.Timestamp)
		case "api":
			bit, ok = 1<<3, r.name(&m.API)
		case "provider":
			bit, ok = 1<<4, r.name(&m.Provider)
		case "model":
			bit, ok = 1<<5, r.name(&m.Model)
		case "responseId":
			bit, ok = 1<<6, r.string(&m.ResponseID)
		case "stopReason":
			bit, ok = 1<<7, r.name((*string)(&m.StopReason))
		case "errorMessage":
			bit, ok = 1<<8, r.string(&m.ErrorMessage)
		case "usage":
			m.Usage = r.d.usage()
			bit, ok = 1<<9, r.usage(m.Usage)
		case "toolCallId":
			bit, ok = 1<<10, r.string(&m.ToolCallID)
		case "toolName":
			bit, ok = 1<<11, r.name(&m.ToolName)
		case "details":
			bit, ok = 1<<12, r.raw(&m.Details)
		case "isError":
			bit, ok = 1<<13, r.bool(&m.IsError)
		}
		if !ok {
			return 0
		}
		return bit
	})
}

func (r *reader) content(to *[]Block) bool {
	if r.i < len(r.b) && r.b[r.i] == 'n' {
		return r.word("null")
	}
	if !r.is('[') {
		return false
	}
	if r.is(']') {
		*to = []Block{}
		return true
	}
	out := r.d.content[:0]
	for {
		out = append(out, Block{})
		if !r.block(&out[len(out)-1]) {
			return false
		}
		if r.is(']') {
			*to = r.d.keep(out)
			return true
		}
		if !r.is(',') {
			return false
		}
	}
}

func (r *reader) block(c *Block) bool {
	return r.members(func(key []byte) uint32 {
		ok, bit := false, uint32(0)
		switch string(key) {
		case "type":
			bit, ok = 1<<0, r.name((*string)(&c.Type))
		case "text":
			bit, ok = 1<<1, r.string(&c.Text)
		case "context":
			bit, ok = 1<<2, r.name(&c.Context)
		case "signature":
			bit, ok = 1<<3, r.string(&c.Signature)
		case "redacted":
			bit, ok = 1<<4, r.bool(&c.Redacted)
		case "data":
			bit, ok = 1<<5, r.string(&c.Data)
		case "mimeType":
			bit, ok = 1<<6, r.name(&c.MimeType)
		case "id":
			bit, ok = 1<<7, r.string(&c.ID)
		case "name":
			bit, ok = 1<<8, r.name(&c.Name)
		case "arguments":
			bit, ok = 1<<9, r.raw(&c.Arguments)
		case "via":
			bit, ok = 1<<10, r.name(&c.Via)
		}
		if !ok {
			return 0
		}
		return bit
	})
}

func (r *reader) usage(u *Usage) bool {
	return r.members(func(key []byte) uint32 {
		ok, bit := false, uint32(0)
		switch string(key) {
		case "input":
			bit, ok = 1<<0, r.int(&u.Input)
		case "output":
			bit, ok = 1<<1, r.int(&u.Output)
		case "cacheRead":
			bit, ok = 1<<2, r.int(&u.CacheRead)
		case "cacheWrite":
			bit, ok = 1<<3, r.int(&u.CacheWrite)
		case "reasoning":
			bit, ok = 1<<4, r.int(&u.Reasoning)
		case "totalTokens":
			bit, ok = 1<<5, r.int(&u.TotalTokens)
		case "estimated":
			bit, ok = 1<<6, r.bool(&u.Estimated)
		case "tier":
			bit, ok = 1<<7, r.name(&u.Tier)
		case "cost":
			bit, ok = 1<<8, r.cost(&u.Cost)
		}
		if !ok {
			return 0
		}
		return bit
	})
}

func (r *reader) cost(c *Cost) bool {
	return r.members(func(key []byte) uint32 {
		ok, bit := false, uint32(0)
		switch string(key) {
		case "input":
			bit, ok = 1<<0, r.money(&c.Input)
		case "output":
			bit, ok = 1<<1, r.money(&c.Output)
		case "cacheRead":
			bit, ok = 1<<2, r.money(&c.CacheRead)
		case "cacheWrite":
			bit, ok = 1<<3, r.money(&c.CacheWrite)
		case "total":
			bit, ok = 1<<4, r.money(&c.Total)
		case "estimated":
			bit, ok = 1<<5, r.bool(&c.Estimated)
		}
		if !ok {
			return 0
		}
		return bit
	})
}

func (r *reader) bool(to *bool) bool {
	*to = r.i < len(r.b) && r.b[r.i] == 't'
	if *to {
		return r.word("true")
	}
	return r.word("false")
}

// digits takes a whole number of at most 18 digits that is not negative.
func (r *reader) digits() (n int64, ok bool) {
	from := r.i
	for r.i < len(r.b) && r.b[r.i]-'0' <= 9 {
		n = n*10 + int64(r.b[r.i]-'0')
		r.i++
	}
	size := r.i - from
	return n, size > 0 && size <= 18 && (size == 1 || r.b[from] != '0')
}

// ends is whether a number ends here.
func (r *reader) ends() bool {
	if r.i == len(r.b) {
		return true
	}
	switch r.b[r.i] {
	case ',', '}', ']', ' ', '\t', '\n', '\r':
		return true
	}
	return false
}

func (r *reader) int(to *int64) (ok bool) {
	*to, ok = r.digits()
	return ok && r.ends()
}

func (r *reader) money(to *Money) bool {
	n, ok := r.digits()
	if !ok || n > 9_000_000_000 {
		return false
	}
	m := Money(n) * Dollar
	if r.i < len(r.b) && r.b[r.i] == '.' {
		r.i++
		unit := Dollar
		from := r.i
		for r.i < len(r.b) && r.b[r.i]-'0' <= 9 {
			if unit /= 10; unit == 0 {
				return false
			}
			m += Money(r.b[r.i]-'0') * unit
			r.i++
		}
		if r.i == from {
			return false
		}
	}
	*to = m
	return r.ends()
}
