package sse

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

type got struct{ name, data, id string }

func readAll(t testing.TB, r io.Reader, opts *Options) ([]got, *Reader, error) {
	t.Helper()
	sr := NewReader(r, opts)
	var out []got
	for {
		e, err := sr.Next()
		if err != nil {
			return out, sr, err
		}
		out = append(out, got{string(e.Name), string(e.Data), sr.LastID()})
	}
}

func TestEvents(t *testing.T) {
	tests := []struct {
		name, in string
		want     []got
	}{
		{"one", "data: a\n\n", []got{{"", "a", ""}}},
		{"crlf", "event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []got{{"x", "a", ""}, {"", "b", ""}}},
		{"cr", "data: a\r\rdata: b\r\r", []got{{"", "a", ""}, {"", "b", ""}}},
		{"mixed line ends", "data: a\r\n\ndata: b\n\r\n", []got{{"", "a", ""}, {"", "b", ""}}},
		{"bom", "\xef\xbb\xbfdata: a\n\n", []got{{"", "a", ""}}},
		{"half a bom is not one", "\xef\xbbdata: a\n\ndata: b\n\n", []got{{"", "b", ""}}},
		{"comments", ": hi\n\n:\ndata: a\n: in the middle\ndata: b\n\n", []got{{"", "a\nb", ""}}},
		{"several lines of data", "data: a\ndata\ndata: b\ndata:c\n\n", []got{{"", "a\n\nb\nc", ""}}},
		{"one space is taken off", "data:  a \n\n", []got{{"", " a ", ""}}},
		{"no data, no event", "event: x\nid: 7\n\ndata: a\n\n", []got{{"", "a", "7"}}},
		{"empty data is an event", "data:\n\n", []got{{"", "", ""}}},
		{"id stays", "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []got{{"", "a", "1"}, {"", "b", "1"}, {"", "c", ""}}},
		{"id with NUL is ignored", "id: 1\ndata: a\n\nid: 2\x003\ndata: b\n\n", []got{{"", "a", "1"}, {"", "b", "1"}}},
		{"unknown field", "foo: bar\nDATA: x\ndata: a\n\n", []got{{"", "a", ""}}},
		{"the last name counts", "event: a\nevent: b\ndata: x\n\n", []got{{"b", "x", ""}}},
		{"cut off", "data: a\n\ndata: b\n", []got{{"", "a", ""}}},
		{"cut off in the line", "data: a\n\ndata: b", []got{{"", "a", ""}}},
		{"nothing", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, src := range []io.Reader{
				strings.NewReader(tt.in),
				iotest.OneByteReader(strings.NewReader(tt.in)),
				iotest.DataErrReader(strings.NewReader(tt.in)),
				iotest.HalfReader(strings.NewReader(tt.in)),
			} {
				out, _, err := readAll(t, src, nil)
				if err != io.EOF {
					t.Fatalf("error %v, want EOF", err)
				}
				if len(out) != len(tt.want) {
					t.Fatalf("got %q, want %q", out, tt.want)
				}
				for i := range out {
					if out[i] != tt.want[i] {
						t.Errorf("event %d is %q, want %q", i, out[i], tt.want[i])
					}
				}
			}
		})
	}
}

// Whoever resumes after a cut must ask for the event that was cut, too.
func TestCutEventKeepsTheLastID(t *testing.T) {
	_, r, _ := readAll(t, strings.NewReader("id: 4\ndata: a\n\nid: 5\ndata: b\n"), nil)
	if r.LastID() != "4" {
		t.Errorf("LastID %q, want 4", r.LastID())
	}
}

func TestRetry(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"retry: 1500\n\n":                 1500 * time.Millisecond,
		"retry: 10\nretry: x\n\n":         10 * time.Millisecond,
		"retry: -1\n\n":                   0,
		"retry:\n\n":                      0,
		"retry: 99999999999999999999\n\n": 0,
	} {
		_, r, _ := readAll(t, strings.NewReader(in), nil)
		if r.Retry() != want {
			t.Errorf("%q: %v, want %v", in, r.Retry(), want)
		}
	}
}

