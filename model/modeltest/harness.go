package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"agentd/message"
	"agentd/model"
)

// Key is the credential of every adapter under test.
const Key = "sk-test-very-secret-0123456789"

// Server is what an adapter is made for.
type Server struct {
	URL  string // of the test server, without a path
	Key  model.CredentialFunc
	Idle time.Duration // 0: the adapter's default
	// Client sends the requests; nil: the adapter's own.
	Client *http.Client
}

// Harness describes an adapter to the suite.
type Harness struct {
	// New makes the adapter.
	New func(t testing.TB, s Server) model.Provider
	// Provider, API and Model are what replies must say.
	Provider, API, Model string
	// Path is that of a request.
	Path string
	// Fixtures is the folder of the fixtures under testdata; empty: testdata itself.
	Fixtures string
	// Sign sets the signature of a text or a tool call of the fixtures; nil: they
	// have none.
	Sign func(b *message.Block)
	// Stops gives the stop texts that a request asks for, MaxStops is how many of them
	// the API takes at the most; nil: any number, or none at all.
	Stops    func(t testing.TB, body []byte) []string
	MaxStops int
	// NoStop says that the format has no place for stop texts.
	NoStop bool
	// Key finds the credential in a request.
	Key func(h http.Header) string
	// Usage is what the fixture of a scenario counts, cost left out.
	Usage map[string]message.Usage
	// Signature is that of the thinking block in the fixture thinking.sse;
	// Replay is how the block must appear in the next request.
	Signature, Replay string
	// Complete returns from which length on a cut fixture is an answer. Nil: streams
	// are not cut, because another harness of the same decoder does that.
	Complete func(fixture []byte) int
	// Wire is the stream format in pieces.
	Wire *Wire
	// Failures are error responses; Broken are fixtures that end in an error.
	Failures []Failure
	Broken   map[string]model.Class
	// Messages returns the encoded messages of a request without cache marks,
	// IDs the ids of tool calls and of results in them.
	Messages func(t testing.TB, body []byte) []json.RawMessage
	IDs      func(t testing.TB, body []byte) (calls, results []string)
	// Ignores names the edits of a history that the format has no place for.
	Ignores []string
	// IDLimit is the longest id that the provider takes.
	IDLimit int
	// Tiers says how replies tell their tier of service; nil: they have none.
	Tiers *Tiers
	// Free: replies cost nothing.
	Free bool
}

// Failure is an error response and what it means.
type Failure struct {
	Name   string
	Status int
	Header map[string]string
	Body   string
	Class  model.Class
	Retry  time.Duration
}

// Run checks an adapter. The fixtures are in testdata.
func Run(t *testing.T, h Harness) {
	t.Run("scenarios", func(t *testing.T) { scenarios(t, h) })
	t.Run("stream", func(t *testing.T) { eventStream(t, h) })
	t.Run("broken streams", func(t *testing.T) { brokenStreams(t, h) })
	if h.Complete != nil {
		t.Run("cut at every byte", func(t *testing.T) { cuts(t, h) })
	}
	if h.Tiers != nil {
		t.Run("tiers of service", func(t *testing.T) { tiers(t, h) })
	}
	if h.Stops != nil {
		t.Run("more stop texts than the API takes", func(t *testing.T) { stops(t, h) })
	}
	t.Run("deformed streams", func(t *testing.T) { deformed(t, h) })
	t.Run("failures", func(t *testing.T) { failures(t, h) })
	t.Run("not a stream", func(t *testing.T) { notAStream(t, h) })
	t.Run("cancel", func(t *testing.T) { cancel(t, h) })
	t.Run("silence", func(t *testing.T) { silence(t, h) })
	t.Run("no connection", func(t *testing.T) { noConnection(t, h) })
	t.Run("credentials", func(t *testing.T) { credentials(t, h) })
	t.Run("same bytes", func(t *testing.T) { sameBytes(t, h) })
	t.Run("growing conversation", func(t *testing.T) { growing(t, h) })
	t.Run("edited history", func(t *testing.T) { edited(t, h) })
	t.Run("unsendable text", func(t *testing.T) { unsendable(t, h) })
	t.Run("empty messages", func(t *testing.T) { empty(t, h) })
	t.Run("ids", func(t *testing.T) { ids(t, h) })
	t.Run("opaque replay", func(t *testing.T) { replay(t, h) })
	t.Run("takeover", func(t *testing.T) { takeover(t, h) })
	t.Run("connection is used again", func(t *testing.T) { reuse(t, h) })
}

// fake is a provider on loopback: it keeps the requests and answers with handle.
type fake struct {
	*httptest.Server
	mu     sync.Mutex
	bodies [][]byte
	heads  []http.Header
	path   string
}

func serve(t testing.TB, handle http.HandlerFunc) *fake {
	t.Helper()
	f := &fake{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		f.bodies = append(f.bodies, body)
		f.heads = append(f.heads, r.Header.Clone())
		f.path = r.URL.Path
		f.mu.Unlock()
		handle(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) requests() [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bodies
}

func (f *fake) last(t testing.TB) []byte {
	t.Helper()
	all := f.requests()
	if len(all) == 0 {
		t.Fatal("no request came")
	}
	return all[len(all)-1]
}

// stream answers with a fixture.
func stream(fixture []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(fixture)
	}
}

// fixture reads a scenario in the provider's own stream format: events, or lines of JSON.
func (h *Harness) fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", h.Fixtures, name+".sse"))
	if errors.Is(err, fs.ErrNotExist) {
		b, err = os.ReadFile(filepath.Join("testdata", h.Fixtures, name+".ndjson"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func key(context.Context) (string, error) { return Key, nil }

func (h *Harness) adapter(t testing.TB, f *fake) model.Provider {
	t.Helper()
	return h.New(t, Server{URL: f.URL, Key: key})
}

// ask is a request of one question.
func (h *Harness) ask() *model.Request {
	return &model.Request{Model: h.Model, Messages: []message.Message{message.User("hi")}}
}
