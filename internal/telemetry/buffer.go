package telemetry

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Limits of a buffer. What is more is dropped, and counted.
const (
	maxWaiting      = 2048    // spans, or records, that wait
	maxWaitingBytes = 8 << 20 // and how much there may be in them, about
	batchItems      = 512
	batchBytes      = 1 << 20
	flushPeriod     = 5 * time.Second
)

// buffer gathers spans, or log records, and sends them from time to time. Whoever
// adds never waits.
type buffer[T any] struct {
	kind   string
	sink   *sink
	encode func([]T) ([]byte, error)

	mu    sync.Mutex
	wait  []T
	sizes []int
	bytes int

	full chan struct{} // a batch is there
	stop chan struct{}
	done chan struct{}
	// ctx is that of what is being sent.
	ctx    context.Context
	cancel context.CancelFunc
}

func newBuffer[T any](kind string, s *sink, encode func([]T) ([]byte, error)) *buffer[T] {
	b := &buffer[T]{kind: kind, sink: s, encode: encode, full: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	go b.run()
	return b
}

func (b *buffer[T]) run() {
	defer close(b.done)
	tick := time.NewTicker(flushPeriod)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-b.full:
		case <-b.stop:
			return
		}
		b.flush(b.ctx)
	}
}

// add takes something of about size bytes, or drops it.
func (b *buffer[T]) add(v T, size int) {
	b.mu.Lock()
	fits := len(b.wait) < maxWaiting && (b.bytes+size <= maxWaitingBytes || len(b.wait) == 0)
	if fits {
		b.wait, b.sizes, b.bytes = append(b.wait, v), append(b.sizes, size), b.bytes+size
	}
	due := len(b.wait) >= batchItems || b.bytes >= batchBytes
	b.mu.Unlock()
	if !fits {
		b.sink.lose(b.kind, 1, errors.New("more is made than can be delivered"))
	}
	if due {
		select {
		case b.full <- struct{}{}:
		default:
		}
	}
}

// take gives the next batch.
func (b *buffer[T]) take() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, size := 0, 0
	for n < len(b.wait) && n < batchItems && (n == 0 || size+b.sizes[n] <= batchBytes) {
		size += b.sizes[n]
		n++
	}
	batch := slices.Clone(b.wait[:n])
	b.wait, b.sizes, b.bytes = slices.Delete(b.wait, 0, n), slices.Delete(b.sizes, 0, n), b.bytes-size
	return batch
}

func (b *buffer[T]) flush(ctx context.Context) {
	for batch := b.take(); len(batch) > 0; batch = b.take() {
		body, err := b.encode(batch)
		if err != nil {
			b.sink.lose(b.kind, len(batch), err)
			continue
		}
		b.sink.send(ctx, b.kind, len(batch), body)
	}
}

// close sends what waits for as long as ctx allows, and drops the rest.
func (b *buffer[T]) close(ctx context.Context) {
	close(b.stop)
	end := context.AfterFunc(ctx, b.cancel)
	defer end()
	<-b.done
	b.flush(b.ctx)
	b.cancel()
}
