package llmwire

import (
	"bytes"
	"io"

	"agentd/internal/sse"
)

// maxLine is the largest line of a stream of JSON values, as of an event.
const maxLine = sse.DefaultMaxEvent

// Lines reads a stream of JSON values, one a line. It is not safe for concurrent use.
type Lines struct {
	src  io.Reader
	buf  []byte
	from int // of what was not given out
	err  error
}

// Lines returns a reader of the lines of the response's body. Each read restarts the
// watch. It begins with buf, which may be nil.
func (c *Call) Lines(buf []byte) *Lines { return &Lines{src: c, buf: buf[:0]} }

// Next returns the next line that is not blank, without its end; it is valid until the
// next call. The last line may lack its end: whole is then false, and only the caller
// can know whether the stream was cut in it. At the end of the stream the error is
// io.EOF; any other is the source's, or a *[sse.TooLargeError].
func (l *Lines) Next() (line []byte, whole bool, err error) {
	scanned := 0
	for {
		if at := bytes.IndexByte(l.buf[l.from+scanned:], '\n'); at >= 0 {
			line = l.buf[l.from : l.from+scanned+at]
			l.from += scanned + at + 1
			scanned = 0
			if line = bytes.TrimSpace(line); len(line) > 0 {
				return line, true, nil
			}
			continue
		}
		scanned = len(l.buf) - l.from
		if l.err != nil {
			line = bytes.TrimSpace(l.buf[l.from:])
			l.from = len(l.buf)
			if len(line) > 0 && l.err == io.EOF {
				return line, false, nil
			}
			return nil, false, l.err
		}
		if scanned > maxLine {
			l.err = &sse.TooLargeError{Limit: maxLine}
			return nil, false, l.err
		}
		l.fill()
	}
}

// fill reads some more. What was given out makes room.
func (l *Lines) fill() {
	const piece = 8 << 10
	if l.from > 0 {
		l.buf = l.buf[:copy(l.buf, l.buf[l.from:])]
		l.from = 0
	}
	if cap(l.buf)-len(l.buf) < piece/2 {
		grown := make([]byte, len(l.buf), 2*cap(l.buf)+piece)
		copy(grown, l.buf)
		l.buf = grown
	}
	n, err := l.src.Read(l.buf[len(l.buf):cap(l.buf)])
	l.buf = l.buf[:len(l.buf)+n]
	l.err = err
}

// Kept gives the buffer for the next call; nil if it has grown large.
func (l *Lines) Kept() []byte {
	if cap(l.buf) <= keptBuffer {
		return l.buf
	}
	return nil
}
