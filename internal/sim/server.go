package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"agentd/fault"
	"agentd/model/script"
)

// Options are the settings of a simulator. The zero value is a simulator that
// answers every model with the last user text.
type Options struct {
	// Scripts answer requests: the first that names the request's model, else
	// the first that names none. Empty means [script.Echo].
	Scripts []*script.Script
	// Addr is where [Serve] listens; a loopback address. Empty means
	// 127.0.0.1:4010; port 0 means any free one.
	Addr string
	// Record is how many request bodies are kept for GET /requests, the
	// newest, at most 64 MiB of them. 0 means none.
	Record int
	// CacheRules says whether prompt caching is simulated. Empty means
	// [CacheOn].
	CacheRules CacheRules
	// Now is the clock that cached prefixes expire by. Nil means time.Now.
	Now func() time.Time
	// Log gets one line for each request that fails by a mistake, of the
	// client or of the script. Nil means no log.
	Log *slog.Logger
	// Sleep waits for latencies and stalls. Nil means [script.Sleep].
	Sleep script.SleepFunc
	// MaxBody bounds a request body in bytes. 0 means 32 MiB, Anthropic's limit.
	MaxBody int64
}

// CacheRules says whether prompt caching is simulated.
type CacheRules string

// The cache rules.
const (
	CacheOn  CacheRules = "on"  // by the rules of the package comment
	CacheOff CacheRules = "off" // no token is ever cached
)

// DefaultAddr is where Serve listens unless told otherwise.
const DefaultAddr = "127.0.0.1:4010"

// Server is a model simulator. It is safe for concurrent use.
type Server struct {
	players []*script.Player
	cache   *prefixCache // nil: off
	rec     *recorder    // nil: off
	log     *slog.Logger
	sleep   script.SleepFunc
	maxBody int64
	bufs    sync.Pool // of *[]byte
}

var _ http.Handler = (*Server)(nil)

// New returns the simulator.
func New(o Options) *Server {
	s := &Server{log: o.Log, sleep: o.Sleep, maxBody: o.MaxBody}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.sleep == nil {
		s.sleep = script.Sleep
	}
	if s.maxBody <= 0 {
		s.maxBody = 32 << 20
	}
	if o.CacheRules != CacheOff {
		s.cache = newPrefixCache(o.Now)
	}
	if o.Record > 0 {
		s.rec = &recorder{max: o.Record}
	}
	for _, sc := range o.Scripts {
		s.players = append(s.players, script.NewPlayer(sc))
	}
	if len(o.Scripts) == 0 {
		s.players = append(s.players, script.NewPlayer(script.Echo()))
	}
	s.bufs.New = func() any { b := make([]byte, 0, 4096); return &b }
	return s
}

// Reset forgets recorded requests, prompt prefixes and failed attempts.
func (s *Server) Reset() {
	for _, p := range s.players {
		p.Reset()
	}
	if s.cache != nil {
		s.cache.reset()
	}
	if s.rec != nil {
		s.rec.reset()
	}
}

// player finds the script for a model, nil if there is none.
func (s *Server) player(model string) *script.Player {
	var byDefault *script.Player
	for _, p := range s.players {
		if len(p.Script().Models()) == 0 {
			if byDefault == nil {
				byDefault = p
			}
		} else if p.Script().Answers(model) {
			return p
		}
	}
	return byDefault
}

