package longsession

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"agentd/internal/session"
	"agentd/message"
	"agentd/model"
)

// writer is a model that says what the plan says, refuses what is larger than its window,
// and writes summaries: of those it knows nothing but the text of the request, of which it
// takes decisions and the paths that results speak of, as far as its reply may be long. The
// paths that calls name it does not take: those are carried along without it.
type writer struct {
	window int

	mu                sync.Mutex
	replies           []*message.Message
	last              *model.Request
	refused, requests int
	summaries, cut    int
	largest           int64 // request for a summary
}

// text is everything that a request holds of a conversation.
func text(req *model.Request) string {
	var b strings.Builder
	for i := range req.Messages {
		for _, c := range req.Messages[i].Content {
			b.WriteString(c.Text)
			b.Write(c.Arguments)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func (w *writer) Generate(_ context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := model.PromptTokens(req)
	asked := strings.Contains(req.Messages[len(req.Messages)-1].Text(), session.SummaryPrompt)
	if w.window > 0 && n > int64(w.window) {
		w.refused++
		return nil, &model.Error{Class: model.ClassOverflow, Provider: "sim", Status: 400, Message: fmt.Sprintf("%d tokens are more than %d", n, w.window)}
	}
	var m message.Message
	if asked {
		m = w.summary(req)
		w.summaries, w.largest = w.summaries+1, max(w.largest, n)
	} else {
		if len(w.replies) == 0 {
			return nil, &model.Error{Class: model.ClassInvalid, Provider: "sim", Message: "the plan is over"}
		}
		w.last, w.requests = req, w.requests+1
		m, w.replies = *w.replies[0], w.replies[1:]
	}
	out := model.ReplyTokens(&m)
	m.Usage = &message.Usage{Input: n, Output: out, TotalTokens: n + out}
	if emit != nil {
		emit(model.StreamEvent{Type: model.StreamStart, Partial: &m})
	}
	return &m, nil
}

// summary is one, in the order in which things were said, cut where the reply ends.
func (w *writer) summary(req *model.Request) message.Message {
	marks := regexp.MustCompile(`DECISION-\d+: [a-z0-9 ]+order|src/[a-z0-9/]+/found\d+_test\.go`)
	said := map[string]int{}
	for i, s := range marks.FindAllString(text(req), -1) {
		if _, ok := said[s]; !ok {
			said[s] = i
		}
	}
	lines := slices.SortedFunc(maps.Keys(said), func(a, b string) int { return said[a] - said[b] })
	out := "<analysis>All of it was looked at.</analysis>\n<summary>\n## Key Decisions\n" + strings.Join(lines, "\n") + "\n</summary>"
	m := message.Message{Role: message.RoleAssistant, StopReason: message.StopEnd, Provider: "sim", Model: "m"}
	if req.MaxTokens > 0 && len(out) > req.MaxTokens*4 {
		out, m.StopReason = out[:req.MaxTokens*4], message.StopLength
		w.cut++
	}
	m.Content = []message.Block{message.Text(out)}
	return m
}
