package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentd/event"
	"agentd/internal/store"
	"agentd/internal/store/sqlite"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// spoken is a model that says words as a test sends them, and ends with the channel.
func spoken(words <-chan string) streamFunc {
	return func(ctx context.Context, emit func(model.StreamEvent)) (*message.Message, error) {
		text := ""
		for {
			select {
			case w, more := <-words:
				m, err := say(text + w)
				if !more {
					return m, err
				}
				text += w
				emit(model.StreamEvent{Type: model.StreamTextDelta, Delta: w, Partial: m})
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
}

// speaking are nodes whose model says what is sent.
func speaking(t *testing.T) (n *nodes, words chan string) {
	n, words = newNodes(t, nil), make(chan string)
	n.agents["test"].Models[0].Provider = spoken(words)
	n.agents["test"].ModelIdle = 24 * time.Hour
	return n, words
}

// hearing follows a run and tells the text so far, each time that it grows.
func (n *nodes) hearing(e *Engine, id string) <-chan string {
	heard := make(chan string, 1000)
	go func() {
		defer close(heard)
		text := ""
		for ev, err := range e.Watch(n.t.Context(), ref(id), 0) {
			if d, ok := ev.Data.(*event.Delta); ok && err == nil {
				text += d.Text
				heard <- text
			}
		}
	}()
	return heard
}

// until takes what is heard until that is a text.
func until(t *testing.T, heard <-chan string, want string) {
	t.Helper()
	for got := range heard {
		if got == want {
			return
		}
		if !strings.HasPrefix(want, got) {
			t.Fatalf("heard %q, want %q", got, want)
		}
	}
	t.Fatalf("the end came before %q", want)
}

// TestWhoComesInTheMiddleHearsWhatWasSaid: live text that no commit contains is at
// readers who come later, at a node that reads the run already and at one that does not.
func TestWhoComesInTheMiddleHearsWhatWasSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, words := speaking(t)
		home, api, other := n.node("home", true), n.node("api", false), n.node("other", false)
		r := n.started(home, StartRequest{})
		first := n.hearing(api, r.ID)
		words <- "one "
		until(t, first, "one ")
		words <- "two "
		until(t, first, "one two ")
		began := time.Now()
		second, third := n.hearing(api, r.ID), n.hearing(other, r.ID)
		until(t, second, "one two ")
		until(t, third, "one two ")
		if d := time.Since(began); d > 100*time.Millisecond {
			t.Errorf("it took %v", d)
		}
		words <- "three"
		for _, h := range []<-chan string{first, second, third, n.hearing(home, r.ID)} {
			until(t, h, "one two three")
		}
		close(words)
		n.ended(other, r.ID, "completed")
	})
}

// TestALostPieceIsAskedFor: what the bus lost in the middle of a reply is there again
// before the reply ends, from its home.
func TestALostPieceIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, words := speaking(t)
		lost := 0
		n.bus = &choosy{lose: func(m string) bool {
			if lost == 0 && strings.Contains(m, `"two "`) {
				lost++
				return true
			}
			return false
		}}
		home, api := n.node("home", true), n.node("api", false)
		r := n.started(home, StartRequest{})
		heard := n.hearing(api, r.ID)
		words <- "one "
		until(t, heard, "one ")
		pass(3 * time.Second)
		words <- "two "
		pass(100 * time.Millisecond)
		began := time.Now()
		words <- "three "
		until(t, heard, "one two three ")
		if d := time.Since(began); d > 100*time.Millisecond || lost != 1 {
			t.Errorf("it took %v, %d lost", d, lost)
		}
		close(words)
		n.ended(api, r.ID, "completed")
	})
}

// countingStore counts reads of events, and holds them once hold is there.
type countingStore struct {
	*sqlite.Store
	reads atomic.Int64
	hold  atomic.Pointer[chan struct{}]
}

func (s *countingStore) Events(ctx context.Context, tenant, run string, after int64, limit int) ([]*store.Event, error) {
	s.reads.Add(1)
	if hold := s.hold.Load(); hold != nil {
		<-*hold
	}
	return s.Store.Events(ctx, tenant, run, after, limit)
}

