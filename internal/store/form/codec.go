package form

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"sync"
)

// Codec packs payloads. It is safe for concurrent use; make it with [NewCodec].
// Payloads are short (some hundred bytes), full of the same
// JSON keys, and events repeat text that the entries of the same Tx have
// already. So what pays is not entropy coding but a dictionary: a fixed one of
// usual keys and, for the journal, the entries. The format is that of LZ4
// blocks with varints for long lengths: literals, then a copy from the 64 KiB
// before, and so on.
//
// Measured on the journals of the benchmarks (1,073 bytes on average): 163
// bytes in 3 µs. compress/flate makes 458 to 584 bytes in 25 to 55 µs (levels 1,
// 2 and 6, with the fixed dictionary; another dictionary per Tx would need a
// new writer, of more than half a megabyte, each time).
//
// A packed value is: one byte of form, the length of the content as a uvarint,
// the data.
type Codec struct {
	// fixed is where the hash table starts: the positions in dictionary2.
	fixed table
	pool  sync.Pool // of *packer
}

// Forms of packed values. A number is never used again.
const (
	formPlain = 0 // the content itself
	formLZ1   = 1 // with dictionary1; read, no longer written
	formLZ2   = 2 // with dictionary2
)

const (
	hashBits   = 12
	minMatch   = 4
	maxDist    = 1<<16 - 1
	tooSmall   = 24       // not worth the try
	maxDict    = 32 << 10 // of entries; more costs more than it saves
	maxContent = 64 << 20 // longer ones are stored plain
)

// table maps the hash of four bytes to a position in the window plus one.
type table [1 << hashBits]int32

type packer struct {
	t      table
	window []byte
	// plain and packed are those of the last journal, for the next.
	plain, packed []byte
}

// ErrDamaged is the error of a value that can not be unpacked or decoded.
var ErrDamaged = errors.New("a packed value is damaged")

// NewCodec makes a codec.
func NewCodec() *Codec {
	c := &Codec{}
	index(&c.fixed, []byte(dictionary2), 0, len(dictionary2), 1)
	c.pool.New = func() any { return &packer{} }
	return c
}

func hash4(v uint32) uint32 { return v * 2654435761 >> (32 - hashBits) }

func index(t *table, w []byte, from, to, step int) {
	for i := from; i+minMatch <= to; i += step {
		t[hash4(binary.LittleEndian.Uint32(w[i:]))] = int32(i + 1)
	}
}

// Pack appends the packed form of src to dst. The same dict is needed to
// unpack it.
func (c *Codec) Pack(dst, src []byte, dict ...[]byte) []byte {
	if len(src) >= tooSmall && len(src) <= maxContent {
		p := c.pool.Get().(*packer)
		mark := len(dst)
		dst = append(dst, formLZ2)
		dst = binary.AppendUvarint(dst, uint64(len(src)))
		dst = p.compress(dst, src, &c.fixed, dict)
		c.keep(p)
		if len(dst)-mark < len(src) {
			return dst
		}
		dst = dst[:mark]
	}
	dst = append(dst, formPlain)
	dst = binary.AppendUvarint(dst, uint64(len(src)))
	return append(dst, src...)
}

// PackBody is the stored form of an entry's body: packed, or as it is where that is
// not shorter. JSON is told from packed values by its first byte, which is no form.
func (c *Codec) PackBody(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	p := c.pool.Get().(*packer)
	defer c.keep(p)
	p.packed = c.Pack(p.packed[:0], b)
	if len(p.packed) >= len(b) && b[0] >= ' ' {
		return b
	}
	return bytes.Clone(p.packed)
}

// UnpackBody gives what PackBody was given. What never was packed comes back as it is.
func (c *Codec) UnpackBody(v []byte) ([]byte, error) {
	if len(v) == 0 || v[0] >= ' ' {
		return v, nil
	}
	return c.Unpack(v)
}

// keep returns p to the pool unless it has become large.
func (c *Codec) keep(p *packer) {
	if cap(p.window)+cap(p.plain)+cap(p.packed) <= 512<<10 {
		c.pool.Put(p)
	}
}

