package modeltest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"agentd/message"
	"agentd/model"
)

// Party is one model of the hand-off matrix.
type Party struct {
	// Name tells the parties apart.
	Name string
	// Model is what it is asked for.
	Model string
	// NoImages: it takes none.
	NoImages bool
	// InProcess: nothing is sent to it, it is asked in this process.
	InProcess bool
	// Uncounted: it does not say what it read from a cache.
	Uncounted bool
	// New makes its adapter for a service at a URL; client sends the requests.
	New func(t testing.TB, url string, client *http.Client) model.Provider
}

// HandoffScript is what the service that plays all parties has to answer: thinking and two
// calls, thinking and one call, then a text.
const HandoffScript = `
turns:
- thinking: "Let me think of step {{.Step}}."
  text: I will look.
  tool_calls: [{name: look, arguments: {at: "a"}}, {name: look, arguments: {at: "b"}}]
- thinking: "Let me think of step {{.Step}}."
  tool_calls: [{name: look, arguments: {at: "c"}}]
- text: "{{count .Results}} results."
`

// Handoffs has every party take a conversation over from every other, with tools, thinking
// and images in it, and give it back. The service at url plays all of them by
// [HandoffScript] and refuses what theirs refuses. prepare makes a conversation fit to be
// sent, as the engine does. A further provider is one more party.
func Handoffs(t *testing.T, url string, parties []Party, prepare func(msgs []message.Message, to *Party) []message.Message) {
	for i := range parties {
		for j := range parties {
			t.Run(parties[i].Name+" to "+parties[j].Name, func(t *testing.T) {
				h := handoff{t: t, prepare: prepare}
				h.run(h.join(url, &parties[i]), h.join(url, &parties[j]))
			})
		}
	}
}

// handoff is one conversation.
type handoff struct {
	t       *testing.T
	prepare func([]message.Message, *Party) []message.Message
	msgs    []message.Message
}

// member is a party in a conversation.
type member struct {
	*Party
	provider model.Provider
	sent     *wiretap
	scratch  model.Scratch
}

func (h *handoff) join(url string, p *Party) *member {
	m := &member{Party: p, sent: &wiretap{}}
	m.provider = p.New(h.t, url, &http.Client{Transport: m.sent})
	return m
}

// wiretap keeps the body of the last request.
type wiretap struct {
	mu   sync.Mutex
	last []byte
}

func (w *wiretap) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.mu.Lock()
		w.last = body
		w.mu.Unlock()
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (w *wiretap) body() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.last)
}

// next has a member answer, and gives what it was sent.
func (h *handoff) next(m *member, calls int) (sent string, reply *message.Message) {
	h.t.Helper()
	reply, err := m.provider.Generate(h.t.Context(), &model.Request{
		Model: m.Model, MaxTokens: 4000, Thinking: model.ThinkingLow, CacheLast: true, Scratch: &m.scratch,
		System:   []model.SystemPart{{Text: "Be careful.", Cache: true}},
		Tools:    []model.ToolSpec{{Name: "look", Description: "Looks.", Schema: json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}}}`)}},
		Messages: h.prepare(h.msgs, m.Party),
	}, nil)
	if err != nil {
		h.t.Fatalf("%s: %v\nafter being sent\n%s", m.Name, err, m.sent.body())
	}
	if n := len(reply.ToolCalls()); n != calls {
		h.t.Fatalf("%s made %d calls, not %d: %s", m.Name, n, calls, dump(reply))
	}
	h.msgs = append(h.msgs, *reply)
	return m.sent.body(), reply
}

const picture = "aVZCT1J3MEtHZ29B" // base64, of nothing in particular

func (h *handoff) run(from, to *member) {
	h.msgs = []message.Message{{Role: message.RoleUser, Content: []message.Block{message.Text("What is there?"), message.Image(picture, "image/png")}}}
	_, first := h.next(from, 2)
	calls := first.ToolCalls()
	h.msgs = append(h.msgs, message.ToolResult(calls[0].ID, "look", false, message.Text("first result"), message.Image("c2Vjb25kIHBpY3R1cmU=", "image/png")),
		message.ToolResult(calls[1].ID, "look", true, message.Text("second result")))

	// Taken over in the middle of a turn.
	sent, second := h.next(to, 1)
	foreign := from.Model != to.Model || from.Name != to.Name
	h.has(to, sent, "What is there?", "I will look.", "first result", "second result")
	for _, data := range []string{picture, "c2Vjb25kIHBpY3R1cmU="} {
		if strings.Contains(sent, data) == to.NoImages {
			h.t.Errorf("%s takes images: %t, and was sent\n%s", to.Name, !to.NoImages, sent)
		}
	}
	for _, b := range first.Content {
		if b.Type == message.BlockThinking {
			h.has(to, sent, b.Text) // as text, or as it was
		}
		opaque := len(b.Signature) > 20 // not the name of a field
		if opaque && strings.Contains(sent, b.Signature) == foreign {
			h.t.Errorf("%s was sent a signature of %s: %t\n%s", to.Name, from.Name, foreign, sent)
		}
	}

	// Given back, with a call that was never answered.
	h.msgs = append(h.msgs, message.User("Never mind that."))
	sent, _ = h.next(from, 0)
	h.has(from, sent, "Never mind that.")
	for _, b := range first.Content {
		if len(b.Signature) > 20 && !strings.Contains(sent, b.Signature) {
			h.t.Errorf("%s did not get its own %s back as it was:\n%s", from.Name, b.Type, sent)
		}
	}
	for _, b := range second.Content {
		if len(b.Signature) > 20 && strings.Contains(sent, b.Signature) == foreign {
			h.t.Errorf("%s was sent a signature of %s: %t\n%s", from.Name, to.Name, foreign, sent)
		}
	}

	// And to its end by the other.
	h.msgs = append(h.msgs, message.User("Look again."))
	_, again := h.next(to, 2)
	for _, c := range again.ToolCalls() {
		h.msgs = append(h.msgs, message.ToolResult(c.ID, c.Name, false, message.Text("x")))
	}
	_, more := h.next(from, 1)
	h.msgs = append(h.msgs, message.ToolResult(more.ToolCalls()[0].ID, "look", false))
	_, end := h.next(to, 0)
	if end.StopReason != message.StopEnd || !strings.Contains(end.Text(), " results.") {
		h.t.Errorf("the end: %s", dump(end))
	}
}

func (h *handoff) has(m *member, sent string, texts ...string) {
	h.t.Helper()
	for _, s := range texts {
		if !strings.Contains(sent, s) {
			h.t.Errorf("%s was not sent %q in\n%s", m.Name, s, sent)
		}
	}
}
