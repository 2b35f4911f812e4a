package form

import (
	"sync"

	"agentd/internal/store"
)

// scratch unpacks bodies one after the other, into memory that the next one uses again. The
// zero value is ready; it is for one goroutine.
type scratch struct{ free []byte }

// body unpacks that of an entry; it is valid until the next one.
func (s *scratch) body(e *store.Entry) ([]byte, error) {
	all := Bodies{s.free}
	b, err := all.Unpack(e.Body)
	if s.free == nil {
		s.free = all.free // what is left of a piece that it began
	}
	return b, err
}

// batch is how many entries are given to a store.Ahead together.
const batch = 64

// AheadOf gives entries to a store.Ahead while more of them are read.
type AheadOf struct {
	to    store.Ahead
	given int
	work  chan []*store.Entry
	wg    sync.WaitGroup
}

// Ahead gives entries to f, and none if that is nil.
func Ahead(f store.Ahead) *AheadOf { return &AheadOf{to: f} }

// Add is called with all that was read so far, each time there is more. Of what it was
// called with before nothing may have changed.
func (a *AheadOf) Add(all []*store.Entry) {
	if a.to == nil || len(all)-a.given < batch {
		return
	}
	if a.work == nil {
		a.work = make(chan []*store.Entry, 64)
		a.wg.Go(a.do)
	}
	a.work <- all[a.given:len(all):len(all)]
	a.given = len(all)
}

func (a *AheadOf) do() {
	var s scratch
	for es := range a.work {
		a.to(es, s.body)
	}
}

// End gives the rest of what was read, and returns when all is done. Bodies that are left
// are still packed.
func (a *AheadOf) End(all []*store.Entry) {
	if a.to == nil {
		return
	}
	var s scratch
	if rest := all[a.given:]; len(rest) > 0 {
		a.to(rest, s.body)
	}
	if a.work != nil {
		close(a.work)
		a.do()
		a.wg.Wait()
	}
}
