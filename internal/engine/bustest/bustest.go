// Package bustest holds implementations of engine.Bus to the contract of that port.
// [Run] has a subtest for every promise.
package bustest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// Bus is engine.Bus, so that implementations need not import the engine.
type Bus interface {
	Publish(message []byte)
	Subscribe(f func(message []byte)) (stop func())
}

// Most is the size of the largest message that a bus must carry.
const Most = 7000

// patience is how long a message may take on a machine that has much to do.
const patience = 30 * time.Second

// Suite says how a bus is had.
type Suite struct {
	// Open gives the bus as another process would have it: two of them are connected.
	// They are closed by t's cleanup.
	Open func(t *testing.T) Bus
	// Break breaks all connections, which then work again; nil: there are none.
	Break func(t *testing.T)
	// Direct is a bus whose Publish ends when the message was heard.
	Direct bool
}

// ear keeps what it hears, by sender: messages are "SENDER NUMBER TEXT".
type ear struct {
	mu    sync.Mutex
	heard map[string][]string
	news  chan struct{}
}

func listen(t *testing.T, b Bus) *ear {
	e := &ear{heard: map[string][]string{}, news: make(chan struct{}, 1)}
	t.Cleanup(b.Subscribe(func(m []byte) {
		e.mu.Lock()
		sender, _, _ := strings.Cut(string(m), " ")
		e.heard[sender] = append(e.heard[sender], string(m))
		e.mu.Unlock()
		select {
		case e.news <- struct{}{}:
		default:
		}
	}))
	return e
}

// last waits until the last thing heard of a sender is a message.
func (e *ear) last(t *testing.T, sender, want string) (all []string) {
	t.Helper()
	late := time.After(patience)
	for {
		e.mu.Lock()
		all = e.heard[sender]
		e.mu.Unlock()
		if n := len(all); n > 0 && all[n-1] == want {
			return all
		}
		select {
		case <-e.news:
		case <-late:
			t.Fatalf("%d messages of %s were heard, and not %.40q", len(all), sender, want)
		}
	}
}

// connect waits until what is said at each bus is heard by each ear: connections are
// made in the background, and what is said before is lost.
func connect(t *testing.T, buses []Bus, ears []*ear) {
	t.Helper()
	late := time.After(patience)
	for i, b := range buses {
		for k, e := range ears {
			name := fmt.Sprintf("hello%d.%d", i, k)
			for heard := false; !heard; {
				b.Publish([]byte(name + " "))
				select {
				case <-e.news:
				case <-time.After(20 * time.Millisecond):
				case <-late:
					t.Fatalf("what is said at bus %d is not heard at %d", i, k)
				}
				e.mu.Lock()
				heard = len(e.heard[name]) > 0
				e.mu.Unlock()
			}
		}
	}
}

// Run tests a bus.
func (s Suite) Run(t *testing.T) {
	t.Run("EverybodyHearsEverythingInOrder", s.order)
	t.Run("PublishDoesNotWait", s.full)
	t.Run("WhoStoppedHearsNothing", s.stopped)
	t.Run("ABrokenConnectionIsMadeAgain", s.broken)
}

// order: what a sender says is heard by everybody, itself too, whole, once, and in
// order, as long as it is not too much.
func (s Suite) order(t *testing.T) {
	buses := []Bus{s.Open(t), s.Open(t)}
	ears := []*ear{listen(t, buses[0]), listen(t, buses[1]), listen(t, buses[1])}
	connect(t, buses, ears)
	const many = 300
	message := func(sender, i int) string {
		m := fmt.Sprintf("s%d %d ", sender, i)
		return m + strings.Repeat("ä\"\\\n€", 1000)[:(Most-len(m))*(i%10)/10/8*8]
	}
	var all sync.WaitGroup
	for k, b := range buses {
		all.Go(func() {
			for i := range many {
				b.Publish([]byte(message(k, i)))
			}
		})
	}
	all.Wait()
	// What can not be carried is lost, and nothing with it.
	buses[0].Publish([]byte("odd \xff"))
	buses[0].Publish([]byte("odd \x00"))
	buses[0].Publish([]byte("s2 end"))
	for _, ear := range ears {
		ear.last(t, "s2", "s2 end")
	}
	for e, ear := range ears {
		for k := range buses {
			got := ear.last(t, fmt.Sprint("s", k), message(k, many-1))
			if len(got) != many {
				t.Fatalf("ear %d heard %d messages of %d", e, len(got), k)
			}
			for i := range got {
				if got[i] != message(k, i) {
					t.Fatalf("ear %d heard %.30q as message %d", e, got[i], i)
				}
			}
		}
	}
}

// full: whoever publishes goes on, however slow those are who listen; what is too much
// is lost, and the bus works afterwards.
func (s Suite) full(t *testing.T) {
	if s.Direct {
		return
	}
	b, other := s.Open(t), s.Open(t)
	e := listen(t, b)
	connect(t, []Bus{b, other}, []*ear{e})
	enter, leave := make(chan struct{}, 1), make(chan struct{})
	t.Cleanup(other.Subscribe(func([]byte) {
		select {
		case enter <- struct{}{}:
		default:
		}
		<-leave
	}))
	big := []byte("flood " + strings.Repeat("x", Most-10))
	for inside := false; !inside; {
		b.Publish(big)
		select {
		case <-enter:
			inside = true
		case <-time.After(20 * time.Millisecond): // it may not be heard yet
		case <-t.Context().Done():
			return
		}
	}
	done := make(chan struct{})
	go func() {
		for range 5000 {
			b.Publish(big)
		}
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Error("Publish waits for who listens")
	}
	close(leave)
	connect(t, []Bus{b, other}, []*ear{listen(t, other)})
}

func (s Suite) stopped(t *testing.T) {
	b := s.Open(t)
	first, second := listen(t, b), listen(t, b)
	connect(t, []Bus{b}, []*ear{first, second})
	n := 0
	stop := b.Subscribe(func([]byte) { n++ })
	stop()
	b.Publish([]byte("last 1"))
	first.last(t, "last", "last 1")
	second.last(t, "last", "last 1")
	if n > 0 {
		t.Errorf("%d messages were heard after the end", n)
	}
}

func (s Suite) broken(t *testing.T) {
	if s.Break == nil {
		return
	}
	buses := []Bus{s.Open(t), s.Open(t)}
	ears := []*ear{listen(t, buses[0]), listen(t, buses[1])}
	connect(t, buses, ears)
	for range 2 {
		s.Break(t)
		for _, e := range ears {
			e.mu.Lock()
			clear(e.heard)
			e.mu.Unlock()
		}
		connect(t, buses, ears)
	}
}
