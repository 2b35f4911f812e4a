package storetest

import (
	"fmt"

	"agentd/internal/store"
)

// testTracePages reads a trace in parts: every part is what the whole has there,
// over the borders of commits and of what is read at a time.
func testTracePages(f *fixture) {
	f.begin("s1", "r1")
	f.begin("s2", "r2")
	var want []*store.Trace
	for i := range 150 {
		tx := &store.Tx{}
		for j := range i % 3 {
			tx.Trace = append(tx.Trace, &store.Trace{RunID: "r1", Time: int64(i), Kind: "k", Body: []byte(fmt.Sprintf(`{"n":%d,"j":%d}`, i, j))})
		}
		want = append(want, tx.Trace...)
		tx.Trace = append(tx.Trace, &store.Trace{RunID: "r2", Kind: "other"})
		if i%5 == 0 {
			tx.Events = append(tx.Events, event("r1", int64(i+1)))
		}
		f.commit(tx)
	}
	for _, limit := range []int{1, 7, 64, 1000} {
		var got []*store.Trace
		for {
			page := ok[[]*store.Trace](f)(f.store.Trace(f.Context(), tenant, "r1", len(got), limit))
			if len(page) > limit {
				f.Errorf("%d rows, limit %d", len(page), limit)
			}
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
		}
		equal(f, fmt.Sprint("trace by ", limit), got, want)
	}
	equal(f, "after the end", len(ok[[]*store.Trace](f)(f.store.Trace(f.Context(), tenant, "r1", len(want)+5, 0))), 0)
}
