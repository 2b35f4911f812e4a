package engine

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"
)

const idDigits = "0123456789abcdefghjkmnpqrstvwxyz"

// newIDs returns a source of 26-character ids: 10 characters of time in
// milliseconds, 16 random ones. Ids of one source rise strictly.
func newIDs(now func() time.Time) func() string {
	var mu sync.Mutex
	var last uint64
	return func() string {
		mu.Lock()
		ms := max(uint64(now().UnixMilli()), last)
		var r [10]byte
		rand.Read(r[:])
		last = ms + 1 // the next id sorts after this one, even within a millisecond
		mu.Unlock()
		b := make([]byte, 0, 26)
		b = appendBase32(b, ms, 10)
		b = appendBase32(b, binary.BigEndian.Uint64(r[:8])>>24, 8)
		return string(appendBase32(b, uint64(binary.BigEndian.Uint32(r[5:9]))<<8|uint64(r[9]), 8))
	}
}

func appendBase32(b []byte, v uint64, n int) []byte {
	for i := n - 1; i >= 0; i-- {
		b = append(b, idDigits[(v>>(5*uint(i)))&31])
	}
	return b
}

// baseLength is the length of the part of an entry id that a run's entries share.
const baseLength = 13

// entryBase makes a run's base of entry ids from a new id, so that it sorts
// after leaf, the tip of the session.
func entryBase(id, leaf string) string {
	base := id[:baseLength]
	if len(leaf) < baseLength || base > leaf[:baseLength] {
		return base
	}
	// The clock went back, or two runs share a millisecond: count on.
	b := []byte(leaf[:baseLength])
	for i := len(b) - 1; i >= 0; i-- {
		d := digit(b[i]) + 1
		if d < 32 {
			b[i] = idDigits[d]
			break
		}
		b[i] = idDigits[0]
	}
	return string(b)
}

func digit(c byte) int {
	for i := range len(idDigits) {
		if idDigits[i] == c {
			return i
		}
	}
	return 0
}