// TestReadersOfARunAtANodeCostOneSubscription: however many read it there, its home is
// told once, sends once, and the store is not asked by each.
func TestReadersOfARunAtANodeCostOneSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 200
		n, words := speaking(t)
		var mu sync.Mutex
		watches, texts := 0, 0
		n.bus = &choosy{lose: func(m string) bool {
			mu.Lock()
			defer mu.Unlock()
			watches += strings.Count(m, `"k":"watch"`)
			texts += strings.Count(m, `"x":"one "`)
			return false
		}}
		s := &countingStore{Store: n.store.(*sqlite.Store)}
		home := n.node("home", true)
		api := n.node("api", false, func(c *Config) { c.Store = s })
		r := n.started(home, StartRequest{})
		synctest.Wait() // until the model is asked
		var all []<-chan string
		for range many {
			all = append(all, n.hearing(api, r.ID))
		}
		pass(time.Second)
		words <- "one "
		for _, h := range all {
			until(t, h, "one ")
		}
		// What they want of the store at the same moment is asked for once.
		mu.Lock()
		if watches != 1 || texts != 1 {
			t.Errorf("home was told %d times and sent %d times", watches, texts)
		}
		mu.Unlock()
		hold := make(chan struct{})
		s.hold.Store(&hold)
		s.reads.Store(0)
		api.node.missed()
		close(words)
		pass(time.Second)
		close(hold)
		for _, h := range all {
			for range h {
			}
		}
		if reads := s.reads.Load(); reads > 4 {
			t.Errorf("the store was read %d times", reads)
		}
		n.ended(home, r.ID, "completed")
	})
}

// unruly is a bus that loses, doubles and reorders messages.
type unruly struct {
	MemoryBus
	mu   sync.Mutex
	rng  *rand.Rand
	held [][]byte
}

func (b *unruly) Publish(m []byte) {
	b.mu.Lock()
	var out [][]byte
	switch b.rng.IntN(10) {
	case 0:
	case 1:
		out = [][]byte{m, m}
	case 2, 3:
		b.held = append(b.held, m)
	default:
		out = [][]byte{m}
		if len(b.held) > 0 && b.rng.IntN(3) == 0 {
			out, b.held = append(out, b.held...), nil
		}
	}
	b.mu.Unlock()
	for _, m := range out {
		b.MemoryBus.Publish(m)
	}
}

// TestReadersMoveWhileTheRunMoves: a run whose nodes die one after the other, readers
// that go from node to node with the number they saw last, and a bus that loses,
// doubles and reorders: everything once, in order, in the end as stored.
func TestReadersMoveWhileTheRunMoves(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { moving(t, seed) })
		})
	}
}

func moving(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	n := newNodes(t, nil, echoTool(tool.Read))
	n.bus = &unruly{rng: rand.New(rand.NewPCG(seed, 8))}
	var mu sync.Mutex
	step := 0
	n.agents["test"].Models[0].Provider = streamFunc(func(ctx context.Context, emit func(model.StreamEvent)) (*message.Message, error) {
		mu.Lock()
		step++
		mine := step
		mu.Unlock()
		text := ""
		for i := range 40 {
			w := fmt.Sprintf("word %d of %d ", i, mine)
			text += w
			m, _ := say(text)
			emit(model.StreamEvent{Type: model.StreamTextDelta, Delta: w, Partial: m})
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if mine < 12 {
			return say(text, call(fmt.Sprint("c", mine), "echo", `{"text":"x"}`))
		}
		return say(text)
	})
	apis := []*Engine{n.node("api 1", false), n.node("api 2", false), n.node("worker", true)}
	first, store := n.mortalNode("mortal", 0, false)
	r := n.started(first, StartRequest{})
	var wg sync.WaitGroup
	got := make([][]event.Event, 6)
	for i := range got {
		rng := rand.New(rand.NewPCG(seed, uint64(100+i)))
		wg.Go(func() {
			last := int64(0)
			for {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(2000))*time.Millisecond)
				for ev, err := range apis[rng.IntN(len(apis))].Watch(ctx, ref(r.ID), last) {
					if err != nil {
						if !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("reader %d: %v", i, err)
							cancel()
							return
						}
						break
					}
					got[i], last = append(got[i], ev), ev.Seq
				}
				cancel()
				if k := len(got[i]); k > 0 && got[i][k-1].Type.Terminal() {
					return
				}
			}
		})
	}
	pass(time.Duration(rng.IntN(4000)) * time.Millisecond)
	store.die()
	go first.Close()
	wg.Wait()
	n.ended(apis[0], r.ID, "completed")
	for i := range got {
		n.whole(apis[0], r.ID, got[i])
	}
}

