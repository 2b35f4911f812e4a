package llmwire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"agentd/internal/sse"
)

func linesOf(r io.Reader, buf []byte) (lines []string, whole []bool, err error) {
	l := &Lines{src: r, buf: buf}
	for {
		line, ok, err := l.Next()
		if err != nil {
			return lines, whole, err
		}
		lines, whole = append(lines, string(line)), append(whole, ok)
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	in := "\n{\"a\":1}\r\n\n " + long + " \nlast"
	for name, r := range map[string]io.Reader{"at once": strings.NewReader(in), "byte by byte": iotest.OneByteReader(strings.NewReader(in)),
		"the end with the data": iotest.DataErrReader(strings.NewReader(in))} {
		lines, whole, err := linesOf(r, nil)
		if err != io.EOF || len(lines) != 3 || lines[0] != `{"a":1}` || lines[1] != long || lines[2] != "last" || !whole[1] || whole[2] {
			t.Errorf("%s: %d lines, whole %v, %v", name, len(lines), whole, err)
		}
	}
	broken := errors.New("broken")
	if lines, _, err := linesOf(io.MultiReader(strings.NewReader("a\nhalf"), iotest.ErrReader(broken)), nil); err != broken || len(lines) != 1 {
		t.Errorf("%q, %v", lines, err)
	}
	var large *sse.TooLargeError
	if _, _, err := linesOf(bytes.NewReader(make([]byte, maxLine+9<<10)), nil); !errors.As(err, &large) {
		t.Errorf("an endless line: %v", err)
	}
}

// Every line comes out, whatever the reads are like.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\n c"), 3)
	f.Fuzz(func(t *testing.T, in []byte, buffer int) {
		got, _, err := linesOf(iotest.HalfReader(bytes.NewReader(in)), make([]byte, 0, max(0, min(buffer, 100))))
		var want []string
		for _, l := range bytes.Split(in, []byte("\n")) {
			if l = bytes.TrimSpace(l); len(l) > 0 {
				want = append(want, string(l))
			}
		}
		if err != io.EOF || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("%q became %q, %v", in, got, err)
		}
	})
}

func TestCallID(t *testing.T) {
	long := strings.Repeat("x", 200)
	for in, want := range map[string]string{"": "call", "call_1-A": "call_1-A", "a|b": "a_b", strings.Repeat("y", 64): strings.Repeat("y", 64)} {
		if got := CallID(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if a, b := CallID(long+"1"), CallID(long+"2"); a == b || len(a) != 64 || a != CallID(long+"1") {
		t.Errorf("%q %q", a, b)
	}
}
