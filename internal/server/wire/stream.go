package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"agentd/internal/keys"
)

// Errors that end a stream from outside.
var (
	// ErrGone: the client is not there any more.
	ErrGone = errors.New("the client is gone")
	// ErrClosing: the server is shutting down. The client is still there.
	ErrClosing = errors.New("the server is shutting down")
	// ErrKeyEnded: the caller's API key has ended. The client is still there.
	ErrKeyEnded = keys.ErrEnded
)

// KeyEnded is the error for the caller whose API key has ended since the request
// began, or nil.
func KeyEnded(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, ErrKeyEnded) {
		return err
	}
	return nil
}

// StreamConfig configures a stream.
type StreamConfig struct {
	// Heartbeat is the longest silence; 0 means 15 seconds.
	Heartbeat time.Duration
	// WriteTimeout bounds one write; 0 means 30 seconds.
	WriteTimeout time.Duration
	// Buffer is how many bytes may wait for the client before the producer
	// has to; 0 means 256 KiB.
	Buffer int
	// Closing ends the stream with ErrClosing; nil never does.
	Closing <-chan struct{}
}

// Keepalive is the heartbeat: a comment, which every client ignores.
const Keepalive = ": keepalive\n\n"

// Stream is a response of server-sent events. One goroutine produces, the
// handler's writes. The status and the headers are sent with the first byte, so
// until then the handler can still answer with an error.
type Stream struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	cfg     StreamConfig
	started bool
	failed  bool
	// deadline is when the last write deadline was set.
	deadline time.Time
	written  time.Time
}

// NewStream prepares a stream. Nothing is sent yet.
func NewStream(w http.ResponseWriter, cfg StreamConfig) *Stream {
	if cfg.Heartbeat <= 0 {
		cfg.Heartbeat = 15 * time.Second
	}
	if cfg.WriteTimeout <= 0 {
		cfg.WriteTimeout = 30 * time.Second
	}
	if cfg.Buffer <= 0 {
		cfg.Buffer = 256 << 10
	}
	return &Stream{w: w, rc: http.NewResponseController(w), cfg: cfg}
}

// Started reports whether the client has got the status.
func (s *Stream) Started() bool { return s.started }

// Out is where a producer puts events. It is used by one goroutine.
type Out struct {
	ctx  context.Context
	max  int
	mu   sync.Mutex
	buf  []byte
	wake chan struct{}
	room chan struct{}
}

// Begin gives the buffer to append to, when there is room; then End must be
// called. It is false when the stream has ended.
func (o *Out) Begin() ([]byte, bool) {
	for {
		o.mu.Lock()
		if len(o.buf) < o.max {
			return o.buf, true
		}
		o.mu.Unlock()
		select {
		case <-o.room:
		case <-o.ctx.Done():
			return nil, false
		}
	}
}

// End takes the buffer back and lets it be sent.
func (o *Out) End(b []byte) {
	o.buf = b
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take swaps the filled buffer for an empty one.
func (o *Out) take(spare []byte) []byte {
	o.mu.Lock()
	b := o.buf
	o.buf = spare[:0]
	o.mu.Unlock()
	select {
	case o.room <- struct{}{}:
	default:
	}
	return b
}

// producerPanic carries a panic of the producer to the handler's goroutine.
type producerPanic struct {
	value any
	stack []byte
}

func (p *producerPanic) Error() string {
	return fmt.Sprintf("panic: %v\n%s", p.value, p.stack)
}

// Run streams what produce appends, until produce returns. Its error is
// produce's, or ErrGone, or ErrClosing, or that of [KeyEnded]; produce's context has ended and produce
// has returned by then.
func (s *Stream) Run(ctx context.Context, produce func(context.Context, *Out) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &Out{ctx: ctx, max: s.cfg.Buffer, wake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	done := make(chan error, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				done <- &producerPanic{value: v, stack: debug.Stack()}
			}
		}()
		done <- produce(ctx, out)
	}()
	stop := func(err error) error {
		cancel()
		if p, ok := (<-done).(*producerPanic); ok {
			panic(p)
		}
		return err
	}
	s.written = time.Now()
	timer := time.NewTimer(s.cfg.Heartbeat)
	defer timer.Stop()
	var spare []byte
	for {
		select {
		case <-out.wake:
			b := out.take(spare)
			if err := s.Write(b); err != nil {
				return stop(err)
			}
			spare = b
		case err := <-done:
			if p, ok := err.(*producerPanic); ok {
				panic(p)
			}
			if err != nil && ctx.Err() != nil {
				// It ended because the client went, which is no error of it.
				if err := KeyEnded(ctx); err != nil {
					return err
				}
				return ErrGone
			}
			if werr := s.Write(out.take(spare)); werr != nil {
				return werr
			}
			return err
		case <-timer.C:
			wait := s.cfg.Heartbeat - time.Since(s.written)
			if wait <= 0 {
				if err := s.Write([]byte(Keepalive)); err != nil {
					return stop(err)
				}
				wait = s.cfg.Heartbeat
			}
			timer.Reset(wait)
		case <-s.cfg.Closing:
			err := stop(ErrClosing)
			if werr := s.Write(out.take(spare)); werr != nil {
				return werr
			}
			return err
		case <-ctx.Done():
			if err := KeyEnded(ctx); err != nil {
				return stop(err)
			}
			return stop(ErrGone)
		}
	}
}

// Write sends bytes at once; no bytes send nothing. The error is ErrGone.
func (s *Stream) Write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if s.failed {
		return ErrGone
	}
	now := time.Now()
	// Setting the deadline for each of thousands of small writes would cost
	// more than it gives.
	if now.Sub(s.deadline) > s.cfg.WriteTimeout/4 {
		_ = s.rc.SetWriteDeadline(now.Add(s.cfg.WriteTimeout + s.cfg.WriteTimeout/4))
		s.deadline = now
	}
	if !s.started {
		s.started = true
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache, no-transform")
		h.Set("X-Accel-Buffering", "no") // nginx would collect the stream otherwise
		s.w.WriteHeader(http.StatusOK)
	}
	s.written = now
	if _, err := s.w.Write(b); err != nil {
		s.failed = true
		return ErrGone
	}
	if err := s.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.failed = true
		return ErrGone
	}
	return nil
}
