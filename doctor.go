package agentd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/store"
	"agentd/internal/store/postgres"
	"agentd/internal/store/sqlite"
)

// Findings of a check of a store.
type (
	// Finding is something that is wrong with a store.
	Finding = store.Finding
	// CheckReport is what a check found, and how much there was to look at.
	CheckReport = store.Report
)

// CheckStore looks at everything in the store at a data folder, or at the URL of a
// PostgreSQL database. Without repair it
// changes nothing and works beside a server; with it the store must not be in use,
// and what is safe is repaired: nothing that holds what somebody said is deleted.
// An error says that the store could not be checked.
func CheckStore(ctx context.Context, data string, repair bool) (_ *CheckReport, err error) {
	if postgres.Is(data) {
		return checkDatabase(ctx, data, repair)
	}
	path := storePath(data)
	if path == ":memory:" {
		return nil, &fault.Error{Op: "agentd.CheckStore", Kind: fault.Invalid, Field: "data", Err: errors.New("a store in memory can not be checked"), Hint: "Name a data folder."}
	}
	if _, err := os.Stat(path); err != nil {
		return nil, &fault.Error{Op: "agentd.CheckStore", Kind: fault.NotFound, Err: fmt.Errorf("there is no store: %w", err),
			Hint: "Name the data folder with --data; a store is created by the first run or server."}
	}
	st, err := sqlite.Open(path, &sqlite.Options{ReadOnly: !repair})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	var c store.Checker = st
	return c.Check(ctx, store.CheckOptions{Repair: repair, State: engine.Examine, Now: time.Now().UnixMilli()})
}

// checkDatabase is CheckStore for PostgreSQL. To repair it keeps everybody else out.
func checkDatabase(ctx context.Context, url string, repair bool) (_ *CheckReport, err error) {
	st, err := postgres.Open(ctx, url, &postgres.Options{ReadOnly: !repair, Exclusive: repair})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	return st.Check(ctx, store.CheckOptions{Repair: repair, State: engine.Examine, Now: time.Now().UnixMilli()})
}
