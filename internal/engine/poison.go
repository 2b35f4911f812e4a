package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"

	"agentd/event"
	"agentd/internal/prompt"
	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
)

// What a provider refused once stays in its session, and would be refused with every
// later message. So when a request is refused, it is made again without what may be
// to blame: images, if the provider names them; else what runs said that failed before
// this one. If that goes through, they are to blame, and are left out from then on. A
// request that is refused for another reason (a wrong setting, a model that is not
// there) is refused again, and nothing is left out for it.

// cure is a part of the conversation that may be to blame.
type cure struct {
	what    string
	reason  string
	entries map[string]bool
}

// asked is what a model call was made of, for making it again.
type asked struct {
	d       *driver
	m       Model
	parts   prompt.Parts
	origins []origin
	closing *message.Message
	// large is why it can not be sent to the model as it is, or "".
	large string
	// compacts: what does not fit is compacted first.
	compacts bool
	// less is after how many milliseconds reasoning was left out, 0 if none was.
	less int64
	// replies are the newest of the conversation, looked is how the request that was made
	// last relates to the one before it.
	replies []replyAt
	// made is the compaction that the conversation begins with, or nil.
	made *session.Made
	// late is the list of tools that it has, or nil.
	late   *lateTools
	looked atomic.Pointer[looked]
	// looking ends when that is found, where it is found beside the call.
	looking atomic.Pointer[chan struct{}]
}

// request builds the request, without what a cure leaves out; nil leaves nothing out.
// It runs outside the driver's goroutine.
func (a *asked) request(ctx context.Context, c *cure) (*model.Request, error) {
	msgs := a.parts.Messages
	if c != nil {
		msgs = c.apply(msgs, a.origins)
	}
	if a.closing != nil {
		msgs = append(msgs[:len(msgs):len(msgs)], *a.closing)
	}
	if c == nil && a.large != "" {
		return nil, &model.Error{Class: model.ClassOverflow, Provider: a.m.Name, Message: a.large}
	}
	d := a.d
	msgs, err := d.e.context(ctx, d.ref, msgs)
	if err != nil {
		return nil, err
	}
	msgs = session.Fit(msgs, &session.Limits{Images: d.e.cfg.Images, NoImages: a.m.NoImages, Window: a.m.Window})
	parts := a.parts
	parts.Messages = d.prefixed(msgs)
	req := prompt.Build(&parts)
	a.lookAt(ctx, req, c)
	return req, nil
}

// apply leaves out. The messages are not changed.
func (c *cure) apply(msgs []message.Message, origins []origin) []message.Message {
	out := append([]message.Message(nil), msgs...)
	for i := range out {
		if i < len(origins) && c.entries[origins[i].entry] {
			out[i] = session.LeaveOut(out[i], c.what, c.reason)
		}
	}
	return out
}

// again makes a call that failed without what may be to blame, and gives the outcome:
// the first one's, if nothing helped. What was paid for is not exceeded: paid is nil
// where there is no limit. What is refused is refused before anything of a reply came;
// one that had begun is not made again, because it is owed, and was seen.
func (a *asked) again(ctx context.Context, cancel context.CancelCauseFunc, g *generation, first run.Input, paid *grant) run.Input {
	failed, ok := first.(run.ModelFailed)
	if !ok || a.compacts && failed.Class == run.FailOverflow || paid != nil && paid.cut || !failed.Free || failed.Class != run.FailOverflow && failed.Reason != string(model.ClassInvalid) {
		return first
	}
	for _, c := range a.cures(ctx, &failed) {
		if ctx.Err() != nil {
			return first
		}
		req, err := a.request(ctx, c)
		if err != nil {
			return first
		}
		if paid != nil && !a.pays(paid, req, c) {
			return first
		}
		switch in := g.run(ctx, cancel, req).(type) {
		case run.ModelDone:
			return cured{in, c}
		case run.ModelFailed:
			switch {
			case in.Class != run.FailOverflow && in.Class != run.FailFatal:
				return in // it may go through later, and is refused first again
			case !in.Free:
				// The refusal says more of why, but this call is owed.
				failed.Free, failed.Usage = false, in.Usage
				return failed
			}
		}
	}
	return first
}

// pays makes a request that leaves something out fit what was reserved for the one that
// does not, and reports whether it can. The text that takes a short message's place may
// be longer than that, and an application's hook may have made another request of it.
func (a *asked) pays(paid *grant, req *model.Request, c *cure) bool {
	req.MaxTokens, req.Thinking = paid.req.MaxTokens, paid.req.Thinking
	if !paid.held {
		return true
	}
	input := inputBound(req)
	if !a.d.e.hooked() {
		var put []message.Message
		for i, o := range a.origins {
			if c.entries[o.entry] {
				put = append(put, session.LeaveOut(a.parts.Messages[i], c.what, c.reason))
			}
		}
		input = min(input, paid.input+messagesBound(put))
	}
	o := prompt.Options{MaxTokens: req.MaxTokens}
	longest := replyBound(&o, &a.m.Info)
	fits := func(reply int64) bool {
		return int64(model.MaxCost(paid.info, input, reply)) <= paid.call.Money && input+reply <= paid.call.Tokens
	}
	reply := most(0, longest, fits)
	if reply < max(paid.least, 1) {
		return false
	}
	if reply < longest {
		req.MaxTokens = int(reply)
	}
	return true
}

// maxReason bounds what is repeated of a provider's words.
const maxReason = 300