// TestStalledReadersCostLittle: a thousand readers whose clients take nothing hold no
// more than one does, whatever is said, keep nobody who reads waiting, and are told.
func TestStalledReadersCostLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many, limit, said = 1000, 64, 4000
		n, words := speaking(t)
		buffer := func(c *Config) { c.ReaderBuffer = limit }
		home, api := n.node("home", true, buffer), n.node("api", false, buffer)
		r := n.started(home, StartRequest{})
		synctest.Wait()
		stalled := make(chan struct{})
		ends := make(chan error, many)
		for range many {
			go func() {
				for b, err := range api.Follow(t.Context(), ref(r.ID), 0, 0) {
					if err != nil {
						ends <- err
						return
					}
					if len(b.Events) > 0 && b.Events[0].Type.Delta() {
						<-stalled
					}
				}
				ends <- nil
			}()
		}
		pass(time.Second)
		before := heap()
		good, want := n.hearing(api, r.ID), ""
		word := strings.Repeat("x", 99) + " "
		peak := uint64(0)
		for i := range said {
			want += word
			words <- word
			if i%20 == 19 {
				until(t, good, want)
			}
			if i == said/2 {
				peak = heap()
			}
		}
		peak = max(peak, heap())
		// The text itself is there several times, as live text, tail and what the model made.
		if grown := int64(peak) - int64(before); grown > 24<<20 {
			t.Errorf("%d MB for %d stalled readers of %d kB", grown>>20, many, said*len(word)>>10)
		}
		close(stalled)
		for range many {
			if err := <-ends; !errors.Is(err, ErrSlowReader) {
				t.Fatalf("a stalled reader got %v", err)
			}
		}
		close(words)
		n.ended(api, r.ID, "completed")
	})
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestATurnIsNotHeldByWhoDoesNotRun: of readers that are in the middle of something
// none is given a turn, and who ends gives its turn back.
func TestATurnIsNotHeldByWhoDoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &turns{most: 1}
		s := &stream{}
		feeds := make([]*feed, 4)
		for i := range feeds {
			feeds[i], _ = s.follow(100, tr)
		}
		got := make(chan int, 10)
		read := func(i int) {
			if _, err := feeds[i].next(t.Context(), nil, nil, nil); err == nil {
				got <- i
			}
		}
		for i := 1; i < 4; i++ { // the first one is busy
			go read(i)
		}
		synctest.Wait()
		s.relay(piece{look: true})
		synctest.Wait()
		if len(got) != 3 || tr.out != 0 {
			t.Errorf("%d readers ran, %d turns are out", len(got), tr.out)
		}
		s.unfollow(feeds[1])
		go read(0)
		synctest.Wait()
		if len(got) != 4 {
			t.Error("who was busy does not find what came meanwhile")
		}
	})
}

