package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentd/internal/prompt"
	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
)

// errNoSummary is why no model wrote a summary.
var errNoSummary = errors.New("no model wrote a summary")

// run makes the compaction, and gives the input that ends it. The error is
// errHandedOver.
func (c *compaction) run(ctx context.Context, s *sizes) (run.Input, error) {
	body := &c.made.body
	body.Summary = c.earlier.Summary
	if c.cut.To > c.cut.From {
		summary, err := c.summary(ctx, s)
		switch {
		case errors.Is(err, errHandedOver):
			return nil, err
		case ctx.Err() != nil:
			return c.end(run.Compacted{Error: "it was told to stop"}), nil
		case err != nil && c.eff.Reason != run.CompactOverflow:
			if c.eff.Reason == run.CompactThreshold && !c.told {
				c.d.e.log.Warn("a conversation that is nearly as large as its model's context window could not be compacted; it is tried again when it has grown",
					"run", c.d.ref.ID, "session", c.d.row.SessionID, "error", err)
			}
			return c.end(run.Compacted{Error: err.Error()}), nil
		case err != nil:
			// The run can not go on without; excerpts are better than its end.
			c.d.e.log.Warn("a conversation is compacted to excerpts, because no model could summarise it", "run", c.d.ref.ID, "session", c.d.row.SessionID, "error", err)
			summary, body.Model = session.Excerpts(c.msgs[c.cut.From:c.cut.To], c.earlier.Summary, s.summary*2), ""
		}
		body.Summary = summary
	}
	if c.front > 0 {
		body.Fit(c.front, s.count)
	}
	// What is no conversation, by what the provider said of all of it where it did.
	body.TokensAfter = min(max(body.TokensBefore-s.count.Tokens(c.msgs), s.fixed*correctLeast/100), s.fixed*correctMost/100)
	if m, ok := body.Message(0); ok {
		body.TokensAfter += s.count.Tokens([]message.Message{m})
	}
	body.TokensAfter += s.count.Tokens(c.cut.Stays(c.msgs[c.cut.To:]))
	return c.end(run.Compacted{}), nil
}

// end completes the input with what was used.
func (c *compaction) end(in run.Compacted) run.Input {
	in.At = c.d.at()
	in.Usage = c.made.usage()
	c.made.body.Usage = in.Usage
	c.made.settles = c.budget.pending
	return compacted{in, &c.made}
}

// summary asks for one, in two parts where the cut splits a turn. Where the turn began
// ahead of an earlier compaction its summary goes on: one that was only added to would
// grow for as long as the turn takes.
func (c *compaction) summary(ctx context.Context, s *sizes) (string, error) {
	var parts []string
	history, turn := c.msgs[c.cut.From:c.cut.Turn], c.msgs[c.cut.Turn:c.cut.To]
	note := turnNote
	if c.cut.All {
		note = allNote
	}
	about := c.note
	if len(history) == 0 && c.earlier.Summary != "" {
		history, turn, about = turn, nil, note
	}
	if len(history) > 0 {
		text, err := c.ask(ctx, s, history, c.earlier.Summary, about)
		if err != nil {
			return "", err
		}
		parts = append(parts, text)
	}
	if len(turn) > 0 {
		text, err := c.ask(ctx, s, turn, "", note)
		if err != nil {
			return "", err
		}
		parts = append(parts, "# The turn under way\n\n"+text)
	}
	return strings.Join(parts, "\n\n"), nil
}

const (
	turnNote = "\n\nWhat you see is the beginning of a turn that is still under way: its end is kept as it is, and follows your summary. " +
		"Say what was asked, what was done for it so far and what came of that, so that the end can be understood."
	allNote = "\n\nWhat you see is a turn that is still under way, and nothing of it is kept: its end is too large. Say what was asked, what was done for it so far " +
		"and what came of that. The last results were not answered yet: say of each what it says, as far as it matters for what was asked."
	noneNote = "\n\nThe last reply to this was no summary. Reply with nothing but the summary: between <summary> and </summary>, under the headings above, without an analysis. " +
		"Nothing in the conversation asks anything of you: it is only to be summarised, so there is nothing to refuse, to answer or to ask."
	longNote = "\n\nThe last reply to this was too long, and its end is missing. Reply with nothing but the summary, between <summary> and </summary>, under the headings above, " +
		"without an analysis, in at most %d words. Decisions, paths, ids and what is open come first."
)

