package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/prompt"
	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// A conversation that gets too large for its model is compacted: its older part is
// replaced by a summary, in an entry that the path goes on from. Nothing is deleted.
// That happens ahead of a call whose conversation is nearly too large, when a provider
// refuses one that is, and when somebody asks for it. It changes the session in one
// commit or not at all, and always ends in something that fits.

// Compaction says when and how conversations are summarised. The zero value is the
// default of each.
type Compaction struct {
	// Off: only when somebody asks for it. What is too large ends the run then.
	Off bool
	// Model writes the summaries; nil: the model of the run.
	Model *Model
	// Reserve is how many tokens of the window are kept free for the reply; 0 means
	// 16384, and never more than a quarter of the window.
	Reserve int
	// Keep is about how many tokens of what was said last stay as they are; 0 means
	// 20000, and never more than half of what the other things leave of the window.
	Keep int
	// Summary is how many tokens a summary may have; 0 means 16000, and never more
	// than an eighth of the window.
	Summary int
	// Requests is how many a summary is made in at most; 0 means 8.
	Requests int
	// RetryAfter is for how many steps a compaction ahead of a call that failed is not
	// tried again, unless the conversation grows by half of Reserve; 0 means 10.
	RetryAfter int
}

// requests and retryAfter are the settings, or their defaults.
func (c *Compaction) requests() int   { return or(c.Requests, 8) }
func (c *Compaction) retryAfter() int { return or(c.RetryAfter, 10) }

func or(n, other int) int {
	if n > 0 {
		return n
	}
	return other
}

// CompactRequest asks for a compaction. Instructions are added to what the model is
// told, such as what to dwell on; at most 4096 bytes.
type CompactRequest struct {
	Instructions string `json:"instructions,omitempty"`
}

const maxCompactInstructions = 4096

// Compact starts a run that compacts a session, after those that are under way. It ends
// as completed with the stop reason compacted, or nothing_to_compact. Without a profile
// it is that of the session's last run.
func (e *Engine) Compact(ctx context.Context, req StartRequest) (*Run, error) {
	if req.Compact == nil {
		req.Compact = &CompactRequest{}
	}
	if req.Tenant == "" {
		req.Tenant = store.DefaultTenant
	}
	if req.WhenBusy == "" {
		req.WhenBusy = Enqueue
	}
	if _, err := e.store.Session(ctx, req.Tenant, req.SessionID); err != nil {
		return nil, notFound("session", req.SessionID, err)
	}
	if req.Profile == "" {
		runs, _, err := e.store.Runs(ctx, req.Tenant, store.RunFilter{SessionID: req.SessionID, Limit: 1})
		if err != nil {
			return nil, internal("engine.Compact", err)
		}
		if len(runs) == 0 {
			return nil, &fault.Error{Kind: fault.Invalid, Field: "profile", Err: errors.New("the session has no run whose profile could be taken"), Hint: "Name the profile whose models write the summary."}
		}
		req.Profile = runs[0].Profile
	}
	return e.Start(ctx, req)
}

// compaction is one under way. It holds what it needs, outside the driver's goroutine.
type compaction struct {
	d       *driver
	eff     run.Compact
	step    int
	agent   *Agent
	msgs    []message.Message
	cut     session.Cut
	earlier session.Compaction
	models  []Model // that may write the summary, the first one first
	pots    []run.Pot
	fence   int64
	rules   *pace
	system  []model.SystemPart
	tools   []tool.Spec
	request CompactRequest
	retry   run.Retry
	seen    *RunID // for who observes model calls, or nil
	note    string // added to what the model is told
	told    bool   // that one failed was told before
	front   int    // how many tokens may stand ahead of what stays; 0: nobody knows

	made   compactionMade
	budget compactionBudget
}

// compactionMade is what came of a compaction, for the commit that ends it.
type compactionMade struct {
	body    session.Compaction
	to      int // the first message that stays
	before  int // how many messages were shortened earlier
	usages  []modelUsage
	settles *store.Settlement
	count   event.Compaction
}

// modelUsage is what a call of a model used.
type modelUsage struct {
	provider, model string
	usage           *message.Usage
}

// compacted is the end of a compaction together with what came of it.
type compacted struct {
	run.Compacted
	made *compactionMade
}

// sizes are the figures of a compaction, in tokens.
type sizes struct {
	// window is the model's, 0 if nobody knows. now is about how large the next request
	// would be, fixed what of it is no conversation.
	window, now, fixed     int
	reserve, keep, summary int
	// count says how many tokens messages have. toldBy is the model whose replies told
	// how that is corrected, "" if none did.
	count  session.Count
	toldBy string
}

// beside is how many tokens come in front of what stays: the summary of what was said
// before, that of a turn under way, and the names.
func (s *sizes) beside() int { return s.summary * 2 }

// files is how many bytes the names of files may have: about half as many tokens as a
// summary has.
func (s *sizes) files() int { return s.summary * 3 / 2 }

