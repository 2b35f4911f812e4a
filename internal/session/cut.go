package session

import (
	"slices"

	"agentd/message"
	"agentd/model"
)

// Cut says what a compaction does with the messages of a conversation: those from From
// to To are summarised, and the ones from To on stay. What is ahead of From is an
// earlier summary.
type Cut struct {
	From, To int
	// Turn is where the turn begins that To splits, or To: what is ahead of Turn and
	// what is behind it are summarised apart, because the second is what the model is
	// in the middle of.
	Turn int
	// Short bounds the texts of the messages that stay, in bytes; 0: they stay whole.
	Short int
	// Images is how many images of the messages that stay are replaced by notes, the
	// oldest first.
	Images int
	// All is whether nothing stays, because what the model has to answer does not fit
	// in any other way: it is summarised as well.
	All bool
}

// Any is whether there is anything to do.
func (c *Cut) Any() bool { return c.To > c.From || c.Short > 0 || c.Images > 0 }

// Changes gives what is done to each of the messages that stay; nil: nothing is done to it.
func (c *Cut) Changes(stays []message.Message) []*Shortened {
	out := make([]*Shortened, len(stays))
	left := c.Images
	for i := range stays {
		s := Shortened{Bytes: c.Short, Images: min(left, images(&stays[i]))}
		left -= s.Images
		if s.Bytes > 0 {
			s.Form = shortForm
		}
		if s.Images > 0 || s.Bytes > 0 {
			out[i] = &s
		}
	}
	return out
}

// Stays gives the messages that stay, as they do.
func (c *Cut) Stays(stays []message.Message) []message.Message {
	if c.Short == 0 && c.Images == 0 {
		return stays
	}
	out := slices.Clone(stays)
	for i, s := range c.Changes(stays) {
		if s != nil {
			out[i] = s.Apply(stays[i])
		}
	}
	return out
}

// Count says how messages are counted: the way of their model, and by how many hundredths
// of that, where what its provider said before tells; 0 is all of it. The zero value is
// for a model that nobody knows.
type Count struct {
	Encoding model.Encoding
	Percent  int
}

// Tokens is about how many tokens messages have.
func (c Count) Tokens(msgs []message.Message) int { return c.tokens(c.Encoding.Sum(msgs)) }

func (c Count) tokens(sum model.Sum) int {
	n := sum.Tokens()
	if c.Percent > 0 {
		n = (n*int64(c.Percent) + 50) / 100
	}
	return int(n)
}

// MessageTokens is about how many tokens messages have, of a model that nobody knows.
func MessageTokens(msgs []message.Message) int { return Count{}.Tokens(msgs) }

// behind is how many tokens there are from each message on, to the end.
func (c Count) behind(msgs []message.Message) []int {
	out := make([]int, len(msgs)+1)
	for i := len(msgs) - 1; i >= 0; i-- {
		out[i] = out[i+1] + c.Tokens(msgs[i:i+1])
	}
	return out
}

// FindCut looks where to cut the messages behind the first from ones, which are an
// earlier summary. About keep tokens stay, and no more than room, where room
// is above 0: what can not be left out is shortened instead. ok says of a message that
// the conversation can begin with it; results of calls never can, whatever it says. The
// last message of a person, and the results that the model has not seen, with their
// calls, always stay. count says how many tokens messages have.
func FindCut(msgs []message.Message, from, keep, room int, count Count, ok func(i int) bool) Cut {
	c := Cut{From: min(from, len(msgs))}
	valid := func(i int) bool { return i < len(msgs) && msgs[i].Role != message.RoleToolResult && ok(i) }
	last := max(unseen(msgs), c.From)
	for last > c.From && last < len(msgs) && !valid(last) {
		last--
	}
	// From the end back to where enough stays, and forward to where it may begin.
	behind := count.behind(msgs)
	if room > 0 && behind[c.From] <= leastSummary {
		c.To, c.Turn = c.From, c.From // what would stand for it is no smaller
		return c
	}
	at := len(msgs)
	for at > c.From && behind[at] < keep {
		at--
	}
	if behind[at] < keep {
		at = c.From // everything may stay
	}
	for at < last && at > c.From && !valid(at) {
		at++
	}
	c.To = min(at, last)
	for room > 0 && c.To < last && behind[c.To] > room {
		if c.To++; c.To < last {
			for c.To < last && !valid(c.To) {
				c.To++
			}
		}
	}
	if room > 0 && count.Tokens(msgs[c.To:]) > room {
		c.shrink(msgs, room, count)
	}
	c.Turn = c.To
	if c.All {
		for c.Turn > c.From && (c.Turn == len(msgs) || msgs[c.Turn].Role != message.RoleUser) {
			c.Turn--
		}
	} else if c.To < len(msgs) && c.To > c.From && msgs[c.To].Role != message.RoleUser {
		for c.Turn > c.From && msgs[c.Turn].Role != message.RoleUser {
			c.Turn--
		}
	}
	return c
}

