package sim

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"agentd/fault"
	"agentd/message"
	"agentd/model/script"
)

// protocol is what differs between the services.
type protocol interface {
	// parse reads and checks a request; count says that it only asks for its
	// size.
	parse(r *http.Request, body string, count bool) (*request, *apiError)
	// open returns the writer of the reply.
	open(req *request, rep *script.Reply, e *exchange) writer
	// body appends a whole reply.
	body(b []byte, req *request, rep *script.Reply) []byte
	// fault is the service's error for a fault that is an answer.
	fault(f *script.Fault, req *request) *apiError
	// envelope appends an error in the service's shape.
	envelope(b []byte, e *apiError, requestID string) []byte
	// requestHeader is the header that names the request.
	requestHeader() string
	noModel(id string) *apiError
	noRoute(method, path string) *apiError
	tooLarge(limit int64) *apiError
	models(b []byte, ids []string) []byte
	model(b []byte, id string) []byte
}

// writer is a streamed reply in the making.
type writer interface {
	script.Sink
	// Finish ends the reply; refused ends it as a refusal.
	Finish(refused bool) error
	// Fail ends it with an error in the stream.
	Fail(e *apiError) error
	// Garbage sends a chunk that is not JSON.
	Garbage() error
}

// request is a parsed request.
type request struct {
	script.Conversation
	stream       bool
	includeUsage bool     // OpenAI
	encrypted    bool     // Responses: reasoning comes with its sealed content
	summaries    bool     // Responses: and with a summary
	list         bool     // Gemini: a stream that is no stream of events
	google       bool     // Gemini's wire, and so its cache
	prefix       prefixes // what the cache looks at
}

// apiError is an error as the service would send it.
type apiError struct {
	status     int
	typ        string
	code       string // OpenAI
	param      string // OpenAI
	message    string
	retryAfter time.Duration
}

// exchange is one request being answered: the response and its buffer.
type exchange struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	buf []byte
}

// send writes what is in the buffer and gets it on its way.
func (e *exchange) send() error {
	_, err := e.w.Write(e.buf)
	e.buf = e.buf[:0]
	if err != nil {
		return err
	}
	return e.rc.Flush()
}

// generate answers a request for a reply.
func (s *Server) generate(w http.ResponseWriter, r *http.Request, p protocol) {
	body, err := s.read(w, r)
	if s.rec != nil {
		s.rec.add(r.Method, r.URL.Path, body)
	}
	if err != nil {
		s.unreadable(w, r, p, err)
		return
	}
	req, bad := p.parse(r, body, false)
	if bad != nil {
		s.fail(w, r, p, bad)
		return
	}
	player := s.player(req.Model)
	if player == nil {
		s.fail(w, r, p, p.noModel(req.Model))
		return
	}
	rep, err := player.Reply(&req.Conversation)
	if err != nil {
		msg := err.Error()
		if hint := fault.HintOf(err); hint != "" {
			msg += " (" + hint + ")"
		}
		s.fail(w, r, p, &apiError{status: http.StatusBadRequest, typ: "invalid_request_error", message: msg})
		return
	}
	if forced, err := forcedFault(r); err != nil {
		s.fail(w, r, p, &apiError{status: http.StatusBadRequest, typ: "invalid_request_error",
			message: fmt.Sprintf("X-Sim-Fault: %v (%s)", err, fault.HintOf(err))})
		return
	} else if forced != nil {
		rep.Fault = forced
	}
	if rep.Fault.Instead() {
		if rep.Wait(r.Context(), s.sleep) == nil {
			s.refuse(w, p, p.fault(rep.Fault, req), rep.ID)
		}
		return
	}
	if s.cache != nil && !rep.UsageGiven {
		s.cache.account(req, &rep.Usage)
	}
	w.Header().Set(p.requestHeader(), "req_"+rep.ID)
	buf := s.bufs.Get().(*[]byte)
	defer s.bufs.Put(buf)
	e := &exchange{w: w, rc: http.NewResponseController(w), buf: (*buf)[:0]}
	if req.stream {
		s.stream(r, p, req, rep, e)
	} else {
		s.whole(r, p, req, rep, e)
	}
	*buf = e.buf
}