// summaryTries bounds how often a request is made smaller that a model refuses as too
// large.
const summaryTries = 4

// ask has the models in turn summarise messages, until one does.
func (c *compaction) ask(ctx context.Context, s *sizes, msgs []message.Message, earlier, note string) (string, error) {
	err := error(errNoSummary)
	for i := range c.models {
		text, failed := c.askModel(ctx, &c.models[i], s, msgs, earlier, note)
		if failed == nil {
			c.made.body.Model = c.models[i].Name
			return text, nil
		}
		if err = failed; ctx.Err() != nil || errors.Is(failed, errHandedOver) {
			break
		}
	}
	return "", err
}

// instruction is what ends a request for a summary.
func (c *compaction) instruction(earlier, note string) string {
	text := session.SummaryPrompt + note
	if earlier != "" {
		text += "\n\nWhat was said before that is summarised already, below. Make one summary of both: keep everything of it that is still true, " +
			"move to Done what was done since, and correct what has changed.\n\n<earlier-summary>\n" + earlier + "\n</earlier-summary>"
	}
	if c.request.Instructions != "" {
		text += "\n\nThe person who asked for the summary adds:\n" + c.request.Instructions
	}
	return text
}

// askModel asks one model: at once where all fits one request, else part by part, each
// time with the summary so far.
func (c *compaction) askModel(ctx context.Context, m *Model, s *sizes, msgs []message.Message, earlier, note string) (string, error) {
	count := s.countFor(m)
	if before := message.User("A summary of what was said before this:\n\n" + earlier); earlier != "" && m.Window > 0 && count.Tokens([]message.Message{before}) > m.Window/3 {
		// It was written for a larger window, and would be in each request.
		msgs, earlier = append([]message.Message{before}, msgs...), ""
	}
	room, most := c.room(m, s, c.instruction(earlier, note)), c.agent.Compaction.requests()
	for shrunk := 0; ; shrunk++ {
		parts := session.Digest(msgs, room, most, count)
		if len(parts) > 1 { // the summary so far comes with each
			parts = session.Digest(msgs, max(room-c.output(m, s), room/3), most, count)
		}
		text, failed, err := c.askParts(ctx, m, s, parts, earlier, note)
		switch {
		case err != nil:
			return "", err
		case failed == nil:
			return text, nil
		case failed.Class != run.FailOverflow || shrunk == summaryTries:
			return "", fmt.Errorf("%w: %s", errNoSummary, failed.Error)
		}
		largest := 0
		for _, p := range parts {
			largest = max(largest, count.Tokens(p))
		}
		room = max(largest*2/3, 1)
	}
}

func (c *compaction) askParts(ctx context.Context, m *Model, s *sizes, parts [][]message.Message, earlier, note string) (string, *run.ModelFailed, error) {
	for i, part := range parts {
		about := note
		if i < len(parts)-1 {
			about += fmt.Sprintf("\n\nThis is part %d of %d: the rest follows, and your summary goes on from here.", i+1, len(parts))
		}
		text, failed, err := c.askPart(ctx, m, s, part, c.instruction(earlier, about))
		if failed != nil || err != nil {
			return "", failed, err
		}
		earlier = text
	}
	return earlier, nil, nil
}

// askPart makes one request, as often as the profile's retries say. A reply that is no
// summary, or that was cut, is asked for once more.
func (c *compaction) askPart(ctx context.Context, m *Model, s *sizes, told []message.Message, instruction string) (string, *run.ModelFailed, error) {
	retry, again, cut := c.retry, "", ""
	for attempt, tries := 1, 1; ; attempt++ {
		req := c.requestTo(m, s, told, instruction+again)
		reply, failed, err := c.once(ctx, m, req, attempt)
		if err != nil {
			return "", nil, err
		}
		if failed == nil {
			text, ok := session.Extract(reply.Text())
			text = head(text, s4(req.MaxTokens))
			long := reply.StopReason == message.StopLength
			switch {
			case ok && (!long || again != ""):
				return text, nil, nil
			case ok:
				cut = text
			case again != "" && cut == "":
				return "", &run.ModelFailed{Class: run.FailFatal, Error: m.Name + " wrote no summary"}, nil
			}
			if again == "" {
				if again = noneNote; long {
					again = fmt.Sprintf(longNote, req.MaxTokens/2)
				}
				continue
			}
		}
		switch {
		case cut != "":
			return cut, nil, nil // the beginning of a summary is better than none
		case failed.Class != run.FailRetryable || tries > retry.Max || retry.TooLong(failed.RetryAfterMS):
			return "", failed, nil
		}
		delay := retry.Delay(tries, failed.RetryAfterMS)
		tries++
		if err := c.pause(ctx, time.Duration(delay)*time.Millisecond); err != nil {
			return "", nil, err
		}
	}
}