func (p *packer) compress(dst, src []byte, fixed *table, dict [][]byte) []byte {
	p.t = *fixed
	w := append(p.window[:0], dictionary2...)
	for _, d := range dict {
		w = append(w, d...)
	}
	base := len(w)
	w = append(w, src...)
	p.window = w
	index(&p.t, w, max(len(dictionary2)-minMatch+1, 0), base, 1+(base-len(dictionary2))>>13)

	literals := base // the first byte not yet written
	s := base
	for s+minMatch <= len(w) {
		v := binary.LittleEndian.Uint32(w[s:])
		h := hash4(v)
		m := int(p.t[h]) - 1
		p.t[h] = int32(s + 1)
		if m < 0 || s-m > maxDist || binary.LittleEndian.Uint32(w[m:]) != v {
			s += 1 + (s-literals)>>6 // faster through what does not repeat
			continue
		}
		for s > literals && m > 0 && w[s-1] == w[m-1] && s-m <= maxDist {
			s, m = s-1, m-1
		}
		n := minMatch + same(w[m+minMatch:], w[s+minMatch:])
		dst = appendCopy(dst, w[literals:s], s-m, n)
		s += n
		literals = s
		if s+2 <= len(w) {
			index(&p.t, w, s-2, s+2, 1)
		}
	}
	return appendToken(dst, w[literals:], 0)
}

// same counts the bytes that a and b start with in common.
func same(a, b []byte) int {
	n := 0
	for len(a) >= n+8 && len(b) >= n+8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)>>3
		}
		n += 8
	}
	for len(a) > n && len(b) > n && a[n] == b[n] {
		n++
	}
	return n
}

// appendToken writes literals and the length of the copy that follows them,
// which is 0 for the last. High four bits: literals; low four bits: the copy,
// less 3. 15 means that the rest follows as a uvarint.
func appendToken(dst, lit []byte, n int) []byte {
	c := 0
	if n > 0 {
		c = n - minMatch + 1
	}
	dst = append(dst, byte(min(len(lit), 15)<<4|min(c, 15)))
	if len(lit) >= 15 {
		dst = binary.AppendUvarint(dst, uint64(len(lit)-15))
	}
	if c >= 15 {
		dst = binary.AppendUvarint(dst, uint64(c-15))
	}
	return append(dst, lit...)
}

func appendCopy(dst, lit []byte, dist, n int) []byte {
	dst = appendToken(dst, lit, n)
	return binary.LittleEndian.AppendUint16(dst, uint16(dist))
}

// Unpack gives the content of a packed value, or ErrDamaged. Whatever the value
// is, it makes at most maxContent bytes of it.
func (c *Codec) Unpack(v []byte, dict ...[]byte) ([]byte, error) {
	form, size, data, err := opened(v)
	switch {
	case err != nil:
		return nil, err
	case form == formPlain:
		return data, nil
	case len(dict) == 0:
		return expandFixed(nil, data, size, fixed(form))
	}
	p := c.pool.Get().(*packer)
	b, err := p.expand(data, size, fixed(form), dict)
	c.keep(p)
	return b, err
}

func (p *packer) expand(v []byte, size int, fixed string, dict [][]byte) ([]byte, error) {
	w := append(p.window[:0], fixed...)
	for _, d := range dict {
		w = append(w, d...)
	}
	at := len(w)
	end := at + size
	// A damaged value may claim to be long: memory is taken as it comes.
	room := min(size, 64*len(v)+1024)
	w = slices.Grow(w, room)[:at+room]
	p.window = w
	base := at
	for {
		if len(v) == 0 {
			return nil, ErrDamaged
		}
		token := v[0]
		v = v[1:]
		lit, n := int(token>>4), int(token&15)
		if lit == 15 || n == 15 {
			var ok1, ok2 bool
			lit, ok1 = length(&v, lit, end)
			if n, ok2 = length(&v, n, end); !ok1 || !ok2 {
				return nil, ErrDamaged
			}
		}
		if lit > len(v) || lit > end-at {
			return nil, ErrDamaged
		}
		if more := at + lit + n + minMatch - len(w); more > 0 && len(w) < end {
			w = slices.Grow(w, more)
			w = w[:min(cap(w), end)]
			p.window = w
		}
		at += copy(w[at:], v[:lit])
		v = v[lit:]
		if n == 0 {
			break
		}
		n += minMatch - 1
		if len(v) < 2 || n > end-at {
			return nil, ErrDamaged
		}
		dist := int(binary.LittleEndian.Uint16(v))
		v = v[2:]
		if dist == 0 || dist > at {
			return nil, ErrDamaged
		}
		for n > 0 { // the copy may overlap what it writes
			k := copy(w[at:at+min(n, dist)], w[at-dist:])
			at, n = at+k, n-k
		}
	}
	if len(v) != 0 || at != end {
		return nil, ErrDamaged
	}
	return bytes.Clone(w[base:end]), nil
}

func length(v *[]byte, n, limit int) (int, bool) {
	if n < 15 {
		return n, true
	}
	x, k := binary.Uvarint(*v)
	if k <= 0 || x > uint64(limit) {
		return 0, false
	}
	*v = (*v)[k:]
	return n + int(x), true
}
