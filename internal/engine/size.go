package engine

import (
	"slices"

	"agentd/internal/prompt"
	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/message"
	"agentd/model"
)

// How large a conversation is: what the provider said of the last reply, and an estimate
// of what came since, corrected by how far off earlier estimates were.

// The bounds of a correction, in hundredths, and how many tokens of a conversation it is
// told from: fewer say nothing, more change nothing.
const (
	correctLeast, correctMost  = 50, 200
	correctFrom, correctEnough = 500, 8000
)

// countOf is how a model's tokens are counted as long as its provider said nothing.
func countOf(m *Model) session.Count { return session.Count{Encoding: model.EncodingOf(m.Name)} }

// full says that the call that was just asked for has to wait for a compaction, or nil.
func (d *driver) full() run.Input {
	if d.agent.Compaction.Off || !d.state.MayCompact() {
		return nil
	}
	s := d.sizes()
	if s.window == 0 {
		return nil
	}
	if told, last := d.told(); last >= 0 && told+s.count.Tokens(d.conv.messages[last+1:])*correctMost/100 <= s.window-s.reserve {
		return nil // whatever the correction is
	}
	if d.size(&s); s.now <= s.window-s.reserve {
		return nil
	}
	if d.state.HeldBack(s.now) {
		return nil
	}
	if cut := d.findCut(&s, run.CompactThreshold); !cut.Any() {
		return nil
	}
	return run.Full{At: d.at(), Tokens: s.now, Window: s.window, Grow: s.reserve / 2}
}

// size fills in how large the conversation is: what the last reply was told that it
// read, and what came since, or an estimate where no reply told.
func (d *driver) size(s *sizes) {
	msgs := d.conv.messages
	system, _ := d.system()
	s.fixed = int(s.count.Encoding.Prompt(&model.Request{System: system, Tools: prompt.Tools(d.declared()), Messages: d.agent.Examples}))
	if s.fixed > s.window/2 && s.window > 0 {
		s.summary = max(min(s.summary, (s.window-s.fixed)/8), 256)
	}
	if !d.e.hooked() {
		s.count.Percent, s.toldBy = d.correction(s.count)
	}
	if told, last := d.told(); last >= 0 {
		s.now = told + s.count.Tokens(msgs[last+1:])
		return
	}
	if d.e.hooked() {
		return // what the application makes of it nobody knows
	}
	s.now = s.fixed + s.count.Tokens(msgs)
}

// told is how many tokens the last reply and all ahead of it have, as its provider said,
// and which message it is; -1 if none told. What a reply was told that was kept when the
// conversation was compacted holds no more.
func (d *driver) told() (tokens, last int) {
	for i := len(d.conv.messages) - 1; i >= 0 && !d.conv.origins[i].kept; i-- {
		if m := &d.conv.messages[i]; d.conv.tells(i) {
			return int(m.Usage.Prompt() + m.Usage.Output), i
		}
	}
	return 0, -1
}

// tells is whether a message is a reply that a run of agentd got, with what it used.
// What a client's history says counts for nothing.
func (c *conversation) tells(i int) bool {
	m := &c.messages[i]
	return m.Role == message.RoleAssistant && m.Usage != nil && !m.Usage.Estimated && m.Usage.Prompt() > 0 && (c.origins[i].own || c.origins[i].run != "")
}

// correction is by how many hundredths of the estimate the conversation grew between
// replies of the same model, as its provider said, the newest first: what came since the
// last will be off by as much. It is told by the messages alone, so that a driver that
// reads the session finds the same. by is the model's name. 0: nothing tells.
func (d *driver) correction(count session.Count) (percent int, by string) {
	c := &d.conv
	newest, grown, taken, sum := -1, 0, 0, 0
	for i := len(c.messages) - 1; i >= 0 && taken < correctEnough; i-- {
		m := &c.messages[i]
		if c.lessened(i) {
			break // it had more when the model read it
		}
		if newest >= 0 {
			sum += count.Tokens([]message.Message{unthought(m)})
		}
		if !c.tells(i) {
			continue
		}
		if newest < 0 {
			newest = i
			continue
		}
		last := &c.messages[newest]
		if m.Provider != last.Provider || m.Model != last.Model {
			break
		}
		grown, taken = int(last.Usage.Prompt()-m.Usage.Prompt()), sum
	}
	if taken < correctFrom || grown <= 0 {
		return 0, ""
	}
	last := &c.messages[newest]
	return min(max(grown*100/taken, correctLeast), correctMost), last.Provider + "/" + last.Model
}

// lessened is whether a message is less than what was said, or stands for it.
func (c *conversation) lessened(i int) bool {
	if c.made == nil {
		return false
	}
	return i == 0 && session.Summary(&c.messages[0]) ||
		slices.ContainsFunc(c.made.Shortened, func(s session.Shortened) bool { return s.Entry == c.origins[i].entry })
}

// unthought is a message without thoughts: some providers take them back and some do not,
// and a correction that thinks they do would be too small.
func unthought(m *message.Message) message.Message {
	out := *m
	if slices.ContainsFunc(m.Content, func(b message.Block) bool { return b.Type == message.BlockThinking }) {
		out.Content = slices.DeleteFunc(slices.Clone(m.Content), func(b message.Block) bool { return b.Type == message.BlockThinking })
	}
	return out
}
