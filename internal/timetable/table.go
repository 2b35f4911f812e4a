package timetable

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/schedule"
	"agentd/internal/store"
)

// Runs is what starts runs.
type Runs interface {
	Start(ctx context.Context, req engine.StartRequest) (*engine.Run, error)
	CreateSession(ctx context.Context, req engine.SessionRequest) (*engine.SessionView, error)
}

// Store keeps schedules.
type Store interface {
	store.ScheduleReader
	Commit(ctx context.Context, tx *store.Tx) error
}

// Config configures a timetable. Store and Runs are required.
type Config struct {
	Store Store
	Runs  Runs
	// Knows is the error of a profile that a tenant does not have; nil knows all.
	Knows func(tenant, profile string) error
	// Fixed are the schedules of the configuration. Their names are their ids.
	Fixed []Fixed
	// Max is how many schedules a tenant may make; 0 means 100.
	Max int
	// Poll is how often Run looks for what others changed; 0 means ten seconds.
	Poll time.Duration
	// Changed is called after a change was made here; nil is not.
	Changed func()
	// Now and NewID are the clock and where ids come from; nil means the real ones.
	Now   func() time.Time
	NewID func() string
	// Log gets what operators must know; nil discards.
	Log *slog.Logger
}

// Fixed is a schedule of the configuration.
type Fixed struct {
	Name, Tenant string
	Plan
	Paused bool
}

// Plan is what a schedule does. Its JSON is stored: fields are only ever added.
type Plan struct {
	// Cron has five fields, TimeZone is an IANA name ("": UTC).
	Cron     string `json:"cron"`
	TimeZone string `json:"time_zone,omitempty"`
	Profile  string `json:"profile"`
	Input    string `json:"input"`
	// Session is new or one, WhenBusy reject, enqueue or interrupt.
	Session  string `json:"session"`
	WhenBusy string `json:"when_busy"`
	// SessionMode is ask, plan or edit; "" leaves the mode of the session as it is.
	SessionMode string `json:"session_mode,omitempty"`
	// CatchUpMS is how late a run may be started that was due while nobody was there.
	CatchUpMS int64 `json:"catch_up_ms,omitempty"`
	// Since is from when on times count, in Unix milliseconds.
	Since int64 `json:"since,omitempty"`
	// Title is that of the session of all runs: the schedule's first name.
	Title string `json:"title,omitempty"`
}

// IDPrefix begins the ids of schedules that people made. Those of the configuration
// have no such names.
const IDPrefix = "sch_"

// NameRE is what schedules may be called.
var NameRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Table is a timetable. It is safe for concurrent use.
type Table struct {
	cfg   Config
	fixed []Fixed // by name
	kick  chan struct{}
}

