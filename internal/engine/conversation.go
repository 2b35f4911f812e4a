package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"agentd/internal/prompt"
	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
)

// conversation is what the model sees of the session, kept while a run is
// driven. Messages only grow, so requests extend each other.
type conversation struct {
	messages []message.Message
	origins  []origin // of the messages
	tip      string   // the entry of the last message
	read     string   // the leaf up to which it was read
	// told is what the messages say beside people's words, by kind.
	told prompt.Told
	// settings are what the session's path amounts to, as it was read.
	settings session.Settings
	// unheeded are those that the run does not obey, and why.
	unheeded []string
	// problems are entries that the conversation goes on without.
	problems []session.Problem
	// pending are entries whose parent is not the tip yet, by parent: results
	// that ended ahead of an earlier call's.
	pending map[string]pendingEntry
	inputs  map[string]*message.Message
	// wraps are contents of replies as requests have them, by the first block; see asCalled.
	wraps map[*message.Block][]message.Block
	// made is the compaction that it begins with, or nil.
	made *session.Made
	// reduced is when something was last left out of a message, in Unix milliseconds:
	// what is left out next comes after it also for who reads the times.
	reduced int64
	// output is the last reply with text, for the run's output.
	outputEntry, output string
}

type pendingEntry struct {
	id  string
	msg *message.Message // nil: nothing that models are shown
}

// wrote takes in an entry that is being written.
func (c *conversation) wrote(id, parent string, m *message.Message) {
	if c.pending == nil {
		c.pending = map[string]pendingEntry{}
	}
	c.pending[parent] = pendingEntry{id, m}
	c.told = c.told.See(m)
	// A reply that was broken off is no answer: the run's output stays.
	if m.Role == message.RoleAssistant && m.StopReason != message.StopAborted {
		if text := m.Text(); text != "" {
			c.outputEntry, c.output = id, text
		}
	}
}

// skip takes in an entry that is being written and says nothing to models.
func (c *conversation) skip(id, parent string) {
	if c.pending == nil {
		c.pending = map[string]pendingEntry{}
	}
	c.pending[parent] = pendingEntry{id: id}
}

// advance moves along the entries that follow each other, up to leaf.
func (c *conversation) advance(leaf string) {
	for c.tip != leaf {
		next, ok := c.pending[c.tip]
		if !ok {
			return
		}
		delete(c.pending, c.tip)
		if next.msg == nil {
			c.tip = next.id
			continue
		}
		c.messages = append(c.messages, prompt.Neutral(*next.msg))
		c.origins = append(c.origins, origin{entry: next.id, own: true})
		c.tip = next.id
	}
}

func (c *conversation) text(entry string) string {
	if entry != "" && entry == c.outputEntry {
		return c.output
	}
	return ""
}

// queue keeps a message until the machine takes it in.
func (c *conversation) queue(row *store.Input) {
	var m message.Message
	if json.Unmarshal(row.Body, &m) == nil {
		c.inputs[row.ID] = &m
	}
}

func (c *conversation) takeInput(id string) *message.Message {
	m := c.inputs[id]
	delete(c.inputs, id)
	return m
}

