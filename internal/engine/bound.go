package engine

import (
	"slices"
	"strings"
	"unicode/utf8"

	"agentd/internal/prompt"
	"agentd/message"
	"agentd/model"
)

// What a request has besides its texts, in tokens, counted high: the marks around
// messages and blocks, the frame of a tool, an image of the largest size that is not
// scaled down, and what providers put in front where there are tools.
const (
	boundMessage = 16
	boundBlock   = 8
	boundTool    = 32
	boundImage   = 8192
	boundTools   = 1024
	boundRequest = 64
)

// inputBound is a number of tokens that a request can not exceed: tokens of byte-level
// encodings stand for at least a byte each.
func inputBound(req *model.Request) int64 {
	n := int64(boundRequest) + int64(len(req.Schema)) + messagesBound(req.Messages)
	for i := range req.System {
		n += boundMessage + int64(len(req.System[i].Text))
	}
	if len(req.Tools) > 0 {
		n += boundTools
	}
	for i := range req.Tools {
		t := &req.Tools[i]
		n += boundTool + int64(len(t.Name)+len(t.Description)+len(t.Schema))
	}
	return n
}

func messagesBound(msgs []message.Message) (n int64) {
	for i := range msgs {
		n += boundMessage
		for j := range msgs[i].Content {
			b := &msgs[i].Content[j]
			n += boundBlock
			if b.Type == message.BlockImage {
				n += boundImage
				continue
			}
			n += int64(len(b.Text) + len(b.Signature) + len(b.ID) + len(b.Name) + len(b.Arguments))
		}
	}
	return n
}

// measured is what the last reply told of the size of the conversation: closer than
// any bound from bytes.
type measured struct {
	// index is the model's, upto how many messages are contained, tokens what they,
	// the system prompt and the tools come to.
	index, upto int
	tokens      int64
}

// measure takes in what a reply used, once it is part of the conversation. A guess
// measures nothing, and neither does what a request used from which results were left
// out: the next one has them again.
func (d *driver) measure(u *message.Usage) {
	d.measured = measured{}
	if u != nil && !u.Estimated && (d.grant == nil || !d.grant.cut) && d.state.Model != nil && u.Prompt() > 0 {
		d.measured = measured{index: d.state.Model.Index, upto: d.conv.replied(), tokens: u.Prompt() + u.Output}
	}
}

// replied is how many messages there are up to the last reply: what came with it, such
// as a message that was queued, is in no measurement yet.
func (c *conversation) replied() int {
	n := len(c.messages)
	for n > 0 && c.messages[n-1].Role != message.RoleAssistant {
		n--
	}
	return n
}

// bound is the bound of the next request, which has the conversation's messages
// after before other ones, if nothing changed them.
func (k *measured) bound(req *model.Request, index, before int) int64 {
	n := inputBound(req)
	if k.tokens > 0 && k.index == index && before+k.upto <= len(req.Messages) {
		return min(n, k.tokens+boundRequest+messagesBound(req.Messages[before+k.upto:]))
	}
	return n
}

// remembered is a bound from what an earlier run of the session told: the last reply
// of the same model says what everything up to it comes to. What system prompt,
// tools and examples there were then nobody knows, so all of today's is added. It is
// 0 if there is no such reply, or something before it came later, such as a summary.
// Only what a run of agentd was told counts: a client's history says what it likes.
// reasoning is after how many milliseconds reasoning is left out now.
func remembered(req *model.Request, name string, before int, origins []origin, reasoning int64) int64 {
	for i := len(req.Messages) - 1; i >= before; i-- {
		m := &req.Messages[i]
		if m.Role != message.RoleAssistant || m.Usage == nil || m.Usage.Prompt() == 0 || m.Usage.Estimated || !readAsMuch(m, reasoning) {
			continue
		}
		k := i - before
		if k >= len(origins) || !origins[k].own && origins[k].run == "" {
			continue
		}
		if origins[k].kept {
			return 0 // it read no summary, which may be longer than what it stands for
		}
		if !strings.HasPrefix(m.Provider+"/"+m.Model, name) {
			return 0
		}
		for j := before; j < i; j++ {
			if req.Messages[j].Timestamp > m.Timestamp {
				return 0
			}
		}
		rest := *req
		rest.Messages = req.Messages[:before]
		return m.Usage.Prompt() + m.Usage.Output + inputBound(&rest) + messagesBound(req.Messages[i+1:])
	}
	return 0
}

// readCut is noted with a reply to a request from which parts of results were left out:
// what it used says nothing of the size of the conversation.
const readCut = `{"read_cut":true}`

// replyBound is how long a reply may be.
func replyBound(o *prompt.Options, info *model.Info) int64 {
	switch {
	case o.MaxTokens > 0:
		return int64(o.MaxTokens)
	case info.MaxOutput > 0:
		return int64(info.MaxOutput)
	}
	return model.DefaultMaxOutput
}

// shorten takes at least n bytes off the results of the last calls, the longest
// first, and gives the messages as they are then. What was left out is said. It
// may find less than n.
func shorten(msgs []message.Message, n int64) []message.Message {
	const note = "\n[… the rest was left out: the budget is used up]"
	msgs = slices.Clone(msgs)
	var texts []*string
	for i := len(msgs) - 1; i >= 0 && msgs[i].Role != message.RoleAssistant; i-- {
		if msgs[i].Role != message.RoleToolResult {
			continue
		}
		msgs[i].Content = slices.Clone(msgs[i].Content)
		for j := range msgs[i].Content {
			if b := &msgs[i].Content[j]; b.Type == message.BlockText {
				texts = append(texts, &b.Text)
			}
		}
	}
	slices.SortStableFunc(texts, func(a, b *string) int { return len(*b) - len(*a) })
	for _, t := range texts {
		if n <= 0 {
			break
		}
		keep := max(0, len(*t)-int(min(n, 1<<30))-len(note))
		for keep > 0 && !utf8.RuneStart((*t)[keep]) {
			keep--
		}
		if cut := int64(len(*t) - keep - len(note)); cut > 0 {
			*t = (*t)[:keep] + note
			n -= cut
		}
	}
	return msgs
}