// New makes a timetable. It tells nothing before Run, or Load and Fire.
func New(cfg Config) *Table {
	if cfg.Max <= 0 {
		cfg.Max = 100
	}
	if cfg.Poll <= 0 {
		cfg.Poll = 10 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = func() string { return strings.ToLower(rand.Text()) }
	}
	if cfg.Knows == nil {
		cfg.Knows = func(string, string) error { return nil }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	t := &Table{cfg: cfg, kick: make(chan struct{}, 1)}
	t.fixed = slices.SortedFunc(slices.Values(cfg.Fixed), func(a, b Fixed) int { return strings.Compare(a.Name, b.Name) })
	return t
}

// Request makes or changes a schedule: what is nil stays as it is, or is the default.
type Request struct {
	Name     *string `json:"name"`
	Cron     *string `json:"cron"`
	TimeZone *string `json:"time_zone"`
	Profile  *string `json:"profile"`
	Input    *string `json:"input"`
	Session  *string `json:"session"`
	WhenBusy *string `json:"when_busy"`
	// SessionMode is ask, plan or edit; "" leaves the mode of the session as it is.
	SessionMode *string `json:"session_mode"`
	// CatchUp is a duration such as 2h or 30m.
	CatchUp *string `json:"catch_up"`
	Paused  *bool   `json:"paused"`
}

func invalid(field, hint, format string, args ...any) error {
	return &fault.Error{Kind: fault.Invalid, Field: field, Err: fmt.Errorf(format, args...), Hint: hint}
}

// apply changes a row as a request says, and checks the whole; but what others may have
// taken away since it was made (its profile, its name) only where it is asked for, so
// that a schedule which lost it can be paused and put right.
func (t *Table) apply(row *store.Schedule, p *Plan, req *Request) error {
	goesOn := req.Paused != nil && !*req.Paused
	for _, f := range []struct{ from, to *string }{{req.Name, &row.Name}, {req.Cron, &p.Cron}, {req.TimeZone, &p.TimeZone}, {req.Profile, &p.Profile},
		{req.Input, &p.Input}, {req.Session, &p.Session}, {req.WhenBusy, &p.WhenBusy}, {req.SessionMode, &p.SessionMode}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	if req.CatchUp != nil {
		d, err := time.ParseDuration(*req.CatchUp)
		if err != nil || d < 0 || d > schedule.MaxCatchUp {
			return invalid("catch_up", "Write it like 30m or 2h; 0s leaves missed runs out.", "is no duration from 0s to %s", schedule.MaxCatchUp)
		}
		p.CatchUpMS = d.Milliseconds()
	}
	if req.Paused != nil {
		row.Paused = *req.Paused
	}
	if _, err := schedule.Parse(p.Cron, ""); err != nil {
		return invalid("cron", `Write something like "0 3 * * 1-5": at 3:00, Monday to Friday.`, "%w", err)
	}
	if _, err := schedule.Parse(p.Cron, p.TimeZone); err != nil {
		return invalid("time_zone", "Use an IANA name such as Europe/Berlin.", "%w", err)
	}
	switch {
	case !NameRE.MatchString(row.Name) || strings.HasPrefix(row.Name, IDPrefix):
		return invalid("name", "Use 1 to 64 letters, digits, dots, _ or -, beginning with a letter or digit, and not with "+IDPrefix+".", "is not a name")
	case p.Input == "":
		return invalid("input", "Say what the runs are to do.", "is empty")
	case p.Session != "new" && p.Session != "one":
		return invalid("session", "Use new or one.", "%q is none of the choices", p.Session)
	case p.WhenBusy != "reject" && p.WhenBusy != "enqueue" && p.WhenBusy != "interrupt":
		return invalid("when_busy", "Use reject, enqueue or interrupt.", "%q is none of the choices", p.WhenBusy)
	case p.SessionMode != "" && p.SessionMode != engine.ModeAsk && p.SessionMode != engine.ModePlan && p.SessionMode != engine.ModeEdit:
		return invalid("session_mode", "Use ask, plan or edit, or nothing for the mode that the session has.", "%q is not a mode of a session", p.SessionMode)
	case p.Profile == "":
		return invalid("profile", "Name the profile of the runs.", "is empty")
	}
	for _, f := range t.fixed {
		if req.Name != nil && f.Tenant == row.Tenant && f.Name == row.Name {
			return nameTaken(row.Name)
		}
	}
	if err := t.cfg.Knows(row.Tenant, p.Profile); err != nil && (req.Profile != nil || goesOn) {
		return &fault.Error{Kind: fault.Invalid, Field: "profile", Err: err, Hint: fault.HintOf(err)}
	}
	return nil
}

func nameTaken(name string) error {
	return &fault.Error{Kind: fault.Conflict, Field: "name", Err: errors.New("another schedule is named " + name), Hint: "Choose another name, or change that one."}
}

// Create makes a schedule. A name that is taken is a conflict, so that a repetition
// makes no second one.
func (t *Table) Create(ctx context.Context, tenant string, req Request) (*View, error) {
	now := t.cfg.Now().UnixMilli()
	row := &store.Schedule{ID: IDPrefix + t.cfg.NewID(), Tenant: tenant, Created: now, ScheduleUpdate: store.ScheduleUpdate{Revision: 1, Updated: now}}
	p := Plan{Session: "new", WhenBusy: "reject", Since: now}
	if err := t.apply(row, &p, &req); err != nil {
		return nil, err
	}
	have, _, err := t.cfg.Store.Schedules(ctx, tenant, store.ScheduleFilter{Limit: t.cfg.Max})
	if err != nil {
		return nil, err
	}
	if len(have) >= t.cfg.Max {
		return nil, &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("there are %d schedules, and no more than %d may be made (limits.max_schedules)", len(have), t.cfg.Max), Hint: "Delete one that is not needed."}
	}
	p.Title = row.Name
	if row.Plan, err = json.Marshal(p); err != nil {
		return nil, err
	}
	if err := t.cfg.Store.Commit(context.WithoutCancel(ctx), &store.Tx{Tenant: tenant, NewSchedules: []*store.Schedule{row}}); err != nil {
		if errors.Is(err, store.ErrConflict) {
			return nil, nameTaken(row.Name)
		}
		return nil, err
	}
	t.changed()
	return t.view(ctx, row)
}

// retries is how often a change is made again that another one was ahead of.
const retries = 5

// Update changes a schedule. Times count anew from a change of cron or time zone on,
// and from when it goes on after a pause.
func (t *Table) Update(ctx context.Context, ref engine.Ref, req Request) (*View, error) {
	for try := 1; ; try++ {
		row, p, err := t.row(ctx, ref)
		if err != nil {
			return nil, err
		}
		before, paused := p, row.Paused
		if err := t.apply(row, &p, &req); err != nil {
			return nil, err
		}
		row.Updated = max(row.Updated, t.cfg.Now().UnixMilli())
		if p.Cron != before.Cron || p.TimeZone != before.TimeZone || paused && !row.Paused {
			p.Since = row.Updated
		}
		row.Revision++
		if row.Plan, err = json.Marshal(p); err != nil {
			return nil, err
		}
		err = t.cfg.Store.Commit(context.WithoutCancel(ctx), &store.Tx{Tenant: ref.Tenant,
			Schedules: []store.ScheduleChange{{ID: row.ID, Name: row.Name, Plan: row.Plan, ScheduleUpdate: row.ScheduleUpdate}}})
		if errors.Is(err, store.ErrConflict) {
			if now, _, e := t.row(ctx, ref); e == nil && now.Revision == row.Revision-1 {
				return nil, nameTaken(row.Name)
			}
			if try < retries {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		t.changed()
		return t.view(ctx, row)
	}
}

// Delete ends a schedule. The runs that it started stay.
func (t *Table) Delete(ctx context.Context, ref engine.Ref) error {
	row, _, err := t.row(ctx, ref)
	if row == nil {
		return err // one that can not be read is one to delete
	}
	err = t.cfg.Store.Commit(context.WithoutCancel(ctx), &store.Tx{Tenant: ref.Tenant, DropSchedules: []string{ref.ID}})
	if err == nil {
		t.changed()
	}
	return err
}

// row gives a schedule that people made.
func (t *Table) row(ctx context.Context, ref engine.Ref) (*store.Schedule, Plan, error) {
	if t.find(ref) != nil {
		return nil, Plan{}, &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("the schedule %s is in agentd.yaml", ref.ID), Hint: "Change it there, and restart agentd."}
	}
	row, err := t.cfg.Store.Schedule(ctx, ref.Tenant, ref.ID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, Plan{}, &fault.Error{Kind: fault.NotFound, Err: errors.New("there is no schedule " + ref.ID), Hint: "GET /schedules and agentd schedules ls list them."}
	}
	if err != nil {
		return nil, Plan{}, err
	}
	p, err := planOf(row)
	return row, p, err
}

func planOf(row *store.Schedule) (p Plan, err error) {
	if err := json.Unmarshal(row.Plan, &p); err != nil {
		return p, &fault.Error{Kind: fault.Internal, Err: fmt.Errorf("the schedule %s can not be read: %w", row.ID, err), Hint: "Delete it, and make it again."}
	}
	return p, nil
}

// find gives a schedule of the configuration, or nil.
func (t *Table) find(ref engine.Ref) *Fixed {
	for i := range t.fixed {
		if f := &t.fixed[i]; f.Tenant == ref.Tenant && f.Name == ref.ID {
			return f
		}
	}
	return nil
}

func (t *Table) changed() {
	select {
	case t.kick <- struct{}{}:
	default:
	}
	if t.cfg.Changed != nil {
		t.cfg.Changed()
	}
}