// forcedFault is the fault that the request asks for, nil for none.
func forcedFault(r *http.Request) (*script.Fault, error) {
	v := r.Header.Get("X-Sim-Fault")
	if v == "" && r.URL.RawQuery != "" {
		v = r.URL.Query().Get("sim_fault")
	}
	if v == "" {
		return nil, nil
	}
	return script.ParseFault(v)
}

// stream answers with server-sent events.
func (s *Server) stream(r *http.Request, p protocol, req *request, rep *script.Reply, e *exchange) {
	h := e.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	if t, ok := p.(interface{ streamType() string }); ok {
		h.Set("Content-Type", t.streamType())
	}
	h.Set("Cache-Control", "no-cache")
	out := p.open(req, rep, e)
	err := rep.Play(r.Context(), s.sleep, out)
	if err == nil {
		_ = out.Finish(false)
		return
	}
	if !errors.Is(err, script.ErrFault) {
		return // the client is gone
	}
	switch rep.Fault.Kind {
	case script.FaultRefused:
		_ = out.Finish(true)
	case script.FaultMalformed:
		_ = out.Garbage()
	case script.FaultTruncated:
	case script.FaultCut:
		panic(http.ErrAbortHandler) // net/http then drops the connection
	default:
		_ = out.Fail(p.fault(rep.Fault, req))
	}
}

// whole answers with one JSON document.
func (s *Server) whole(r *http.Request, p protocol, req *request, rep *script.Reply, e *exchange) {
	var err error
	if rep.Fault != nil || rep.Latency.First > 0 || rep.Latency.Chunk > 0 {
		err = rep.Play(r.Context(), s.sleep, nowhere{})
	}
	faulted := errors.Is(err, script.ErrFault)
	if err != nil && !faulted {
		return
	}
	if faulted && rep.Fault.Kind == script.FaultRefused {
		rep.Stop = stopRefused
		err, faulted = nil, false
	}
	e.buf = p.body(e.buf, req, rep)
	h := e.w.Header()
	h.Set("Content-Type", "application/json")
	if faulted {
		switch rep.Fault.Kind {
		case script.FaultCut: // half of what was announced
			h.Set("Content-Length", strconv.Itoa(len(e.buf)))
			e.buf = e.buf[:len(e.buf)/2]
			_ = e.send()
			panic(http.ErrAbortHandler)
		case script.FaultTruncated:
			e.buf = e.buf[:len(e.buf)/2]
		case script.FaultMalformed:
			e.buf = append(e.buf[:0], "<html><body>Bad gateway</body></html>"...)
		default:
			s.refuse(e.w, p, p.fault(rep.Fault, req), rep.ID)
			return
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(e.buf)))
	_, _ = e.w.Write(e.buf)
}

// stopRefused marks a whole reply that the safety system refused. Scripts can not
// say it.
const stopRefused = message.StopReason("refused")

// nowhere is a sink that only takes its time.
type nowhere struct{}

func (nowhere) Start() error            { return nil }
func (nowhere) BlockStart(int) error    { return nil }
func (nowhere) Delta(int, string) error { return nil }
func (nowhere) BlockEnd(int) error      { return nil }

// unreadable answers a request whose body could not be read.
func (s *Server) unreadable(w http.ResponseWriter, r *http.Request, p protocol, err error) {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		s.fail(w, r, p, p.tooLarge(large.Limit))
		return
	}
	s.fail(w, r, p, &apiError{status: http.StatusBadRequest, typ: "invalid_request_error", message: "The request body could not be read."})
}

// fail answers a mistake of the client, and logs it.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, p protocol, e *apiError) {
	if r != nil {
		s.log.Warn("request refused", "path", r.URL.Path, "status", e.status, "message", e.message)
	}
	s.refuse(w, p, e, "0000000000000000")
}

// refuse answers with an error.
func (s *Server) refuse(w http.ResponseWriter, p protocol, e *apiError, id string) {
	h := w.Header()
	h.Set(p.requestHeader(), "req_"+id)
	if d := e.retryAfter; d > 0 {
		// The header has whole seconds; the SDKs of both services read the
		// second one too, and prefer it.
		h.Set("Retry-After", strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10))
		if d%time.Second != 0 {
			h.Set("Retry-After-Ms", strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10))
		}
	}
	s.write(w, e.status, p.envelope(nil, e, "req_"+id))
}
