package form

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"agentd/internal/store"
)

// expands holds what unpacks without a copy of the dictionary to what copies it: the
// same content, the same errors, and nothing of one body in another.
func expands(t *testing.T, bodies *Bodies, v []byte) []byte {
	t.Helper()
	form, size, data, wantErr := opened(v)
	want := data
	if wantErr == nil && form != formPlain {
		want, wantErr = (&packer{}).expand(data, size, fixed(form), nil)
	}
	got, err := NewCodec().Unpack(v)
	if err != wantErr || !bytes.Equal(got, want) && wantErr == nil {
		t.Fatalf("%q (%v), and %q (%v) with the dictionary copied", got, err, want, wantErr)
	}
	if len(v) == 0 || v[0] >= ' ' {
		want, wantErr = v, nil // never packed
	}
	got, err = bodies.Unpack(v)
	if err != wantErr || !bytes.Equal(got, want) && wantErr == nil {
		t.Fatalf("%q (%v) among others, and %q (%v)", got, err, want, wantErr)
	}
	return got
}

func TestBodies(t *testing.T) {
	c := NewCodec()
	rnd := rand.New(rand.NewPCG(1, 1))
	var srcs, packed [][]byte
	for i := range 300 {
		src := []byte(`{"role":"toolResult","content":[{"type":"text","text":"` + strings.Repeat(words(uint64(i), rnd.IntN(200)), rnd.IntN(5)+1) + `"}],"timestamp":17`)
		if i%100 == 99 {
			src = bytes.Repeat(src, 200) // more than a piece of memory
		}
		srcs, packed = append(srcs, src), append(packed, c.PackBody(src))
	}
	var bodies Bodies
	var got [][]byte
	for i, p := range packed {
		got = append(got, expands(t, &bodies, p))
		if i%3 == 0 { // a damaged one takes nothing from those around it
			broken := append([]byte{}, p...)
			broken[rnd.IntN(len(broken))] ^= 1 << rnd.IntN(8)
			expands(t, &bodies, broken)
			expands(t, &bodies, p[:rnd.IntN(len(p))])
		}
	}
	for i := range got {
		if !bytes.Equal(got[i], srcs[i]) {
			t.Fatalf("body %d is another one", i)
		}
		got[i] = append(got[i], '#') // what is appended to one is not in the next
	}
	for i := range got {
		if !bytes.Equal(got[i][:len(srcs[i])], srcs[i]) {
			t.Fatalf("body %d was written to", i)
		}
	}
	if n := testing.AllocsPerRun(10, func() {
		var b Bodies
		for _, p := range packed[:50] {
			if _, err := b.Unpack(p); err != nil {
				t.Fatal(err)
			}
		}
	}); n > 20 {
		t.Errorf("%v allocations for 50 bodies", n)
	}
}

func FuzzBodies(f *testing.F) {
	c := NewCodec()
	for _, tx := range sample("s", "r") {
		for _, e := range tx.Entries {
			f.Add(c.PackBody(e.Body))
		}
		f.Add(c.Pack(nil, tx.Runs[0].State))
	}
	f.Add([]byte{formLZ2, 0xff, 0xff, 0xff, 0xff, 3, 0x1f, 'a', 0xff, 0xff, 0xff, 0x7f, 1, 0})
	f.Add([]byte("\x01b\x0f<\xb0\x00k2} of b\x00\x00"))
	f.Fuzz(func(t *testing.T, v []byte) {
		bodies := &Bodies{}
		expands(t, bodies, v)
		expands(t, bodies, v)
	})
}

// Only a whole line that ends with the leaf is taken as it was read.
func TestLine(t *testing.T) {
	line := []*store.Entry{{ID: "1"}, {ID: "2", Parent: "1"}, {ID: "3", Parent: "2"}}
	if got := Line(line, "3"); len(got) != 3 {
		t.Errorf("%v", got)
	}
	for name, c := range map[string]struct {
		entries []*store.Entry
		leaf    string
	}{"ahead of the end": {line, "2"}, "a gap": {line[1:], "3"}, "a branch": {[]*store.Entry{line[0], line[1], {ID: "3", Parent: "1"}}, "3"}, "two roots": {[]*store.Entry{{ID: "0"}, line[0]}, "1"},
		"a circle": {[]*store.Entry{{ID: "1", Parent: "2"}, line[1]}, "2"}, "another order": {[]*store.Entry{line[1], line[0], line[2]}, "3"}, "nothing": {nil, "3"}} {
		if got := Line(c.entries, c.leaf); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}