// An event ended by CR CR must not wait for a byte that may be an LF.
func TestEventIsReturnedAtOnce(t *testing.T) {
	for _, in := range []string{"data: a\n\n", "data: a\r\n\r\n", "data: a\r\r"} {
		pr, pw := io.Pipe()
		go func() { _, _ = pw.Write([]byte(in)) }()
		e, err := NewReader(pr, nil).Next()
		if err != nil || string(e.Data) != "a" {
			t.Errorf("%q: %q, %v", in, e.Data, err)
		}
		pw.Close()
	}
}

func TestTooLarge(t *testing.T) {
	big := "data: " + strings.Repeat("x", 70_000) + "\n\n"
	if out, _, err := readAll(t, strings.NewReader(big), nil); err != io.EOF || len(out) != 1 || len(out[0].data) != 70_000 {
		t.Fatalf("a large event under the limit: %d events, %v", len(out), err)
	}
	_, r, err := readAll(t, strings.NewReader(big), &Options{MaxEvent: 10_000})
	var tooLarge *TooLargeError
	if !errors.As(err, &tooLarge) || tooLarge.Limit != 10_000 {
		t.Fatalf("error %v, want *TooLargeError of 10000", err)
	}
	if _, again := r.Next(); again != err {
		t.Errorf("the error is not final: %v", again)
	}
	// Heartbeats without a blank line are not one large event.
	beats := strings.Repeat(": keepalive\n", 10_000) + "data: a\n\n"
	if out, _, err := readAll(t, strings.NewReader(beats), &Options{MaxEvent: 10_000}); err != io.EOF || len(out) != 1 {
		t.Errorf("heartbeats: %d events, %v", len(out), err)
	}
}

func TestSourceErrors(t *testing.T) {
	broken := errors.New("broken")
	out, _, err := readAll(t, io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken)), nil)
	if !errors.Is(err, broken) || len(out) != 1 {
		t.Errorf("%q, %v", out, err)
	}
	if _, _, err := readAll(t, stuck{}, nil); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a source without progress: %v", err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestNoAllocations(t *testing.T) {
	chunk := []byte("event: message\ndata: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\n")
	r := NewReader(&loop{chunk: chunk}, nil)
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per event, want none", n)
	}
}

// loop repeats chunk for ever.
type loop struct {
	chunk []byte
	at    int
}

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p, l.chunk[l.at:])
	l.at = (l.at + n) % len(l.chunk)
	return n, nil
}

func BenchmarkNext(b *testing.B) {
	chunk := []byte("data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"}}]}\n\n")
	r := NewReader(&loop{chunk: bytes.Repeat(chunk, 50)}, nil)
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Next(); err != nil {
			b.Fatal(err)
		}
	}
}

// How the bytes arrive must not change what is read, and no input may panic
// or hang.
func FuzzReader(f *testing.F) {
	for _, s := range []string{"data: a\n\n", "\xef\xbb\xbfdata: a\r\rdata", ": c\nid: 1\nevent: e\ndata: x\ndata: y\n\n", "retry: 5\r\n\r\n", "data\n\ndata:\r\n\r"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, _, err := readAll(t, bytes.NewReader(in), &Options{MaxEvent: 1 << 20})
		if err != io.EOF {
			t.Fatalf("error %v", err)
		}
		bits, _, err := readAll(t, iotest.OneByteReader(bytes.NewReader(in)), &Options{MaxEvent: 1 << 20})
		if err != io.EOF || len(bits) != len(whole) {
			t.Fatalf("byte by byte: %q, %v; whole: %q", bits, err, whole)
		}
		for i := range whole {
			if whole[i] != bits[i] {
				t.Fatalf("byte by byte: %q; whole: %q", bits[i], whole[i])
			}
			if strings.ContainsAny(whole[i].data, "\r") {
				t.Fatalf("a line end inside data: %q", whole[i].data)
			}
		}
	})
}
