package memory

import (
	"context"
	"errors"
	"time"

	"agentd/fault"
	"agentd/internal/store"
)

// Rows is what [NewRows] needs of a store.
type Rows interface {
	store.MemoryReader
	Commit(ctx context.Context, tx *store.Tx) error
}

// rows keeps documents in the store: each tenant has its own, and every node that
// shares the store the same.
type rows struct {
	store   Rows
	project string
	now     func() time.Time
}

// NewRows keeps documents in a store. project names the folder that project is
// about; now is the clock.
func NewRows(s Rows, project string, now func() time.Time) Keeper {
	return &rows{store: s, project: project, now: now}
}

func (r *rows) name(p Place) string {
	switch {
	case p.Scope == Project:
		return "project/" + r.project
	case p.User != "":
		return "user/" + p.User
	}
	return "tenant"
}

func (r *rows) row(ctx context.Context, p Place) (*store.Memory, error) {
	m, err := r.store.Memory(ctx, p.Tenant, r.name(p))
	if errors.Is(err, store.ErrNotFound) {
		return &store.Memory{Name: r.name(p)}, nil
	}
	return m, err
}

// Load implements Keeper.
func (r *rows) Load(ctx context.Context, p Place) (*Document, error) {
	m, err := r.row(ctx, p)
	if err != nil {
		return &Document{scope: p.Scope}, err
	}
	return Parse(p.Scope, string(m.Text)), nil
}

// attempts is how often a change is made that others come ahead of: each time one
// of them has got on.
const attempts = 50

// Change implements Keeper.
func (r *rows) Change(ctx context.Context, p Place, change func(*Document) error) error {
	for range attempts {
		m, err := r.row(ctx, p)
		if err != nil {
			return err
		}
		d := Parse(p.Scope, string(m.Text))
		if err := change(d); err != nil {
			return err
		}
		if d.String() == string(m.Text) {
			return nil
		}
		next := &store.Memory{Name: m.Name, Text: []byte(d.String()), Revision: m.Revision + 1, Updated: r.now().UnixMilli()}
		switch err = r.store.Commit(ctx, &store.Tx{Tenant: p.Tenant, Memories: []*store.Memory{next}}); {
		case err == nil:
			return nil
		case !errors.Is(err, store.ErrConflict):
			return err
		}
	}
	return &fault.Error{Op: "memory", Kind: fault.Conflict, Err: errors.New("others change it all the time"), Hint: "Try again."}
}

// Local keeps the documents of one tenant, where nobody says who the user is, as
// files, and everything else in rows: a file belongs to whoever can read the folder.
type Local struct {
	Tenant string
	Files  *Files
	Rows   Keeper
}

func (l *Local) of(p Place) Keeper {
	if l.Files != nil && p.Tenant == l.Tenant && (p.Scope == Project || p.User == "") {
		return l.Files
	}
	return l.Rows
}

// Load implements Keeper.
func (l *Local) Load(ctx context.Context, p Place) (*Document, error) { return l.of(p).Load(ctx, p) }

// Change implements Keeper.
func (l *Local) Change(ctx context.Context, p Place, change func(*Document) error) error {
	return l.of(p).Change(ctx, p, change)
}
