package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"agentd/fault"
	"agentd/internal/keys"
	"agentd/internal/server/openai"
	"agentd/internal/server/wire"
)

// recorder knows what was answered.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
	// timeout bounds the writing of an answer that is not a stream.
	timeout time.Duration
}

// AnswerTimeout tells package wire.
func (w *recorder) AnswerTimeout() time.Duration { return w.timeout }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Unwrap gives http.ResponseController the writer with the deadlines.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// guard is around everything: request id, access log, panics, Host and Origin.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		start := s.opts.Now()
		info := &wire.Request{ID: requestID(r.Header.Get("X-Request-Id"))}
		if info.ID == "" {
			info.ID = s.opts.NewID()
		}
		r = r.WithContext(wire.WithRequest(r.Context(), info))
		w := &recorder{ResponseWriter: rw, timeout: s.opts.AnswerTimeout}
		w.Header().Set("X-Request-Id", info.ID)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		// Also where there is no origin: what is answered depends on it.
		w.Header().Set("Vary", "Origin")
		rc := http.NewResponseController(rw)
		// A deadline of the connection's last answer would cut this one.
		_ = rc.SetWriteDeadline(time.Time{})
		if r.Body != nil && r.Body != http.NoBody {
			// Also of bodies that no handler reads: net/http does, before
			// it answers.
			_ = rc.SetReadDeadline(time.Now().Add(s.opts.BodyTimeout))
		}
		defer func() {
			v := recover()
			if v != nil && v != http.ErrAbortHandler {
				s.log.LogAttrs(r.Context(), slog.LevelError, "a handler panicked", slog.String("request_id", info.ID),
					slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
				if w.status == 0 {
					s.fail(w, r, fault.New(fault.Internal, "panic"))
				} else {
					v = http.ErrAbortHandler // part of an answer must not look whole
				}
			}
			s.access(r, w, info, s.opts.Now().Sub(start))
			if v == http.ErrAbortHandler {
				panic(v)
			}
		}()
		if err := s.checkHost(r); err != nil {
			s.fail(w, r, err)
			return
		}
		for _, origin := range r.Header.Values("Origin") {
			if err := s.checkOrigin(r, origin); err != nil {
				s.fail(w, r, err)
				return
			}
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			h := w.Header()
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Expose-Headers", "X-Request-Id, X-Agentd-Run-Id, X-Agentd-Session-Id")
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
				h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Agentd-Conversation-Id, X-Agentd-Task, X-Request-Id")
				h.Set("Access-Control-Max-Age", "600")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// asked is whether programs ask for a path every few seconds, to see how the process
// is: a line for each answer that all is well would hide the others.
func asked(path string) bool {
	return path == "/healthz" || path == "/readyz" || path == "/metrics"
}

func (s *Server) access(r *http.Request, w *recorder, info *wire.Request, took time.Duration) {
	level := slog.LevelInfo
	if asked(r.URL.Path) && w.status < 400 {
		level = slog.LevelDebug
	}
	attrs := []slog.Attr{
		slog.String("request_id", info.ID), slog.String("method", r.Method), slog.String("path", wire.Clip(keys.Redact(r.URL.Path), 200)),
		slog.Int("status", w.status), slog.Int64("bytes", w.bytes), slog.Duration("took", took), slog.String("tenant", info.Tenant),
	}
	if info.Key != "" {
		attrs = append(attrs, slog.String("key_id", info.Key))
	}
	if info.Run != "" {
		attrs = append(attrs, slog.String("run_id", info.Run))
	}
	if info.Err != nil && w.status >= 500 {
		level = slog.LevelError
		attrs = append(attrs, slog.String("error", info.Err.Error()))
	}
	s.log.LogAttrs(r.Context(), level, "request", attrs...)
}

// requestID takes a client's id if it is harmless in logs and headers.
func requestID(id string) string {
	if len(id) > 64 {
		return ""
	}
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return ""
		}
	}
	return id
}

// checkHost defeats DNS rebinding: a page whose name was made to point at this
// machine calls with its own name.
func (s *Server) checkHost(r *http.Request) error {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback() {
		return nil
	}
	if slices.ContainsFunc(s.opts.Hosts, func(h string) bool { return strings.EqualFold(h, host) || strings.EqualFold(h, r.Host) }) {
		return nil
	}
	if s.remote.Load() && len(s.opts.Hosts) == 0 {
		// A page that calls with its own name has no key. Where none is
		// needed an address must do: names can be rebound, addresses can not.
		required, err := s.keysRequired(r.Context())
		if err != nil {
			return err
		}
		if required || net.ParseIP(host) != nil {
			return nil
		}
	}
	return &fault.Error{Kind: fault.Forbidden, Field: "Host", Err: fmt.Errorf("the server does not answer to the name %q", wire.Clip(r.Host, 80)),
		Hint: "Call it as localhost or 127.0.0.1, or add the name to hosts in agentd.yaml."}
}

// checkOrigin lets in pages of configured origins and of this server itself. Its
// own name was checked before, so a rebound name does not count as its own.
func (s *Server) checkOrigin(r *http.Request, origin string) error {
	if slices.Contains(s.opts.Origins, origin) {
		return nil
	}
	if u, err := url.Parse(origin); err == nil && u.Host != "" && u.Host == r.Host {
		return nil
	}
	return &fault.Error{Kind: fault.Forbidden, Field: "Origin", Err: errors.New("web pages of this origin may not call the server"),
		Hint: "If you trust it, add it to cors.origins in agentd.yaml."}
}

// errorBody is an error of the native API.
type errorBody struct {
	Error struct {
		Kind    fault.Kind `json:"kind"`
		Message string     `json:"message"`
		Hint    string     `json:"hint,omitempty"`
		Field   string     `json:"field,omitempty"`
	} `json:"error"`
}

// fail answers with an error, in the shape that the path's clients read.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	wire.RequestOf(r.Context()).Err = err
	write := func() {
		if strings.HasPrefix(r.URL.Path, "/v1/") {
			openai.WriteError(w, r, err)
			return
		}
		p := wire.Describe(r.Context(), err)
		wire.RetryAfter(w.Header(), err)
		if p.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		var b errorBody
		b.Error.Kind, b.Error.Message, b.Error.Hint, b.Error.Field = p.Kind, p.Message, p.Hint, p.Field
		wire.WriteJSON(w, p.Status, b)
	}
	if fault.KindOf(err) == fault.TooLarge {
		wire.Refuse(w, r, write)
		return
	}
	write()
}
