package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentd/fault"
)

// Limits bound what is remembered. A value of 0 means its default.
type Limits struct {
	// Bytes is how large a document may become; default 16 KiB. All of it may be
	// read by every run.
	Bytes int
	// EntryBytes is how long one entry may be; default 500.
	EntryBytes int
}

func (l Limits) withDefaults() Limits {
	if l.Bytes <= 0 {
		l.Bytes = 16 << 10
	}
	if l.EntryBytes <= 0 {
		l.EntryBytes = 500
	}
	return l
}

// Who is whose memory is meant.
type Who struct {
	Tenant string
	// User is the tenant's user; "" where nobody says who it is.
	User string
}

// Query says what a caller of the API or the command wants to see of a tenant's.
type Query struct {
	// User is whose memory is meant; "" for what no user was named for.
	User string
	// Profile is the one by whose rules it is read and changed, and whose
	// memory_provider has it; "" for none: agentd's own.
	Profile string
}

func (w Who) place(s Scope) Place { return Place{Tenant: w.Tenant, User: w.User, Scope: s} }

// Memory is what is remembered, under the rules of one profile. It is safe for
// concurrent use; errors are *fault.Error.
type Memory struct {
	keeper Keeper
	filter *Filter
	limits Limits
	days   int
	frozen bool
	now    func() time.Time
}

// Options are the rules of a memory.
type Options struct {
	Keeper Keeper
	// Filter is what may be kept; nil refuses secrets alone.
	Filter *Filter
	Limits Limits
	// RetentionDays is after how many days something is forgotten; 0: never.
	RetentionDays int
	// Frozen hides what is too old instead of deleting it.
	Frozen bool
	// Now is the clock; nil means the real one.
	Now func() time.Time
}

// New makes a memory.
func New(o *Options) (*Memory, error) {
	m := &Memory{keeper: o.Keeper, filter: o.Filter, limits: o.Limits.withDefaults(), days: o.RetentionDays, frozen: o.Frozen, now: o.Now}
	if m.now == nil {
		m.now = time.Now
	}
	if m.filter == nil {
		var err error
		if m.filter, err = NewFilter(nil, nil); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Memory) today() string { return m.now().UTC().Format(time.DateOnly) }

// forgotten is the day before which everything is forgotten; "" if nothing is.
func (m *Memory) forgotten() string {
	if m.days <= 0 {
		return ""
	}
	return m.now().UTC().AddDate(0, 0, -m.days).Format(time.DateOnly)
}

// documents gives the documents in the order of [Scopes], without what is too old,
// which is deleted by that.
func (m *Memory) documents(ctx context.Context, who Who) ([]*Document, error) {
	var out []*Document
	for _, s := range Scopes() {
		d, err := m.keeper.Load(ctx, who.place(s))
		if err != nil {
			return nil, err
		}
		if old := m.forgotten(); old != "" && d.Expire(old) > 0 && !m.frozen {
			// What can not be deleted now is not shown, and tried again the next time.
			_ = m.keeper.Change(ctx, who.place(s), func(d *Document) error {
				d.Expire(old)
				return nil
			})
		}
		out = append(out, d)
	}
	return out, nil
}

// List gives everything that is remembered, the global before the project's.
func (m *Memory) List(ctx context.Context, who Who) ([]Entry, error) {
	docs, err := m.documents(ctx, who)
	var out []Entry
	for _, d := range docs {
		out = append(out, d.Entries()...)
	}
	return out, err
}

// Show gives one entry.
func (m *Memory) Show(ctx context.Context, who Who, id string) (Entry, error) {
	all, err := m.List(ctx, who)
	if err != nil {
		return Entry{}, err
	}
	for _, e := range all {
		if e.ID == id {
			return e, nil
		}
	}
	return Entry{}, missing(id)
}

// Add remembers e.Text in e.Section ("": Context) of e.Scope ("": global), by
// e.Origin and e.Run. It gives the entry as it is kept, and false if it was known.
func (m *Memory) Add(ctx context.Context, who Who, e Entry) (Entry, bool, error) {
	if e.Scope == "" {
		e.Scope = Global
	}
	if e.Scope != Global && e.Scope != Project {
		return Entry{}, false, &fault.Error{Op: "memory", Kind: fault.Invalid, Field: "scope", Err: fmt.Errorf("%q is not a scope", e.Scope), Hint: "Use global or project."}
	}
	var err error
	if e.Text, err = m.filter.Clean(e.Text, m.limits.EntryBytes); err != nil {
		return Entry{}, false, err
	}
	if e.Section, err = section(e.Section); err != nil {
		return Entry{}, false, err
	}
	e.Date = m.today()
	out, added := e, false
	err = m.change(ctx, who.place(e.Scope), func(d *Document) error {
		out, added = d.Add(e)
		if e.Origin == Person {
			d.own(e.Section)
		}
		return nil
	})
	return out, added, err
}

// Edit gives an entry other words, and another section if one is named. From then on
// it is a person's.
func (m *Memory) Edit(ctx context.Context, who Who, id, text, inSection string) (Entry, error) {
	have, err := m.Show(ctx, who, id)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Origin: Person, Date: m.today(), Text: have.Text}
	if text != "" {
		if e.Text, err = m.filter.Clean(text, m.limits.EntryBytes); err != nil {
			return Entry{}, err
		}
	}
	if inSection != "" {
		if e.Section, err = section(inSection); err != nil {
			return Entry{}, err
		}
	}
	out := e
	err = m.change(ctx, who.place(have.Scope), func(d *Document) error {
		var ok bool
		if out, ok = d.Replace(id, e); !ok {
			return missing(id)
		}
		if inSection != "" {
			d.own(e.Section)
		}
		return nil
	})
	return out, err
}

// Remove forgets an entry.
func (m *Memory) Remove(ctx context.Context, who Who, id string) error {
	have, err := m.Show(ctx, who, id)
	if err != nil {
		return err
	}
	return m.change(ctx, who.place(have.Scope), func(d *Document) error {
		if !d.Remove(id) {
			return missing(id)
		}
		return nil
	})
}

// change is a change that must fit.
func (m *Memory) change(ctx context.Context, p Place, f func(*Document) error) error {
	return m.keeper.Change(ctx, p, func(d *Document) error {
		if old := m.forgotten(); old != "" {
			d.Expire(old)
		}
		before := len(d.String())
		if err := f(d); err != nil {
			return err
		}
		if after := len(d.String()); after > m.limits.Bytes && after > before {
			return &fault.Error{Op: "memory", Kind: fault.TooLarge, Field: string(p.Scope), Err: errors.New("the memory is full"),
				Hint: fmt.Sprintf("It may have %d bytes (memory.max_bytes in agentd.yaml). Remove what is no longer needed: agentd memory remove ID.", m.limits.Bytes)}
		}
		return nil
	})
}