// load reads the run and everything that its driver needs, and gives the input
// that comes first, if any.
func (d *driver) load() (run.Input, error) {
	e, ctx := d.e, d.ctx
	var row *store.Run
	var err error
	if d.fresh != nil {
		row = &d.fresh.row
	} else if row, err = e.store.Load(ctx, d.ref.Tenant, d.ref.ID); err != nil {
		return nil, notFound("run", d.ref.ID, err)
	}
	if d.claim != nil && d.claim.epoch != row.Epoch {
		return nil, errLost
	}
	d.row, d.fence = row, row.Epoch
	d.stream.start(row.Seq)
	d.state = run.New(row.ID, row.SessionID)
	if len(row.State) > 0 {
		state, err := run.Decode(row.State)
		var illegal *run.IllegalError
		switch {
		case errors.As(err, &illegal) && !illegal.Newer && !run.Status(row.Status).Ended():
			row.Epoch++
			return d.abort("unreadable", err), nil // it must not block its session for ever
		case err != nil:
			return nil, internal("engine.load", err)
		}
		d.state = state
	}
	if d.state.Status.Ended() {
		return nil, nil
	}
	row.Epoch++ // ours from the first commit on
	if err := json.Unmarshal(row.Spec, &d.spec); err != nil {
		return d.abort("unreadable", fmt.Errorf("the stored request of the run can not be read: %w", err)), nil
	}
	switch err = d.loadAgent(); {
	case ctx.Err() != nil:
		return nil, ctx.Err() // what came of it may be half an agent
	case errors.Is(err, errUnneeded):
	case err != nil:
		return d.abort("profile_gone", err), nil
	}
	if d.tools, err = d.e.newToolbox(d.agent, &d.spec.Overrides, row.Mode == Autonomous); err != nil {
		return d.abort("bad_tools", err), nil
	}
	d.tools.recall, d.tools.recalled, d.tools.untrusted = d.remembered, map[string]string{}, d.untrusted
	d.tools.depth, d.tools.deepest, d.tools.mode = d.spec.Depth, e.cfg.MaxSubagentDepth, d.mode
	if err := d.loadConversation(ctx); err != nil {
		return nil, err
	}
	if d.orphaned(ctx) {
		d.put(item{in: run.CancelRequested{At: d.at(), Reason: "its parent run has ended"}})
	}
	if d.state.Status != run.Queued {
		d.settleTools()
	}
	switch {
	case d.state.Status == run.Paused && (d.state.AwaitsChild() || d.state.Expiring()):
		return run.Resumed{At: d.at()}, nil
	case d.state.Status == run.Queued, d.state.Status == run.Paused:
		return nil, nil
	}
	d.e.slots.force(d)
	if d.agent.FailOnRestart && (d.claim == nil || d.claim.taken) { // what a node hands over was not interrupted
		return run.Aborted{At: d.at(), Reason: "interrupted", Message: "agentd was restarted while the run was under way",
			Hint: "resume_on_restart: true in the profile makes runs go on."}, nil
	}
	return d.resumed()
}

// orphaned is whether the run is a child whose parent ended without it: the
// process died while a cancel was on its way down. Then nobody waits for it any
// more, whether it runs, is queued, or waits for a person.
func (d *driver) orphaned(ctx context.Context) bool {
	if d.row.ParentID == "" {
		return false
	}
	parent, err := d.e.store.Run(ctx, d.ref.Tenant, d.row.ParentID)
	return err == nil && run.Status(parent.Status).Ended()
}

// agentOf resolves the profile of a run. If its version is gone the present one
// goes on with it: the run's limits were captured when it started.
func (e *Engine) agentOf(ctx context.Context, tenant string, row *store.Run) (*Agent, error) {
	a, err := e.cfg.Agents.Agent(ctx, tenant, profileRef(row.Profile, row.Version))
	if err == nil {
		return a, nil
	}
	if now, err2 := e.cfg.Agents.Agent(ctx, tenant, row.Profile); err2 == nil {
		e.log.Warn("the profile's version is gone; the run goes on with the present one", "run", row.ID, "profile", row.Profile, "was", row.Version, "now", now.Version)
		return now, nil
	}
	return nil, err
}

// errUnneeded says that a run is cancelled before its agent was there.
var errUnneeded = errors.New("the run is cancelled and needs no agent")

// loadAgent resolves the run's profile, which may take as long as its MCP servers
// take to connect. A run that is cancelled meanwhile does without: what is left of
// it is to end what is open.
func (d *driver) loadAgent() error {
	ctx, unload := context.WithCancel(d.ctx)
	defer unload()
	d.mu.Lock()
	for _, it := range d.inbox {
		if it.cancels() {
			unload()
		}
	}
	d.unload = unload
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.unload = nil
		d.mu.Unlock()
	}()
	type loaded struct {
		agent *Agent
		err   error
		panic any
	}
	done := make(chan loaded, 1)
	row := *d.row
	d.e.wg.Add(1)
	go func() {
		defer d.e.wg.Done()
		defer func() {
			if p := recover(); p != nil {
				done <- loaded{panic: p}
			}
		}()
		if ctx.Err() == nil {
			a, err := d.e.agentOf(ctx, d.ref.Tenant, &row)
			done <- loaded{agent: a, err: err}
		}
	}()
	select {
	case l := <-done:
		if l.panic != nil {
			panic(l.panic) // the driver's to deal with
		}
		// One that came in spite of the cancel may lack what had not come yet.
		if ctx.Err() == nil {
			d.agent = d.lead(l.agent)
			return l.err
		}
	case <-ctx.Done():
	}
	d.agent = noAgent()
	return errUnneeded
}

