package form

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"agentd/internal/store"
)

func TestPack(t *testing.T) {
	c := NewCodec()
	rnd := rand.New(rand.NewPCG(1, 1))
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	text := []byte(words(1, 30_000))
	for _, src := range [][]byte{nil, {0}, []byte("short"), []byte(strings.Repeat("a", 23)), []byte(strings.Repeat("a", 24)), bytes.Repeat([]byte{0}, 1<<20),
		noise, text, append(append([]byte{}, noise...), noise[:70_000]...), []byte(dictionary2), []byte(dictionary2[len(dictionary2)-30:])} {
		for _, dict := range [][][]byte{nil, {text[:1000], noise[:500]}, {text[:maxDict]}, {nil, nil}, {noise[:40_000], noise[:40_000]}} {
			p := c.Pack([]byte("before"), src, dict...)
			if !bytes.HasPrefix(p, []byte("before")) {
				t.Fatal("pack does not append")
			}
			p = p[6:]
			if len(p) > len(src)+6 {
				t.Errorf("%d bytes became %d", len(src), len(p))
			}
			got, err := c.Unpack(p, dict...)
			if err != nil || !bytes.Equal(got, src) {
				t.Fatalf("%d bytes, dictionary of %d: %d came back, %v", len(src), len(dict), len(got), err)
			}
		}
	}
	if n := len(c.Pack(nil, text[:2000], text[:1000], text[1000:2000])); n > 40 {
		t.Errorf("what the dictionary holds takes %d bytes", n)
	}
}

// TestDictionariesAreFixed holds the dictionaries: to change one makes what is
// stored unreadable.
func TestDictionariesAreFixed(t *testing.T) {
	for name, d := range map[string]struct {
		text string
		crc  uint32
	}{"dictionary1": {dictionary1, 0x1cc0fdc1}, "dictionary2": {dictionary2, 0xf1e9cab9}} {
		if got := crc32.ChecksumIEEE([]byte(d.text)); got != d.crc {
			t.Errorf("%s has CRC %#x and not %#x: add a new form instead of changing it", name, got, d.crc)
		}
	}
	c := NewCodec()
	p := c.Pack(nil, []byte("\"model\":\"\",\"stop_reason\":\"toolUse\",\"usage\":{\"input\":1,\"output\":1,\"totalTokens\":1,"))
	if len(p) > 16 || !bytes.HasPrefix(p, []byte{formLZ2}) {
		t.Errorf("%q", p)
	}
}

// What was packed in a form that is no longer written is read.
func TestOldForms(t *testing.T) {
	const want = `step_completed{"model":"","stop_reason":"toolUse","usage":{"input":1,"output":2} of {"an":"entry"}`
	got, err := NewCodec().Unpack([]byte("\x01b\x0f<\xb0\x00k2} of b\x00\x00"), []byte(`{"an":"entry"}`))
	if err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	if key := JournalKey([]byte{formLZ1}, "run"); key != nil {
		t.Errorf("journals of form 1 had no key; they get %q", key)
	}
}

func TestPackHuge(t *testing.T) {
	c := NewCodec()
	src := make([]byte, maxContent+1)
	p := c.Pack(nil, src)
	if got, err := c.Unpack(p); err != nil || p[0] != formPlain || !bytes.Equal(got, src) {
		t.Fatalf("form %d, %d bytes, %v", p[0], len(got), err)
	}
	p = c.Pack(nil, src[1:])
	if got, err := c.Unpack(p); err != nil || len(p) > 100 || !bytes.Equal(got, src[1:]) {
		t.Fatalf("%d bytes packed, %d unpacked, %v", len(p), len(got), err)
	}
	binary.PutUvarint(p[1:], maxContent+1)
	if _, err := c.Unpack(p); err != ErrDamaged {
		t.Fatalf("a value that claims more than it may: %v", err)
	}
}