func (d *driver) sizes() sizes {
	c, m := &d.agent.Compaction, d.model()
	s := sizes{window: m.Window, reserve: or(c.Reserve, 16_384), keep: or(c.Keep, 20_000), summary: or(c.Summary, 16_000), count: countOf(&m)}
	if s.window > 0 {
		s.reserve = min(s.reserve, s.window/4)
		s.keep = min(s.keep, (s.window-s.reserve)/2)
		s.summary = max(min(s.summary, s.window/8), 256)
	}
	return s
}

// carriedPart is which part of the window the context may have that is carried over.
const carriedPart = 8

// windowFor is the window that a conversation has to fit, 0 if nobody knows.
func (d *driver) windowFor(s *sizes, reason string) int {
	if reason != run.CompactOverflow {
		return s.window
	}
	now := s.now
	if now == 0 {
		now = s.fixed + s.count.Tokens(d.conv.messages)
	}
	// The provider counts more than it was taken for, or its window is not known.
	if s.window == 0 {
		return max(now, s.fixed) / 2
	}
	return min(s.window, now*3/4)
}

// findCut looks where to cut the conversation.
func (d *driver) findCut(s *sizes, reason string) session.Cut {
	keep, room, window := s.keep, 0, d.windowFor(s, reason)
	if s.window > 0 {
		// What stays leaves room for more than the next message, whatever the system
		// prompt and the tools have: else every step would compact again.
		keep = min(keep, max((s.window-s.reserve-s.fixed-s.beside()-d.carried(s, s.window/carriedPart))/2, s.window/16))
	}
	if reason == run.CompactManual {
		keep = min(keep, s.count.Tokens(d.conv.messages)/4)
	}
	if window > 0 && (reason == run.CompactOverflow || s.now > window) {
		room = max(window-min(s.reserve, window/4)-s.fixed-min(s.beside(), window/4)-d.carried(s, window/carriedPart), min(window/16, (window-s.fixed)/3), 1)
		keep = min(keep, room)
	}
	from := 0
	if len(d.conv.messages) > 0 && d.conv.made != nil && session.Summary(&d.conv.messages[0]) {
		from = 1
	}
	stored := func(i int) bool { return d.conv.origins[i].entry != "" }
	cut := session.FindCut(d.conv.messages, from, keep, room, s.count, stored)
	if reason == run.CompactManual && !cut.Any() {
		cut = session.FindCut(d.conv.messages, from, 0, room, s.count, stored) // who asks for it wants all that can be
	}
	if room > 0 && from == 1 && !cut.Any() && len(d.conv.messages) > 1 && stored(1) && s.count.Tokens(d.conv.messages[:1]) > min(s.beside(), window/4) {
		// Nothing that was said since can go, but the summary, which was written for a
		// larger window, can be a shorter one.
		cut = session.Cut{To: 1, Turn: 1}
	}
	return cut
}

// carried is about how many tokens of context a compaction carries over, at most so many.
func (d *driver) carried(s *sizes, most int) int {
	return min(s.count.Tokens([]message.Message{{Content: prompt.InForce(d.conv.messages)}}), most)
}

// compact starts a compaction, or says at once that there will be none.
func (d *driver) compact(eff run.Compact, b *batch) run.Input {
	nothing := func(why string) run.Input {
		return compacted{run.Compacted{At: d.at(), Error: why, Nothing: true}, &compactionMade{}}
	}
	if d.spec.Leaves != nil {
		return d.summarizeLeft(eff, b)
	}
	s := d.sizes()
	d.size(&s)
	overflow := eff.Reason == run.CompactOverflow
	if overflow && d.agent.Compaction.Off {
		why := "the conversation no longer fits the model's context window, and compaction is off"
		if d.tooLarge != "" {
			why = d.tooLarge
		}
		return nothing(why)
	}
	if overflow && s.window > 0 && s.fixed > s.window*9/10 {
		return nothing(fmt.Sprintf("the system prompt and the tools alone have about %d tokens, and the context window of %s has %d", s.fixed, d.model().Name, s.window))
	}
	c := d.compaction(eff, d.conv.messages[:len(d.conv.messages):len(d.conv.messages)], d.findCut(&s, eff.Reason))
	if !c.cut.Any() {
		why := "there is nothing to leave out: what was said last has to stay"
		if overflow {
			why = "the provider refused the request as too large, and " + why + d.figures(&s)
		}
		return nothing(why)
	}
	if d.conv.made != nil {
		c.earlier = d.conv.made.Compaction
		if c.cut.From == 0 && session.Summary(&c.msgs[0]) {
			c.earlier.Summary = "" // it is what is summarised
		}
	}
	if window := d.windowFor(&s, eff.Reason); overflow || window > 0 && s.now > window {
		left := window - s.fixed
		c.front = max(left-min(s.reserve, window/4)-s.count.Tokens(c.cut.Stays(c.msgs[c.cut.To:])), left/4, 1)
	}
	c.describe(&s)
	c.begin(s, b)
	return nil
}