// noAgent serves a run that will not call a model or a tool any more.
func noAgent() *Agent { return &Agent{Models: []Model{{}}} }

// abort ends a run that can not be driven, so that it does not block its session.
func (d *driver) abort(reason string, err error) run.Input {
	d.agent = noAgent()
	return run.Aborted{At: d.at(), Reason: reason, Message: err.Error(), Hint: "Start a new run."}
}

func (d *driver) at() run.At { return run.At{Now: d.e.now()} }

// loadConversation reads the session's path and what the run has written ahead
// of it.
func (d *driver) loadConversation(ctx context.Context) error {
	e, s := d.e, &d.state
	var read session.Ahead
	leaf, path, inputs, warm, err := d.rows(ctx, &read)
	if err != nil {
		return err
	}
	c := &d.conv
	problems := c.problems
	d.measured = measured{} // that was of another reading of the conversation
	*c = conversation{tip: leaf, read: leaf, inputs: map[string]*message.Message{}}
	items, made, bad := read.Context(path) // of a path, they are nobody else's yet
	if warm != nil {
		items, made, bad = warm.items[:len(warm.items):len(warm.items)], warm.made, warm.problems
		d.caching.resume(warm.hashed)
	} else {
		sendable(items)
		if d.fresh == nil && len(problems) == 0 {
			e.keep(Ref{d.ref.Tenant, d.row.SessionID}, leaf, path, items, made, bad, read.Bytes())
		}
	}
	c.made, c.problems = made, append(problems, bad...)
	if c.settings = session.SettingsAt(path); warm != nil {
		c.settings = warm.settings
	}
	for _, p := range c.problems {
		e.log.Error("the conversation goes on without an entry", "session", d.row.SessionID, "entry", p.Entry, "reason", p.What)
	}
	if len(items) > 0 {
		if items, err = d.leaveOut(ctx, items); err != nil {
			return err
		}
	}
	heal := session.HealItems
	if e.hooked() {
		// The application decides about its own roles, ahead of each call.
		heal = func(m []session.Item) []session.Item { return m }
	}
	if s.Phase == run.PhaseTools {
		// The open batch has no results yet for some calls; healing would
		// invent them. Its reply and results are added as they are.
		n := len(items)
		for n > 0 && items[n-1].Role != message.RoleAssistant {
			n--
		}
		tail := items[max(0, n-1):]
		n = max(0, n-1)
		c.load(append(heal(items[:n:n]), tail...), d.ref.ID)
		if len(tail) > 0 {
			m := tail[0].Message // the items may be those that are kept
			d.open(s.Model.Entry, &m)
		}
		for i := range s.Calls {
			if err := errors.Join(d.loadResult(ctx, i), d.loadAmended(ctx, &s.Calls[i])); err != nil {
				return err
			}
		}
	} else {
		c.load(heal(items), d.ref.ID)
	}
	if s.Output != "" {
		if row, err := e.store.Entry(ctx, d.ref.Tenant, d.row.SessionID, s.Output); err == nil {
			var m message.Message
			if json.Unmarshal(row.Body, &m) == nil {
				c.outputEntry, c.output = s.Output, m.Text()
			}
		}
	}
	for _, in := range inputs {
		var m message.Message
		if err := json.Unmarshal(in.Body, &m); err != nil {
			e.log.Error("a queued input can not be read and is left out", "run", d.ref.ID, "input", in.ID)
			continue
		}
		c.inputs[in.ID] = &m
	}
	return nil
}