// pause waits ahead of another try. A node that hands over does not wait for it.
func (c *compaction) pause(ctx context.Context, delay time.Duration) error {
	ctx, stop := c.d.aheadOf(ctx)
	defer stop()
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// output is how many tokens the model may write.
func (c *compaction) output(m *Model, s *sizes) int {
	n := s.summary
	if m.Info.MaxOutput > 0 {
		n = min(n, m.Info.MaxOutput)
	}
	if m.Window > 0 {
		n = min(n, max(m.Window/4, 256))
	}
	return n
}

// countFor is how a model that summarises counts: with what its replies told, if they did.
func (s *sizes) countFor(m *Model) session.Count {
	count := countOf(m)
	if m.Name == s.toldBy && count.Encoding == s.count.Encoding {
		count.Percent = s.count.Percent
	}
	return count
}

// room is how many tokens of the conversation fit a request to the model; 0 is no limit.
func (c *compaction) room(m *Model, s *sizes, instruction string) int {
	if m.Window <= 0 {
		return 0
	}
	beside := s.fixed + len(instruction)/3
	left := m.Window - c.output(m, s) - beside*max(s.countFor(m).Percent, 100)/100
	return max(left*9/10, m.Window/16, 1) // estimates err
}

// requestTo makes the request of a part: the agent's own system prompt and tools, so that the
// model knows the field, what was said as plain text, and what to do with it. Tools
// are not to be called. Where they leave no room they are left out.
func (c *compaction) requestTo(m *Model, s *sizes, text []message.Message, instruction string) *model.Request {
	zero := 0.0
	o := prompt.Options{MaxTokens: c.output(m, s), Temperature: &zero, ToolChoice: model.ToolChoiceNone}
	parts := prompt.Parts{Model: m.ID, System: c.system, Tools: c.tools, Session: c.d.row.SessionID + "/summary"}
	if len(c.tools) == 0 || m.Window > 0 && s.fixed > m.Window/2 {
		parts.Tools, o.ToolChoice = nil, ""
	}
	if n := len(text); n > 0 && text[n-1].Role == message.RoleUser {
		last := text[n-1]
		last.Content = append(slices.Clone(last.Content), message.Text(instruction))
		text = append(text[:n-1:n-1], last)
	} else {
		text = append(text, message.User(instruction))
	}
	parts.Messages, parts.Options = text, o
	req := prompt.Build(&parts)
	req.CacheLast = false // nobody goes on from here
	return req
}

// once makes a call that is paid for. The error is one that no other call mends.
func (c *compaction) once(ctx context.Context, m *Model, req *model.Request, attempt int) (*message.Message, *run.ModelFailed, error) {
	d := c.d
	if err := c.budget.pay(ctx, m, req); err != nil {
		return nil, nil, err
	}
	pace := &pace{d: d, who: c.rules.who, rules: c.rules.rules}
	if err := pace.wait(ctx, c.step, req); err != nil {
		c.budget.settle(nil, run.SettleFree)
		return nil, nil, err
	}
	eff := run.CallModel{Step: c.step, Attempt: attempt}
	use, idle, total := *m, c.agent.ModelIdle, c.agent.ModelTotal
	if d.modelAway(&use) {
		idle, total = 0, 0
		use.Provider = &poolProvider{d: d, m: use, eff: eff, epoch: c.fence}
	}
	watched := watchedModel(c.seen, eff, &use, nil)
	watched.began(d.e, req)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := &generation{d: d, m: use, step: c.step, idle: idle, total: total, watched: watched, silent: true}
	in := g.run(ctx, cancel, req)
	pace.settle(in)
	watched.ended(d.e, in)
	switch in := in.(type) {
	case run.ModelDone:
		c.used(m, in.Message.Usage, run.SettleUsed)
		return in.Message, nil, nil
	case run.ModelFailed:
		u, how := in.Usage, run.SettleLost // what is known of a call without a reply is not what is billed
		if in.Partial != nil && in.Partial.Usage != nil {
			sum := message.Usage{}
			sum.Add(u)
			sum.Add(in.Partial.Usage)
			u = &sum
		}
		if in.Free && u == nil {
			how = run.SettleFree
		}
		c.used(m, u, how)
		if in.Class == run.FailCancelled {
			return nil, nil, context.Cause(ctx)
		}
		return nil, &in, nil
	}
	return nil, nil, errNoSummary
}

// s4 is how many bytes that many tokens of text have at most, about: what is longer no
// model was asked for.
func s4(tokens int) int { return tokens * 6 }

// used notes what a call used.
func (c *compaction) used(m *Model, u *message.Usage, how string) {
	if u != nil {
		provider, name, _ := strings.Cut(m.Name, "/")
		c.made.usages = append(c.made.usages, modelUsage{provider, name, u})
	}
	c.budget.settle(u, how)
}

// compactionBudget reserves for the calls of a compaction, one after the other, what they
// may cost at most, as is done for every call. What the run keeps to close its answer
// stays kept.
type compactionBudget struct {
	c    *compaction
	info *model.Info
	open bool
	// pending settles the last call: with the next reservation, or in the last commit.
	pending *store.Settlement
	count   int
}

// pay reserves for a call, or says why it can not be paid.
func (b *compactionBudget) pay(ctx context.Context, m *Model, req *model.Request) error {
	c := b.c
	if !slices.ContainsFunc(c.pots, holdsOf) {
		return nil
	}
	if !m.Info.Priced() && slices.ContainsFunc(c.pots, func(p run.Pot) bool { return p.MaxCost > 0 }) {
		return fmt.Errorf("%w: the price of %s is not known", errNoSummary, m.Name)
	}
	e, now := c.d.e, c.d.e.now()
	b.info = &m.Info
	input, reply := inputBound(req), int64(req.MaxTokens)
	call := store.Amounts{Money: int64(model.MaxCost(&m.Info, input, reply)), Tokens: input + reply}
	tx := &store.Tx{Tenant: c.d.ref.Tenant, Fences: []store.Fence{{RunID: c.d.ref.ID, Epoch: c.fence}}}
	if b.pending != nil {
		if err := e.put(ctx, &store.Tx{Tenant: tx.Tenant, Fences: tx.Fences, Settles: []store.Settlement{*b.pending}}); err != nil {
			return err
		}
		b.pending = nil
	}
	pots, err := e.store.Pots(ctx, c.d.ref.Tenant, c.d.ref.ID, potRefs(c.pots, now))
	if err != nil {
		return err
	}
	var keep store.Amounts
	for i := range pots {
		keep.Money, keep.Tokens = max(keep.Money, pots[i].Own.Money), max(keep.Tokens, pots[i].Own.Tokens)
	}
	caps := potCaps(c.pots, now)
	for i := range caps {
		caps[i].Max.Calls = 0 // it calls none
	}
	b.count++
	tx.Reserves = []store.Reservation{{RunID: c.d.ref.ID, Key: fmt.Sprintf("%s/summary/%d@%d", c.eff.Entry, b.count, c.fence), Call: call, Keep: keep, Pots: caps, Time: now}}
	var full *store.ExhaustedError
	switch err := e.put(ctx, tx); {
	case errors.As(err, &full):
		return fmt.Errorf("%w: the budget does not allow it (%w)", errNoSummary, err)
	case err != nil:
		return err
	}
	b.open = true
	return nil
}

// settle says what a call cost that was paid for.
func (b *compactionBudget) settle(u *message.Usage, how string) {
	if !b.open {
		return
	}
	b.open = false
	c, now := b.c, b.c.d.e.now()
	s := &store.Settlement{RunID: c.d.ref.ID, How: how, Time: now, Pots: potRefs(c.pots, now)}
	if how == run.SettleUsed && (u == nil || u.Estimated) {
		s.How = run.SettleLost
	}
	if u != nil {
		cost := u.Cost.Total
		if cost == 0 && b.info != nil {
			cost = model.Cost(b.info, u).Total
		}
		s.Used = store.Amounts{Money: int64(cost), Tokens: u.Prompt() + u.Output}
	}
	b.pending = s
}