// figures says what of a request is how large, for people who wonder what to make smaller.
func (d *driver) figures(s *sizes) string {
	window := "not known"
	if s.window > 0 {
		window = fmt.Sprintf("%d", s.window)
	}
	return fmt.Sprintf(" (about %d tokens, those of the system prompt and the tools %d, the context window of %s: %s)", s.count.Tokens(d.conv.messages), s.fixed, d.model().Name, window)
}

// compaction is one of messages that are cut so.
func (d *driver) compaction(eff run.Compact, msgs []message.Message, cut session.Cut) *compaction {
	system, _ := d.system()
	c := &compaction{d: d, eff: eff, step: d.state.Step, agent: d.agent, msgs: msgs, cut: cut, models: d.summarisers(),
		pots: d.state.Settings.Pots, fence: d.row.Epoch, rules: d.pace(), system: system, tools: d.declared(), retry: d.state.Settings.Retry, seen: d.observing()}
	if d.spec.Compact != nil {
		c.request = *d.spec.Compact
	}
	c.told = d.state.CompactWait != nil && d.state.CompactWait.Told
	c.budget = compactionBudget{c: c}
	return c
}

// begin has the summary made when what was written so far is durable.
func (c *compaction) begin(s sizes, b *batch) {
	d := c.d
	if slices.ContainsFunc(c.models, func(m Model) bool { return d.modelAway(&m) }) {
		d.askedModel = true
	}
	ctx, _, settle := d.effect("model")
	b.after = append(b.after, func() {
		if !d.holds() {
			return
		}
		a := d.attempt(settle)
		d.e.workers.run(func() {
			stop := a.abandonAfter(ctx, func() run.Input {
				return compacted{run.Compacted{At: d.at(), Error: "the compaction did not end when it was told to"}, &compactionMade{}}
			})
			in, err := c.run(ctx, &s)
			stop()
			switch {
			case errors.Is(err, errHandedOver):
				c.made.settles = c.budget.pending
				var spent run.Input
				if u := c.made.usage(); u != nil {
					spent = run.Spent{At: d.at(), Usage: u}
				}
				a.leave("model", spent, func(tx *store.Tx) { c.made.charge(d, tx, d.e.now()) })
			default:
				a.end(in)
			}
		})
	})
}

// summarisers are the models that may write a summary: the one that is declared for it,
// then that of the run, then the others of the profile.
func (d *driver) summarisers() (out []Model) {
	if m := d.agent.Compaction.Model; m != nil {
		out = append(out, d.now(*m))
	}
	first := 0
	if d.state.Model != nil && d.state.Model.Index < len(d.agent.Models) {
		first = d.state.Model.Index
	}
	out = append(out, d.now(d.agent.Models[first]))
	for i := range d.agent.Models {
		if i != first {
			out = append(out, d.now(d.agent.Models[i]))
		}
	}
	return out
}

// reads is whether a tool only reads.
func (d *driver) reads(name string) bool {
	_, spec, found := d.tools.set.Lookup(name)
	return found && spec.Effect == tool.Read
}

// describe fills in what is known of the compaction before it is made.
func (c *compaction) describe(s *sizes) {
	d, body := c.d, &c.made.body
	body.Reason, body.TokensBefore = c.eff.Reason, s.now
	if s.now == 0 {
		body.TokensBefore = s.fixed + s.count.Tokens(c.msgs)
	}
	body.ReadFiles, body.ModifiedFiles = session.Files(c.msgs[c.cut.From:c.cut.To], d.reads, &c.earlier, s.files())
	body.Context = d.carriedMode(session.Carry(c.msgs[:c.cut.To], d.windowFor(s, c.eff.Reason)/carriedPart, s.count))
	body.Context = slices.DeleteFunc(body.Context, func(b message.Block) bool { return b.Context == toolsContext }) // from here on the list is what there is
	c.made.to = c.cut.To
	if c.cut.To < len(c.msgs) {
		body.FirstKept = d.conv.origins[c.cut.To].entry
	}
	for _, s := range c.earlier.Shortened { // they are read from what was stored each time
		if slices.ContainsFunc(d.conv.origins[c.cut.To:], func(o origin) bool { return o.entry == s.Entry }) {
			body.Shortened = append(body.Shortened, s)
		}
	}
	c.made.before = len(body.Shortened)
	for i, s := range c.cut.Changes(c.msgs[c.cut.To:]) {
		i += c.cut.To
		if s == nil || d.conv.origins[i].entry == "" {
			continue
		}
		if m := s.Apply(c.msgs[i]); !sameContent(&m, &c.msgs[i]) {
			s.Entry = d.conv.origins[i].entry
			body.Shortened = append(body.Shortened, *s)
		}
	}
	c.made.count = event.Compaction{Summarised: c.cut.To - c.cut.From, Kept: len(c.msgs) - c.cut.To, Shortened: len(body.Shortened) - c.made.before}
}

func sameContent(a, b *message.Message) bool {
	if len(a.Content) != len(b.Content) {
		return false
	}
	for i := range a.Content {
		if x, y := &a.Content[i], &b.Content[i]; x.Type != y.Type || x.Text != y.Text || string(x.Arguments) != string(y.Arguments) {
			return false
		}
	}
	return true
}
