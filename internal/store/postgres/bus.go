package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// busQueue is how many messages wait for the server; more are lost, as a bus may.
const busQueue = 1024

// busMost is the longest message in bytes: the server takes less than 8,000.
const busMost = 7900

// busTogether is how many messages go in one transaction.
const busTogether = 64

// Bus carries messages between the processes that use the database, by NOTIFY. It loses
// what is said while the way to the server is broken.
type Bus struct {
	s       *Store
	channel string
	out     chan []byte
	stop    context.CancelFunc
	done    sync.WaitGroup

	mu   sync.Mutex
	subs map[int]func([]byte)
	next int
}

// Bus opens the bus of the store's schema. It is to be closed before the store.
func (s *Store) Bus() *Bus {
	ctx, stop := context.WithCancel(context.Background())
	b := &Bus{s: s, channel: fmt.Sprintf("agentd_%08x", uint32(s.target.lock)), //nolint:gosec // the same bits
		out: make(chan []byte, busQueue), stop: stop, subs: map[int]func([]byte){}}
	b.done.Add(2)
	go b.listen(ctx)
	go b.send(ctx)
	return b
}

// Publish sends a message of at most 7,900 bytes of text to everybody who listens, this
// process too. It does not wait; a message for which there is no room is lost.
func (b *Bus) Publish(message []byte) {
	if len(message) > busMost || !utf8.Valid(message) || slices.Contains(message, 0) {
		return // the server would refuse it, and those that go with it
	}
	select {
	case b.out <- message:
	default:
	}
}

// Subscribe calls f for each message, one after the other, until stop.
func (b *Bus) Subscribe(f func(message []byte)) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := b.next
	b.next++
	b.subs[id] = f
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.subs, id)
	}
}

// Close ends the bus.
func (b *Bus) Close() error {
	b.stop()
	b.done.Wait()
	return nil
}

func (b *Bus) send(ctx context.Context) {
	defer b.done.Done()
	for {
		select {
		case m := <-b.out:
			// What has gathered meanwhile goes in one transaction: the server takes one
			// that notifies after the other.
			all := append(make([]string, 0, busTogether), string(m))
			for len(all) < busTogether && len(b.out) > 0 {
				all = append(all, string(<-b.out))
			}
			_, _ = b.s.ahead.Exec(ctx, "SELECT pg_notify($1, m) FROM unnest($2::text[]) WITH ORDINALITY AS u (m, n) ORDER BY n", b.channel, all) // lost, then
		case <-ctx.Done():
			return
		}
	}
}

func (b *Bus) listen(ctx context.Context) {
	defer b.done.Done()
	for ctx.Err() == nil {
		if err := b.hear(ctx); err != nil {
			select {
			case <-time.After(presencePause):
			case <-ctx.Done():
			}
		}
	}
}

// hear listens until the connection breaks.
func (b *Bus) hear(ctx context.Context) error {
	c, err := b.s.target.connect(ctx)
	if err != nil {
		return err
	}
	defer closeSoon(c)
	if _, err := c.Exec(ctx, "LISTEN "+pgx.Identifier{b.channel}.Sanitize()); err != nil {
		return err
	}
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		b.mu.Lock()
		subs := make([]func([]byte), 0, len(b.subs))
		for i := range b.next {
			if f := b.subs[i]; f != nil {
				subs = append(subs, f)
			}
		}
		b.mu.Unlock()
		for _, f := range subs {
			f([]byte(n.Payload))
		}
	}
}