func FuzzPack(f *testing.F) {
	f.Add([]byte("hello hello hello hello hello"), []byte("hello"))
	f.Add([]byte(dictionary2), []byte(""))
	f.Add(bytes.Repeat([]byte("ab"), 500), bytes.Repeat([]byte("b"), 99))
	c := NewCodec()
	f.Fuzz(func(t *testing.T, src, dict []byte) {
		got, err := c.Unpack(c.Pack(nil, src, dict), dict)
		if err != nil || !bytes.Equal(got, src) {
			t.Fatalf("%d bytes came back as %d, %v", len(src), len(got), err)
		}
	})
}

func FuzzUnpack(f *testing.F) {
	c := NewCodec()
	for _, tx := range sample("s", "r") {
		js, err := c.Journals(tx)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(js[0].Body, []byte(tx.Runs[0].State))
		f.Add(c.Pack(nil, tx.Runs[0].State), []byte{})
	}
	f.Add([]byte{formLZ2, 0xff, 0xff, 0xff, 0xff, 3, 0x1f, 'a', 0xff, 0xff, 0xff, 0x7f, 1, 0}, []byte{})
	f.Add([]byte{formPlain, 1}, []byte{})
	f.Fuzz(func(t *testing.T, v, dict []byte) {
		b, err := c.Unpack(v, dict)
		if err == nil && len(b) > max(maxContent, len(v)) {
			t.Fatalf("%d bytes became %d", len(v), len(b))
		}
		_ = Decode("r", b, func(e *store.Event) bool { return true }, func(*store.Trace) {})
		_ = Decode("r", v, func(e *store.Event) bool { return e.Seq < 100 }, nil)
	})
}

func TestJournalDictionary(t *testing.T) {
	c := NewCodec()
	e := func(run, session string, n int) *store.Entry {
		return &store.Entry{RunID: run, SessionID: session, Body: bytes.Repeat([]byte("x"), n)}
	}
	for name, x := range map[string]struct {
		entries  []*store.Entry
		from, to int
	}{
		"none":              {nil, 0, 0},
		"of others":         {[]*store.Entry{e("q", "s", 1)}, 1, 1},
		"in the middle":     {[]*store.Entry{e("q", "s", 1), e("r", "s", 1), e("r", "s", 1), e("q", "s", 1), e("r", "s", 1)}, 1, 3},
		"of two sessions":   {[]*store.Entry{e("r", "s", 1), e("r", "t", 1)}, 0, 1},
		"too long":          {[]*store.Entry{e("r", "s", maxDict), e("r", "s", 1)}, 0, 1},
		"too long at once":  {[]*store.Entry{e("r", "s", maxDict+1)}, 0, 0},
		"empty bodies only": {[]*store.Entry{e("r", "s", 0)}, 0, 1},
	} {
		js, err := c.Journals(&store.Tx{Entries: x.entries, Trace: []*store.Trace{{RunID: "r", Kind: "k"}}})
		if err != nil {
			t.Fatal(err)
		}
		if js[0].From != x.from || js[0].To != x.to {
			t.Errorf("%s: entries %d to %d, want %d to %d", name, js[0].From, js[0].To, x.from, x.to)
		}
	}
}

func TestJournalRoundTrip(t *testing.T) {
	c := NewCodec()
	for _, tx := range sample("s", "r") {
		js, err := c.Journals(tx)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := js[0].Plain(nil, tx)
		if err != nil {
			t.Fatal(err)
		}
		var events []*store.Event
		var trace []*store.Trace
		if err := Decode("r", plain, func(e *store.Event) bool { events = append(events, e); return true },
			func(x *store.Trace) { trace = append(trace, x) }); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(events, tx.Events) || !reflect.DeepEqual(trace, tx.Trace) {
			t.Error("events or trace came back changed")
		}
		for n := range plain { // cut anywhere, it is damaged
			if err := Decode("r", plain[:n], func(*store.Event) bool { return true }, func(*store.Trace) {}); err == nil {
				t.Fatalf("cut after %d of %d bytes: no error", n, len(plain))
			}
		}
	}
}