// cures gives what may be to blame, the least that could be first.
func (a *asked) cures(ctx context.Context, f *run.ModelFailed) (cures []*cure) {
	reason := head(strings.ToValidUTF8(f.Error, ""), maxReason)
	add := func(what, reason string, suspect func(i int) bool) {
		c := &cure{what: what, reason: reason, entries: map[string]bool{}}
		for i, o := range a.origins {
			if o.entry != "" && suspect(i) {
				c.entries[o.entry] = true
			}
		}
		if n := len(cures); len(c.entries) > 0 && (n == 0 || cures[n-1].what != what || len(cures[n-1].entries) != len(c.entries)) {
			cures = append(cures, c)
		}
	}
	msgs := a.parts.Messages
	if strings.Contains(strings.ToLower(f.Error), "image") && f.Class != run.FailOverflow {
		answered := len(msgs) - 1 // what a model has answered was taken once
		for answered >= 0 && msgs[answered].Role != message.RoleAssistant {
			answered--
		}
		hasImage := func(i int) bool {
			for j := range msgs[i].Content {
				if msgs[i].Content[j].Type == message.BlockImage {
					return true
				}
			}
			return false
		}
		why := "the model's provider refused it: " + reason
		add(session.LeaveImages, why, func(i int) bool { return i > answered && hasImage(i) })
		add(session.LeaveImages, why, hasImage)
	}
	failed, unanswered := a.suspects(ctx)
	// A summary stands for all that was said before: it is the last to be blamed.
	summary := len(msgs) > 0 && session.Summary(&msgs[0]) && unanswered[0]
	all := unanswered
	if summary {
		failed, unanswered = maps.Clone(failed), maps.Clone(unanswered)
		delete(failed, 0)
		delete(unanswered, 0)
	}
	for _, suspects := range []map[int]bool{failed, unanswered, all} {
		if f.Class == run.FailOverflow {
			add(session.LeaveText, "it did not fit the model's context window", func(i int) bool { return suspects[i] })
		} else {
			add(session.LeaveMessage, "the model's provider refused it: "+reason, func(i int) bool { return suspects[i] })
		}
	}
	return cures
}

// suspects are the messages of the runs directly before this one that failed, and those
// of all runs directly before it that no answer shows to have been taken: one that was
// cancelled, or that completed because its limit was met, may have been refused, too,
// or stand between this run and one that was.
func (a *asked) suspects(ctx context.Context) (failed, unanswered map[int]bool) {
	failed, unanswered = map[int]bool{}, map[int]bool{}
	last, blame, onlyFailed := "", "", true
	for i := len(a.origins) - 1; i >= 0; i-- {
		o := a.origins[i]
		if o.own || o.entry == "" {
			continue
		}
		if i == len(a.origins)-1 || o.run != last || blame == "" {
			last, blame = o.run, a.blame(ctx, o.run, &a.parts.Messages[i])
		}
		if blame == "" {
			break
		}
		if onlyFailed = onlyFailed && blame == string(run.Failed); onlyFailed {
			failed[i] = true
		}
		unanswered[i] = true
	}
	return failed, unanswered
}

// blame is the status of a run that may have been refused, or "". tip is the last
// message of it: an answer without calls was taken with everything before it.
func (a *asked) blame(ctx context.Context, id string, tip *message.Message) string {
	if id == "" {
		return ""
	}
	row, err := a.d.e.store.Run(ctx, a.d.ref.Tenant, id)
	if err != nil || row.Status == string(run.Completed) && tip.Role == message.RoleAssistant {
		return ""
	}
	return row.Status
}

// tooLarge says that a message of this run is alone larger than the model's window,
// or "". What was said before is cut instead.
func (a *asked) tooLarge() string {
	if a.m.Window <= 0 || a.d.e.hooked() { // the application may shorten it
		return ""
	}
	for i := range a.parts.Messages {
		m := &a.parts.Messages[i]
		if n := session.Tokens(m); n > a.m.Window && i < len(a.origins) && a.origins[i].own && m.Role != message.RoleAssistant {
			what := "the message"
			if m.Role == message.RoleToolResult {
				what = "the result of " + m.ToolName
			}
			return fmt.Sprintf("%s has at least %d tokens, and the context window of %s has %d: it was not sent, and the session goes on without the rest of it", what, n, a.m.Name, a.m.Window)
		}
	}
	return ""
}

// cured is a reply that came when something was left out.
type cured struct {
	run.Input
	cure *cure
}

// quarantine notes what was left out, with the reply that came of it.
func (d *driver) quarantine(b *batch, c *cure) {
	now := max(d.e.now(), d.conv.reduced+1)
	d.conv.reduced = now
	d.measured = measured{} // that was of other messages
	d.conv.messages = c.apply(d.conv.messages, d.conv.origins)
	d.conv.tell() // what was left out has to be told again
	for _, o := range d.conv.origins {
		if !c.entries[o.entry] {
			continue
		}
		b.tx.Quarantine = append(b.tx.Quarantine, &store.Quarantine{SessionID: d.row.SessionID, EntryID: o.entry, What: c.what, Reason: c.reason, RunID: d.ref.ID, Created: now})
		data, err := json.Marshal(map[string]string{"entry_id": o.entry, "what": c.what, "reason": c.reason})
		if err != nil {
			continue
		}
		b.events = append(b.events, event.Event{RunID: d.ref.ID, Time: now, Step: d.state.Step, Type: event.EntryQuarantined, Data: json.RawMessage(data)})
	}
	d.e.log.Warn("a request went through without a part of the conversation, which is left out from now on", "run", d.ref.ID,
		"session", d.row.SessionID, "entries", len(c.entries), "what", c.what, "reason", c.reason)
}
