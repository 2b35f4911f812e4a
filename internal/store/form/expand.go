package form

import (
	"encoding/binary"
	"encoding/json"
	"runtime"
	"slices"
	"sync"

	"agentd/internal/store"
)

// block is how many bytes [Bodies] takes at a time for what it unpacks.
const block = 32 << 10

// Bodies unpacks the bodies of many entries: what it gives lies in few pieces of
// memory, each of which stays as long as one of the bodies in it is used. Make one for
// what is read together and used together. It is for one goroutine.
type Bodies struct{ free []byte }

// Unpack gives what [Codec.PackBody] was given, as [Codec.UnpackBody] does.
func (b *Bodies) Unpack(v []byte) ([]byte, error) {
	if len(v) == 0 || v[0] >= ' ' {
		return v, nil
	}
	form, size, data, err := opened(v)
	if err != nil || form == formPlain {
		return data, err
	}
	room := b.free
	if size > len(room) {
		if room = nil; size <= block/4 {
			b.free = make([]byte, block)
			room = b.free
		}
	}
	if len(room) > 0 {
		room = room[:size:size]
	}
	out, err := expandFixed(room[:0], data, size, fixed(form))
	if err == nil && len(room) > 0 {
		b.free = b.free[size:]
	}
	return out, err
}

// least is how many bodies are worth a goroutine of their own.
const least = 128

// UnpackBodies unpacks n bodies in place, those of a long session on all processors. at
// gives each; it is called from several goroutines. One that is damaged stays as it is:
// it is not JSON, and whoever reads it leaves that entry out and goes on.
func UnpackBodies(n int, at func(i int) *json.RawMessage) {
	part := func(from, to int) {
		var all Bodies
		for i := from; i < to; i++ {
			p := at(i)
			if b, err := all.Unpack(*p); err == nil {
				*p = b
			}
		}
	}
	k := max(1, min(n/least, runtime.GOMAXPROCS(0)))
	var wg sync.WaitGroup
	for i := range k - 1 {
		wg.Go(func() { part(i*n/k, (i+1)*n/k) })
	}
	part((k-1)*n/k, n)
	wg.Wait()
}

// Line gives the path to a leaf where entries, as they were read, are one line that ends
// with it: the usual session. Anything else is nil.
func Line(entries []*store.Entry, leaf string) []*store.Entry {
	for i := len(entries) - 1; i >= 0; i-- {
		if e := entries[i]; e.ID != leaf {
			return nil
		} else if leaf = e.Parent; leaf == "" && i > 0 {
			return nil
		}
	}
	if leaf != "" {
		return nil // it has a parent that is not there
	}
	return entries
}

// opened reads what is ahead of the data of a packed value. That of form plain is the
// content.
func opened(v []byte) (form byte, size int, data []byte, err error) {
	if len(v) < 2 {
		return 0, 0, nil, ErrDamaged
	}
	n, k := binary.Uvarint(v[1:])
	if k <= 0 {
		return 0, 0, nil, ErrDamaged
	}
	data = v[1+k:]
	switch v[0] {
	case formPlain:
		if uint64(len(data)) != n {
			return 0, 0, nil, ErrDamaged
		}
	case formLZ1, formLZ2:
		if n > maxContent {
			return 0, 0, nil, ErrDamaged
		}
	default:
		return 0, 0, nil, ErrDamaged
	}
	return v[0], int(n), data, nil
}

// fixed is the dictionary of a form.
func fixed(form byte) string {
	if form == formLZ1 {
		return dictionary1
	}
	return dictionary2
}

// expandFixed is expand with the fixed dictionary alone, which is not copied. It appends
// to out, which has no bytes yet; what it gives is out where that has the room.
func expandFixed(out, v []byte, size int, dict string) ([]byte, error) {
	if cap(out) < size {
		// A damaged value may claim to be long: memory is taken as it comes.
		out = make([]byte, 0, min(size, 64*len(v)+1024))
	}
	for {
		if len(v) == 0 {
			return nil, ErrDamaged
		}
		lit, n := int(v[0]>>4), int(v[0]&15)
		v = v[1:]
		if lit == 15 || n == 15 {
			var ok1, ok2 bool
			lit, ok1 = length(&v, lit, size)
			if n, ok2 = length(&v, n, size); !ok1 || !ok2 {
				return nil, ErrDamaged
			}
		}
		if lit > len(v) || lit > size-len(out) {
			return nil, ErrDamaged
		}
		out = append(out, v[:lit]...)
		v = v[lit:]
		if n == 0 {
			break
		}
		n += minMatch - 1
		if len(v) < 2 || n > size-len(out) {
			return nil, ErrDamaged
		}
		dist := int(binary.LittleEndian.Uint16(v))
		v = v[2:]
		if dist == 0 || dist > len(out)+len(dict) {
			return nil, ErrDamaged
		}
		if over := dist - len(out); over > 0 { // it begins in the dictionary
			k := min(n, over)
			from := len(dict) - over
			out = append(out, dict[from:from+k]...)
			n -= k
		}
		if n > cap(out)-len(out) {
			out = slices.Grow(out, n)
		}
		at := len(out)
		out = out[:at+n]
		for n > 0 { // the copy may overlap what it writes
			k := copy(out[at:at+min(n, dist)], out[at-dist:])
			at, n = at+k, n-k
		}
	}
	if len(v) != 0 || len(out) != size {
		return nil, ErrDamaged
	}
	return out, nil
}
