package storetest

import (
	"sync"

	"agentd/fault"
	"agentd/internal/store"
)

func testMemories(f *fixture) {
	const other = "tenant-b"
	ctx := f.Context()
	first := &store.Memory{Name: "user/\x00ö", Text: []byte("- a\xff\n"), Revision: 1, Updated: 1000}
	filled(f, first)
	read := func(tenant, name string) (*store.Memory, error) { return f.store.Memory(ctx, tenant, name) }
	if _, err := read(tenant, first.Name); fault.KindOf(err) != fault.NotFound {
		f.Fatalf("before it is there: %v", err)
	}
	f.commit(&store.Tx{Memories: []*store.Memory{first}})
	f.commit(&store.Tx{Tenant: other, Memories: []*store.Memory{{Name: first.Name, Text: []byte("other"), Revision: 1, Updated: 1}}})
	f.again()
	equal(f, "memory", ok[*store.Memory](f)(read(tenant, first.Name)), first)
	equal(f, "the other tenant's", string(ok[*store.Memory](f)(read(other, first.Name)).Text), "other")
	for _, at := range [][2]string{{other, "no"}, {"nobody", first.Name}} {
		if _, err := read(at[0], at[1]); fault.KindOf(err) != fault.NotFound {
			f.Errorf("%q: %v", at, err)
		}
	}

	// A change says which text it is a change of.
	f.refused(&store.Tx{Memories: []*store.Memory{first}}, store.ErrConflict)
	f.refused(&store.Tx{Memories: []*store.Memory{{Name: "new", Text: []byte("x"), Revision: 2, Updated: 1}}}, store.ErrConflict)
	f.refused(&store.Tx{Tenant: "nobody", Memories: []*store.Memory{{Name: first.Name, Text: []byte("x"), Revision: 2, Updated: 1}}}, store.ErrConflict)
	second := &store.Memory{Name: first.Name, Text: []byte{}, Revision: 2, Updated: 2000}
	f.commit(&store.Tx{Memories: []*store.Memory{second}})
	got := ok[*store.Memory](f)(read(tenant, first.Name))
	if len(got.Text) != 0 || got.Revision != 2 || got.Updated != 2000 {
		f.Errorf("emptied: %+v", got)
	}
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			errs[i] = f.commitIn(ctx, &store.Tx{Memories: []*store.Memory{{Name: first.Name, Text: []byte("y"), Revision: 3, Updated: 3000}}})
		})
	}
	wg.Wait()
	f.oneWinner(errs, func(err error) bool { return fault.KindOf(err) == fault.Conflict })
	for _, broken := range []*store.Memory{{Text: []byte("x"), Revision: 1}, {Name: "x", Revision: 0}} {
		if err := f.commitIn(ctx, &store.Tx{Memories: []*store.Memory{broken}}); fault.KindOf(err) != fault.Invalid {
			f.Errorf("%+v: %v", broken, err)
		}
	}
}