// leastSummary is about how many tokens a summary has at least, with what is around it.
const leastSummary = 150

// shrink makes what stays fit: by shortening texts, then without the oldest images, then,
// where even that is too much, as with very many small results, by summarising it as well. What
// is smaller than any summary stays.
func (c *Cut) shrink(msgs []message.Message, room int, count Count) {
	stays := msgs[c.To:]
	c.Short = shortest(stays, room, count)
	sum := count.Encoding.Sum(c.Stays(stays))
	// Each image is counted once: there may be thousands.
	one := func(b *message.Block) model.Sum {
		return count.Encoding.Sum([]message.Message{{Content: []message.Block{*b}}})
	}
	for i := range stays {
		for j := range stays[i].Content {
			if b := &stays[i].Content[j]; b.Type == message.BlockImage && count.tokens(sum) > room {
				note := imageDropped(b)
				sum = sum.Instead(one(b), one(&note))
				c.Images++
			}
		}
	}
	switch {
	case count.tokens(sum) > room && count.Tokens(stays) <= leastSummary:
		c.Short, c.Images = 0, 0 // what would stand for it is no smaller
	case count.tokens(sum) > room:
		*c = Cut{From: c.From, To: len(msgs), All: true}
	case c.Images > 0:
		// Without them texts may stay longer, or whole.
		rest := (&Cut{Images: c.Images}).Stays(stays)
		if c.Short = 0; count.Tokens(rest) > room {
			c.Short = shortest(rest, room, count)
		}
	}
}

// images is how many images a message has.
func images(m *message.Message) (n int) {
	for i := range m.Content {
		if m.Content[i].Type == message.BlockImage {
			n++
		}
	}
	return n
}

// unseen is the first of the messages that the model has to answer: the last one of a
// person, or the call whose results are the last. It is len(msgs) if all are answered.
func unseen(msgs []message.Message) int {
	n := len(msgs)
	if n == 0 || msgs[n-1].Role == message.RoleAssistant && len(msgs[n-1].ToolCalls()) == 0 {
		return n
	}
	for i := n - 1; i >= 0; i-- {
		switch msgs[i].Role {
		case message.RoleAssistant:
			return i
		case message.RoleUser:
			if i == 0 || msgs[i-1].Role != message.RoleUser && msgs[i-1].Role != message.RoleToolResult {
				return i
			}
		}
	}
	return 0
}

// shortest is the longest that texts may be for messages to fit, and not less than what
// is left of a text at least: then they may not fit.
func shortest(msgs []message.Message, room int, count Count) int {
	low, high := leastShort, leastShort
	for i := range msgs {
		high = max(high, size(&msgs[i]))
	}
	for low < high {
		mid := low + (high-low+1)/2
		if count.Tokens(plainly(msgs, mid)) <= room {
			low = mid
		} else {
			high = mid - 1
		}
	}
	// Which lines of a middle stay is dear to find out, so it is looked for last.
	for low > leastShort {
		over := count.Tokens((&Cut{Short: low}).Stays(msgs)) - room
		if over <= 0 {
			break
		}
		low = max(low-max(low/10, linesNote, over*4/len(msgs)), leastShort)
	}
	return low
}

// plainly shortens messages to their ends.
func plainly(msgs []message.Message, bytes int) []message.Message {
	out := make([]message.Message, len(msgs))
	for i := range msgs {
		out[i] = shorten(msgs[i], bytes, middleOut)
	}
	return out
}