// TestWordsAreTheSameEvents: what goes over the bus in another form arrives as it was,
// in order, among others.
func TestWordsAreTheSameEvents(t *testing.T) {
	text := "a \"quoted\" wörd\n"
	evs := []event.Event{
		{RunID: "r", Seq: 20, Time: 5, Step: 1, Type: event.TextDelta, Data: &event.Delta{Text: text}},
		{RunID: "r", Seq: 60, Time: 6, Step: 1, Type: event.ThinkingDelta, Data: &event.Delta{Text: text, Block: 2}},
		{RunID: "r", Seq: 61, Time: 7, Step: 1, Type: event.StepCompleted, Data: &event.Step{Model: "m"}},
		{RunID: "r", Seq: 90, Time: 8, Step: 2, Type: event.TextDelta, Data: &event.Delta{Text: text}},
		{RunID: "other", Seq: 120, Time: 8, Step: 2, Type: event.TextDelta, Data: &event.Delta{Text: text}},
	}
	n := note{Kind: noteEvents, Tenant: "t", Run: "r", Prev: 3, Durable: 2, Whole: true, Events: evs}
	m, notes, ok := decodeMessage(encodeMessage("s", 4, n.encode()))
	if !ok || m.Sender != "s" || m.Count != 4 {
		t.Fatalf("%+v", m)
	}
	var got []event.Event
	prev := n.Prev
	for i, x := range notes {
		if x.Prev != prev || x.Durable != 2 || x.ref() != n.ref() || x.Whole != (i == 0) {
			t.Errorf("note %d: %+v after %d", i, x, prev)
		}
		got = append(got, x.Events...)
		prev = x.Events[len(x.Events)-1].Seq
	}
	for i := range evs {
		want, _ := evs[i].AppendJSON(nil)
		is, _ := got[i].AppendJSON(nil)
		if !bytes.Equal(is, want) {
			t.Errorf("%s, want %s", is, want)
		}
	}
	// One note that nobody understands spoils nothing.
	raw := encodeMessage("s", 5, [][]byte{[]byte(`{"k":"events","e":[{"v":99}]}`), []byte(`{"k":"work"}`)})
	if _, notes, ok := decodeMessage(raw); !ok || len(notes) != 1 || notes[0].Kind != noteWork {
		t.Errorf("%v %+v", ok, notes)
	}
}

// TestTheTailHasNoGap: of what another node sent, in whatever order it comes.
func TestTheTailHasNoGap(t *testing.T) {
	word := func(seq int64, s string) event.Event {
		return event.Event{Seq: seq, Step: 1, Type: event.TextDelta, Data: &event.Delta{Text: s}}
	}
	said := func(x *tail) string {
		p, _ := x.piece()
		return fmt.Sprint(p.prev, " ", show(p.events))
	}
	x := &tail{}
	for i, c := range []struct {
		p    piece
		gap  bool
		want string
	}{
		{piece{prev: 10, durable: 10, events: []event.Event{word(12, "ab")}}, false, `10 12:"ab" `},
		{piece{prev: 12, durable: 10, events: []event.Event{word(14, "cd")}}, false, `10 14:"abcd" `},
		{piece{prev: 12, durable: 10, events: []event.Event{word(14, "cd")}}, false, `10 14:"abcd" `},
		{piece{prev: 13, durable: 10, events: []event.Event{word(16, "def")}}, false, `10 16:"abcdef" `},
		{piece{prev: 18, durable: 10, events: []event.Event{word(20, "ij")}}, true, `18 20:"ij" `},
		{piece{prev: 10, durable: 10, whole: true, events: []event.Event{word(20, "abcdefghij")}}, false, `10 20:"abcdefghij" `},
		{piece{prev: 20, durable: 21, events: []event.Event{{Seq: 21, Type: event.StepCompleted}}}, false, `0 `},
		{piece{prev: 30, durable: 21, events: []event.Event{word(32, "xy")}}, true, `30 32:"xy" `},
		{piece{durable: 32}, false, `0 `},
	} {
		if gap := x.add(&c.p); gap != c.gap || said(x) != c.want {
			t.Errorf("%d: %s (gap %t), want %s (%t)", i, said(x), gap, c.want, c.gap)
		}
	}
	for i := range int64(20) {
		x.add(&piece{prev: 100 + i*1e5, durable: 100, events: []event.Event{word(100+(i+1)*1e5, strings.Repeat("x", 1e5))}})
	}
	if x.size > tailMost {
		t.Errorf("it holds %d bytes", x.size)
	}
}