// rows reads the session's leaf, the path to it, and the run's queued inputs. What is kept
// of a long session stands in place of the path.
func (d *driver) rows(ctx context.Context, read *session.Ahead) (leaf string, path []*store.Entry, inputs []*store.Input, warm *warmSession, err error) {
	if f := d.fresh; f != nil {
		entries, inputs := f.entries, f.inputs
		f.entries, f.inputs = nil, nil // not needed again
		d.stands = f.leaf
		return f.leaf, entries, inputs, nil, nil
	}
	st, tenant := d.e.store, d.ref.Tenant
	leaf = d.state.Leaf
	if d.state.Status == run.Queued {
		ses, err := st.Session(ctx, tenant, d.row.SessionID)
		if err != nil {
			return "", nil, nil, nil, notFound("session", d.row.SessionID, err)
		}
		leaf, d.stands = ses.Leaf, ses.Leaf
		if d.spec.From != nil {
			leaf = *d.spec.From
		}
	}
	var gap string
	if warm = d.e.kept(ctx, Ref{tenant, d.row.SessionID}, leaf); warm == nil {
		if path, gap, err = d.e.path(ctx, Ref{tenant, d.row.SessionID}, leaf, read); err != nil {
			return "", nil, nil, nil, err
		}
	}
	if d.conv.problems = nil; gap != "" {
		d.conv.problems = append(d.conv.problems, session.Problem{Entry: gap, What: "it is gone, and with it what was said before"})
	}
	if inputs, err = st.Inputs(ctx, tenant, d.ref.ID); err != nil {
		return "", nil, nil, nil, internal("engine.load", err)
	}
	return leaf, path, inputs, warm, nil
}

// loadResult takes in a result that was written ahead of an earlier call's.
func (d *driver) loadResult(ctx context.Context, i int) error {
	s := &d.state
	call := &s.Calls[i]
	if call.Phase != run.CallDone || call.Entry <= s.Leaf {
		return nil
	}
	row, err := d.e.store.Entry(ctx, d.ref.Tenant, d.row.SessionID, call.Entry)
	if err != nil {
		return internal("engine.load", err)
	}
	m := &message.Message{}
	if err := json.Unmarshal(row.Body, m); err != nil {
		// The call was made; what came of it is lost, and the run goes on.
		d.e.log.Error("a tool result can not be read and is replaced", "run", d.ref.ID, "entry", row.ID)
		lost := message.ToolResult(call.ID, call.Name, true, message.Text("The stored result of this call is damaged. It was executed; do not repeat it without care."))
		m = &lost
	}
	d.conv.wrote(row.ID, row.Parent, m)
	return nil
}

// open notes the reply whose calls are open.
func (d *driver) open(entry string, m *message.Message) {
	d.reply = &reply{entry: entry, msg: m}
	d.calls = entry
	d.tools.open(m)
}

// refresh reads the conversation again if the session moved on since it was
// loaded: another run was ahead.
func (d *driver) refresh() error {
	if d.fresh != nil {
		return nil
	}
	ses, err := d.e.store.Session(d.ctx, d.ref.Tenant, d.row.SessionID)
	if err != nil {
		return notFound("session", d.row.SessionID, err)
	}
	if ses.Leaf == d.stands {
		return nil
	}
	d.commits.wait() // inputs that were just accepted are read back too
	return d.loadConversation(d.ctx)
}

// started is the input that starts the run.
func (d *driver) started() run.Input {
	for _, u := range d.agent.Unreachable {
		d.e.log.Warn("a run starts without the tools of an MCP server", "run", d.ref.ID, "profile", d.row.Profile, "server", u.Server, "error", u.Reason)
	}
	settings := d.agent.Settings
	settings.Autonomous = d.row.Mode == Autonomous
	mode, set := d.settings(&settings)
	d.agent = d.agent.led(settings.Model, settings.Thinking)
	settings.Models = len(d.agent.Models)
	d.spec.Overrides.narrow(&settings)
	d.turnSettings(&settings)
	settings.CompactWait = d.agent.Compaction.retryAfter()
	d.pots(&settings)
	leaf := d.conv.tip
	var stood *string
	if leaf != d.stands {
		at := d.stands
		stood = &at
	}
	return run.Started{At: d.at(), Settings: settings, EntryBase: entryBase(d.spec.EntryBase, d.stands), Leaf: leaf, Stood: stood, Prompt: d.spec.Prompt,
		Routing: d.agent.Routing, Facts: d.facts(), Compact: d.spec.Compact != nil, Mode: mode, Set: set}
}
