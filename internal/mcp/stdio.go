package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// writeTimeout bounds one write to a server that does not read its input.
const writeTimeout = 10 * time.Second

// stdioTransport speaks with a started process. It takes the place of the SDK's
// own, which can not survive a line that is not JSON, holds messages of any
// number and ends only the direct child.
type stdioTransport struct {
	proc  *process
	sieve *sieve
	limit int
	// broken is told why the connection is of no more use, ahead of all else that
	// follows from it.
	broken func(error)
}

// Connect returns the connection.
func (t *stdioTransport) Connect(context.Context) (sdk.Connection, error) {
	return &stdioConn{proc: t.proc, sieve: t.sieve, limit: t.limit, broken: t.broken, r: bufio.NewReaderSize(t.proc.stdout, 64<<10)}, nil
}

type stdioConn struct {
	proc   *process
	sieve  *sieve
	limit  int
	broken func(error)

	r     *bufio.Reader     // of the reading goroutine alone
	queue []jsonrpc.Message // of a batch, likewise

	mu sync.Mutex // held while writing
}

// SessionID returns "": a process is its own session.
func (c *stdioConn) SessionID() string { return "" }

// Read returns the next message that is one.
func (c *stdioConn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		if len(c.queue) > 0 {
			msg := c.queue[0]
			c.queue = c.queue[1:]
			return msg, nil
		}
		line, tail, cut, err := readLineWhile(c.r, c.limit, c.patient)
		if cut {
			_ = c.proc.stdout.SetReadDeadline(time.Time{})
			if errors.Is(err, errEndless) || errors.Is(err, os.ErrDeadlineExceeded) {
				// It does not listen either: what it is asked stands behind the flood.
				err := fmt.Errorf("%w: the server sent a message of more than %s, and did not end it", errDead, mib(c.limit))
				c.broken(err)
				c.proc.kill()
				return nil, err
			}
			id, ok := idOfLarge(line, tail)
			if !ok {
				return nil, fmt.Errorf("the server sent a message of more than %s", mib(c.limit))
			}
			return jsonrpc.DecodeMessage(refuse(id, codeTooLarge, "%s", tooLarge(c.limit)))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			c.accept(line)
			if len(c.queue) > 0 {
				continue
			}
		}
		if err != nil {
			// Closed: whoever saw the process end first has closed the pipe.
			if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
				return nil, io.EOF
			}
			return nil, fmt.Errorf("%w: reading from the server: %w", errDead, err)
		}
	}
}

// Bounds of waiting for the end of a message that is too large, to tell its call
// so. All other messages of the server stand behind it.
const (
	skipTime  = 2 * time.Second
	skipTimes = 8 // the limit
)

// patient is whether the rest of a message that is too large is waited for.
func (c *stdioConn) patient(head []byte, skipped int) bool {
	if skipped == 0 {
		// Pipes have no deadlines everywhere; the number of bytes is bounded too.
		_ = c.proc.stdout.SetReadDeadline(time.Now().Add(skipTime))
		return response.Match(head)
	}
	return skipped <= skipTimes*c.limit
}

// response is how the answers of all known SDKs begin.
var response = regexp.MustCompile(`^\s*\{\s*"(jsonrpc|id|result|error)"\s*:`)

// accept queues what a line holds: a message, or several in a batch (protocol
// revision 2025-03-26).
func (c *stdioConn) accept(line []byte) {
	parts := []json.RawMessage{line}
	if line[0] == '[' && json.Unmarshal(line, &parts) != nil {
		parts = []json.RawMessage{line}
	}
	for _, part := range parts {
		e, ok := c.sieve.admit(part)
		if !ok {
			continue
		}
		if other := e.stand(); other != nil {
			part = other
		}
		if msg, err := jsonrpc.DecodeMessage(part); err == nil {
			c.queue = append(c.queue, msg)
		}
	}
}

// Write sends a message.
func (c *stdioConn) Write(_ context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// Pipes have no deadlines everywhere; where they have none, the call's own
	// timeout still lets the caller go.
	_ = c.proc.stdin.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := c.proc.stdin.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("writing to the server: %w", err)
	}
	return nil
}

// Close begins to end the process.
func (c *stdioConn) Close() error {
	c.proc.stop()
	return nil
}
