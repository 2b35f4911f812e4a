package llmwire

import (
	"bufio"
	"compress/gzip"
	"io"
)

// unzipped is the body of a response that says it is packed with gzip. One that says so and
// is not is given as it is.
type unzipped struct {
	io.Closer
	src *bufio.Reader
	out io.Reader // once the beginning was read
	// forgive: of an error, what can be read is enough.
	forgive bool
}

// Read implements io.Reader. It reads no further ahead than gzip does.
func (u *unzipped) Read(p []byte) (int, error) {
	if u.out == nil {
		u.out = u.src
		if magic, _ := u.src.Peek(2); string(magic) == "\x1f\x8b" {
			z, err := gzip.NewReader(u.src)
			if err != nil {
				return 0, u.end(err)
			}
			u.out = z
		}
	}
	n, err := u.out.Read(p)
	return n, u.end(err)
}

func (u *unzipped) end(err error) error {
	if err != nil && u.forgive {
		return io.EOF
	}
	return err
}
