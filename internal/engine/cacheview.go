package engine

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/store"
	"agentd/message"
)

// CacheView is what the prompt caches of providers did for a session.
type CacheView struct {
	SessionID string `json:"session_id"`
	// Steps are those that were asked for, oldest first; Total is of all. Cursor is where
	// to go on, "" at the end.
	Steps  []CacheStep `json:"steps"`
	Total  CacheTotal  `json:"total"`
	Cursor string      `json:"cursor,omitempty"`
}

// CacheStep is one reply. Its prompt has Input, CacheRead and CacheWrite tokens.
type CacheStep struct {
	RunID   string `json:"run_id"`
	Step    int    `json:"step"`
	Time    string `json:"ts"`
	Model   string `json:"model,omitempty"`
	EntryID string `json:"entry_id,omitempty"`

	Input      int64 `json:"input"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	Output     int64 `json:"output"`
	// Ratio is the part of the prompt that was read from the cache, 0 to 1.
	Ratio float64 `json:"cache_ratio"`
	// Cost is what the call cost, Saved what it would have cost more without a cache.
	Cost  message.Money `json:"cost_usd"`
	Saved message.Money `json:"saved_usd"`

	// ComparedRun and ComparedStep name the step before on the path of the reply, with which
	// this one is compared: after the session went back, not the one that was made last. They
	// are empty for the first one of a path.
	ComparedRun  string `json:"compared_run_id,omitempty"`
	ComparedStep int    `json:"compared_step,omitempty"`
	// WaitSeconds is how long after that request this one was made, CacheSeconds
	// how long the provider keeps what it has read, at the least; 0: nobody knows.
	WaitSeconds  float64 `json:"wait_seconds,omitempty"`
	CacheSeconds int64   `json:"cache_seconds,omitempty"`
	// Miss is why less was read than the request before left there: one of the constants
	// below, "" if all of it was. Missed is how many tokens.
	Miss   string `json:"miss,omitempty"`
	Missed int64  `json:"missed_tokens,omitempty"`
	// Broken says what changed, if the request was no extension of the one before.
	Broken *event.CacheBreak `json:"broken,omitempty"`
}

// Why a cache was not read to its end.
const (
	MissFirst    = "first"    // there was no request before on the path
	MissBroken   = "broken"   // the request did not begin with all of the one before
	MissExpired  = "expired"  // the wait was longer than the provider keeps what it has read
	MissSmall    = "small"    // the request before was too short to be kept
	MissProvider = "provider" // the provider did not have it any more, or not where it looked
	MissNone     = "none"     // the provider reports no cache at all
)

// CacheTotal sums steps.
type CacheTotal struct {
	Steps      int           `json:"steps"`
	Input      int64         `json:"input"`
	CacheRead  int64         `json:"cache_read"`
	CacheWrite int64         `json:"cache_write"`
	Output     int64         `json:"output"`
	Ratio      float64       `json:"cache_ratio"`
	Cost       message.Money `json:"cost_usd"`
	Saved      message.Money `json:"saved_usd"`
	// Breaks and Expired count the steps that missed for that.
	Breaks  int `json:"breaks"`
	Expired int `json:"expired"`
}

// Rules of thumb for steps of which providers say no more than tokens.
const (
	smallPrompt = 1024 // what no provider keeps
	roundedOff  = 256  // what rounding may take
)

// Cache gives what caches did for a session: steps after a cursor ("" for the first), at
// most limit (0: all). Each is compared with the step before on its path. It reads the
// journals of the session's runs, and its tree.
func (e *Engine) Cache(ctx context.Context, session Ref, cursor string, limit int) (*CacheView, error) {
	_, t, err := e.tree(ctx, session)
	if err != nil {
		return nil, err
	}
	skip := 0
	if cursor != "" {
		if skip, err = strconv.Atoi(cursor); err != nil || skip < 0 {
			return nil, &fault.Error{Kind: fault.Invalid, Field: "cursor", Err: errors.New("it is not a cursor of this list"), Hint: "Take the one that the page before gave."}
		}
	}
	var runs []*store.Run
	f := store.RunFilter{SessionID: session.ID, Limit: 200}
	for {
		page, next, err := e.store.Runs(ctx, session.Tenant, f)
		if err != nil {
			return nil, internal("engine.Cache", err)
		}
		runs = append(runs, page...)
		if f.Cursor = next; next == "" {
			break
		}
	}
	slices.Reverse(runs)
	h := cacheHistory{view: &CacheView{SessionID: session.ID, Steps: []CacheStep{}}, parents: make(map[string]string, len(t.Nodes))}
	for _, n := range t.Nodes {
		h.parents[n.ID] = n.Parent
	}
	for _, r := range runs {
		for ev, err := range e.Replay(ctx, Ref{session.Tenant, r.ID}, 0) {
			if err != nil {
				return nil, err
			}
			h.add(&ev)
		}
	}
	v := h.done()
	v.Steps = v.Steps[min(skip, len(v.Steps)):]
	if limit > 0 && len(v.Steps) > limit {
		v.Steps, v.Cursor = v.Steps[:limit], strconv.Itoa(skip+limit)
	}
	return v, nil
}

// cacheHistory makes a view of events.
type cacheHistory struct {
	view    *CacheView
	parents map[string]string // of the session's entries
	began   int64             // when the step under way was asked, Unix milliseconds
	keep    int64             // its CacheSeconds
	broken  *event.CacheBreak
	asked   []int64 // when the request of each step was made
	reports bool    // some step read or wrote
}

func (h *cacheHistory) add(ev *event.Event) {
	switch d := ev.Data.(type) {
	case *event.Retry:
		h.began = ev.Time // it is made again
	case *event.CacheBreak:
		h.broken = d
	case *event.Step:
		if ev.Type == event.StepStarted {
			h.began, h.keep = ev.Time, d.CacheSeconds
			return
		}
		h.step(ev, d)
	}
}

func (h *cacheHistory) step(ev *event.Event, d *event.Step) {
	s := CacheStep{RunID: ev.RunID, Step: ev.Step, Time: timestamp(ev.Time), Model: d.Model, EntryID: d.EntryID, Ratio: d.CacheRatio, Saved: d.Saved,
		CacheSeconds: h.keep, Broken: h.broken}
	if u := d.Usage; u != nil {
		s.Input, s.CacheRead, s.CacheWrite, s.Output, s.Cost = u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Cost.Total
	}
	h.reports = h.reports || s.CacheRead+s.CacheWrite > 0
	h.view.Steps = append(h.view.Steps, s)
	h.asked, h.broken = append(h.asked, h.began), nil
}

// before gives for each step the one ahead of it on its path, -1 for none. A step whose
// reply is not in the tree is taken as the next one of those that were made.
func (h *cacheHistory) before() []int {
	at := make(map[string]int, len(h.view.Steps))
	for i := range h.view.Steps {
		at[h.view.Steps[i].EntryID] = i
	}
	delete(at, "")
	before := make([]int, len(h.view.Steps))
	for i := range before {
		before[i] = i - 1
		id, ok := h.parents[h.view.Steps[i].EntryID]
		if !ok {
			continue
		}
		before[i] = -1
		for range h.parents { // no tree is deeper; one that is damaged may turn in a circle
			if n, ok := at[id]; ok && n != i {
				before[i] = n
				break
			}
			if id == "" {
				break
			}
			id = h.parents[id]
		}
	}
	return before
}

// explain says why a step did not read what the one before it left.
func (h *cacheHistory) explain(i, before int) {
	s := &h.view.Steps[i]
	if before < 0 {
		s.Miss = MissFirst
		return
	}
	b := &h.view.Steps[before]
	s.ComparedRun, s.ComparedStep = b.RunID, b.Step
	s.WaitSeconds = float64(max(0, h.asked[i]-h.asked[before])) / 1000
	left := b.CacheRead + b.CacheWrite // what the request before left in the cache
	if b.CacheWrite == 0 {
		left = b.Input + b.CacheRead // who writes without a word writes all
	}
	missed := left - s.CacheRead
	switch {
	case s.Broken != nil:
		s.Miss, s.Missed = MissBroken, max(0, missed)
	case missed <= roundedOff:
	case left < smallPrompt:
		s.Miss = MissSmall
	case s.CacheSeconds > 0 && s.WaitSeconds >= float64(s.CacheSeconds):
		s.Miss, s.Missed = MissExpired, missed
	default:
		s.Miss, s.Missed = MissProvider, missed
	}
}

func (h *cacheHistory) done() *CacheView {
	t := &h.view.Total
	for i, b := range h.before() {
		h.explain(i, b)
		s := &h.view.Steps[i]
		if !h.reports && (s.Miss == MissProvider || s.Miss == MissExpired) {
			s.Miss, s.Missed = MissNone, 0
		}
		t.Steps++
		t.Input += s.Input
		t.CacheRead += s.CacheRead
		t.CacheWrite += s.CacheWrite
		t.Output += s.Output
		t.Cost += s.Cost
		t.Saved += s.Saved
		switch s.Miss {
		case MissBroken:
			t.Breaks++
		case MissExpired:
			t.Expired++
		}
	}
	if all := t.Input + t.CacheRead + t.CacheWrite; all > 0 {
		t.Ratio = float64(t.CacheRead) / float64(all)
	}
	return h.view
}