// models are the ids that can be asked for. A script that answers any model is
// listed by its name.
func (s *Server) models() []string {
	var ids []string
	seen := map[string]bool{}
	for _, p := range s.players {
		names := p.Script().Models()
		if len(names) == 0 {
			names = []string{p.Script().Name()}
		}
		for _, id := range names {
			if !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.google(w, r) || s.local(w, r) {
		return
	}
	path := r.URL.Path
	var p protocol = openAI{}
	if strings.HasPrefix(path, "/openai/") {
		var fail *apiError
		if path, fail = azurePath(r); fail != nil {
			s.fail(w, r, p, fail)
			return
		}
	}
	if strings.HasPrefix(path, "/v1/messages") || path != "/v1/chat/completions" && path != "/v1/responses" && r.Header.Get("Anthropic-Version") != "" {
		p = anthropic{}
	}
	if path == "/v1/responses" {
		p = responses{}
	}
	want := http.MethodGet
	var handle func()
	switch {
	case path == "/v1/chat/completions", path == "/v1/responses", path == "/v1/messages":
		want, handle = http.MethodPost, func() { s.generate(w, r, p) }
	case path == "/v1/messages/count_tokens":
		want, handle = http.MethodPost, func() { s.countTokens(w, r) }
	case path == "/v1/models":
		handle = func() { s.write(w, http.StatusOK, p.models(nil, s.models())) }
	case strings.HasPrefix(path, "/v1/models/"):
		handle = func() { s.oneModel(w, p, strings.TrimPrefix(path, "/v1/models/")) }
	case path == "/healthz":
		handle = func() { s.write(w, http.StatusOK, []byte(`{"status":"ok"}`)) }
	case path == "/requests":
		handle = func() { s.requests(w) }
	case path == "/reset":
		want, handle = http.MethodPost, func() { s.Reset(); s.write(w, http.StatusOK, []byte(`{"status":"ok"}`)) }
	default:
		s.fail(w, r, p, p.noRoute(r.Method, path))
		return
	}
	if r.Method != want && (want != http.MethodGet || r.Method != http.MethodHead) {
		w.Header().Set("Allow", want)
		s.fail(w, r, p, &apiError{status: http.StatusMethodNotAllowed, typ: "invalid_request_error",
			message: fmt.Sprintf("Not allowed to %s on %s: use %s.", r.Method, path, want)})
		return
	}
	handle()
}

func (s *Server) oneModel(w http.ResponseWriter, p protocol, id string) {
	if s.player(id) == nil {
		s.fail(w, nil, p, p.noModel(id))
		return
	}
	s.write(w, http.StatusOK, p.model(nil, id))
}

func (s *Server) requests(w http.ResponseWriter) {
	if s.rec == nil {
		s.write(w, http.StatusOK, []byte(`{"requests":[],"dropped":0,"hint":"recording is off: start the simulator with a number of requests to keep"}`))
		return
	}
	s.write(w, http.StatusOK, s.rec.appendTo(nil))
}

func (s *Server) write(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client is gone
}

// read returns the request body. It is kept as a string so that the parts that
// the parser cuts out of it need no copies.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (string, error) {
	var b strings.Builder
	if n := r.ContentLength; n > 0 && n <= s.maxBody {
		b.Grow(int(n))
	}
	buf := s.bufs.Get().(*[]byte)
	defer s.bufs.Put(buf)
	_, err := io.CopyBuffer(&b, http.MaxBytesReader(w, r.Body, s.maxBody), (*buf)[:cap(*buf)])
	return b.String(), err
}

// Serve runs a simulator until ctx ends, and then closes its connections. Ready, if
// not nil, is called with the base URL once requests are accepted. An address
// that is not a loopback one is refused.
func Serve(ctx context.Context, o Options, ready func(url string)) error {
	addr := o.Addr
	if addr == "" {
		addr = DefaultAddr
	}
	if err := loopback(addr); err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return &fault.Error{Op: "sim.Serve", Kind: fault.Unavailable, Err: err, Field: "addr",
			Hint: "choose another address, or port 0 for any free one"}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	srv := &http.Server{Handler: New(o), ReadHeaderTimeout: 10 * time.Second,
		// The end of ctx ends every stall and every latency.
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if ready != nil {
		ready("http://" + l.Addr().String())
	}
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return &fault.Error{Op: "sim.Serve", Kind: fault.Unavailable, Err: err}
	}
	return nil
}

// loopback refuses an address that other machines can reach.
func loopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err == nil {
		if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
			return nil
		}
		err = fmt.Errorf("%q is not a loopback address", addr)
	}
	return &fault.Error{Op: "sim.Serve", Kind: fault.Invalid, Err: err, Field: "addr",
		Hint: "use 127.0.0.1:PORT; the simulator has no authentication"}
}
