package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"agentd/fault"
	"agentd/internal/server/openai"
	"agentd/internal/server/wire"
)

// lastWords is how long streams have to end after the grace period.
const lastWords = time.Second

// Server is the HTTP server. It is safe for concurrent use.
type Server struct {
	engine  Engine
	opts    Options
	log     *slog.Logger
	handler http.Handler
	chat    *openai.Face
	// leaving is closed when the server is told to end, closing when it takes no more
	// requests, expired when its grace is over.
	leaving, closing, expired chan struct{}
	leaveOnce, stopOnce       sync.Once
	// ending ends with closing.
	ending context.Context
	end    context.CancelFunc

	// remote is whether others than this machine reach the server.
	remote atomic.Bool

	mu   sync.Mutex
	ln   net.Listener
	cert *certificate
}

// New returns a server. Options may be nil.
func New(e Engine, o *Options) *Server {
	opts := o.withDefaults()
	s := &Server{engine: e, opts: opts, log: opts.Log, leaving: make(chan struct{}), closing: make(chan struct{}), expired: make(chan struct{})}
	s.ending, s.end = context.WithCancel(context.Background())
	s.chat = openai.New(e, openai.Config{
		DefaultProfile: opts.DefaultProfile,
		TaskProfile:    opts.TaskProfile,
		UserHeader:     opts.UserHeader,

		ConversationHeader: opts.ConversationHeader,
		RejoinWindow:       opts.RejoinWindow,
		Limits:             s.limits(),
		Stream:             wire.StreamConfig{Heartbeat: opts.Heartbeat, WriteTimeout: opts.WriteTimeout, Closing: s.expired},
		Log:                opts.Log,
		Now:                opts.Now,
	})
	s.handler = s.guard(s.dispatch(s.routes()))
	return s
}

func (s *Server) limits() wire.Limits {
	return wire.Limits{MaxBody: s.opts.MaxBody, BodyTimeout: s.opts.BodyTimeout}
}

// Handler is the whole API, for a server of your own.
func (s *Server) Handler() http.Handler { return s.handler }

// Addr is the address that the server listens on, "" before [Server.Listen].
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ln == nil {
		return ""
	}
	return s.ln.Addr().String()
}

// URL is where the server listens, "" before [Server.Listen].
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ln == nil:
		return ""
	case s.cert != nil:
		return "https://" + s.ln.Addr().String()
	}
	return "http://" + s.ln.Addr().String()
}

// Listen binds the address ("127.0.0.1:7070"; port 0 picks one). It refuses
// addresses beyond loopback where no API key is needed, unless the options allow
// that.
func (s *Server) Listen(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return &fault.Error{Op: "server.Listen", Kind: fault.Invalid, Err: err, Field: "addr", Hint: "Give host and port, such as 127.0.0.1:7070."}
	}
	if err := s.mayListen(host); err != nil {
		return err
	}
	cert, err := loadCertificate(s.opts.CertFile, s.opts.KeyFile, s.log)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return &fault.Error{Op: "server.Listen", Kind: fault.Unavailable, Err: err, Field: "addr", Hint: "Is another agentd running? Choose another port with --addr."}
	}
	// The name localhost is what the system says it is.
	a, ok := ln.Addr().(*net.TCPAddr)
	remote := !ok || !a.IP.IsLoopback()
	if err := s.mayListen(ln.Addr().String()); remote && err != nil {
		_ = ln.Close()
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ln != nil {
		_ = ln.Close()
		return &fault.Error{Op: "server.Listen", Kind: fault.Conflict, Err: errors.New("the server listens already")}
	}
	s.ln, s.cert = ln, cert
	s.remote.Store(remote)
	if required, err := s.keysRequired(context.Background()); remote && err == nil && !required {
		s.log.Warn("other machines reach the server, and nobody needs an API key: everybody may do everything", "addr", ln.Addr().String())
	} else if remote && cert == nil {
		s.log.Warn("other machines reach the server without TLS: API keys can be read on the way, unless something in front of it speaks TLS", "addr", ln.Addr().String())
	}
	return nil
}

// mayListen refuses a place that others reach while nobody needs a key.
func (s *Server) mayListen(host string) error {
	if host == "localhost" || net.ParseIP(host).IsLoopback() || s.opts.AllowKeyless {
		return nil
	}
	required, err := s.keysRequired(context.Background())
	if err != nil || required {
		return err
	}
	hint := "Make one first (agentd keys create), listen on 127.0.0.1, or let everybody in with --allow-remote-without-keys."
	if s.opts.Paths != nil {
		hint = "Make one first (agentd keys create), or listen on 127.0.0.1."
	}
	return &fault.Error{Op: "server.Listen", Kind: fault.Invalid, Field: "addr",
		Err: fmt.Errorf("%q is reachable from other machines, and there is no API key that callers would need", host), Hint: hint}
}

// Serve listens on addr, unless Listen was called, and serves until ctx ends. Then
// it is not ready any more (GET /readyz), which those in front of it notice within
// Options.Delay; after that it takes no new connections, ends native event streams
// with a comment that says where to resume, lets other requests finish within the
// grace period, and returns nil.
func (s *Server) Serve(ctx context.Context, addr string) error {
	if s.Addr() == "" {
		if err := s.Listen(addr); err != nil {
			return err
		}
	}
	h := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: s.opts.HeaderTimeout,
		IdleTimeout:       s.opts.IdleTimeout,
		MaxHeaderBytes:    s.opts.MaxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() {
		if s.cert != nil {
			h.TLSConfig = s.cert.config()
			failed <- h.ServeTLS(s.ln, "", "")
			return
		}
		failed <- h.Serve(s.ln)
	}()
	select {
	case err := <-failed:
		return &fault.Error{Op: "server.Serve", Kind: fault.Internal, Err: err}
	case <-ctx.Done():
	}
	s.shutdown(h)
	<-failed
	return nil
}

// Leave says at GET /readyz that the process is about to end, ahead of the end of
// Serve, which says it by itself.
func (s *Server) Leave() { s.leaveOnce.Do(func() { close(s.leaving) }) }

func (s *Server) shutdown(h *http.Server) {
	s.Leave()
	s.stopOnce.Do(func() {
		if s.opts.Delay > 0 {
			<-time.After(s.opts.Delay)
		}
		close(s.closing)
		s.end()
	})
	grace, cancel := context.WithTimeout(context.Background(), s.opts.Grace)
	defer cancel()
	if h.Shutdown(grace) != nil {
		close(s.expired)
		last, cancel := context.WithTimeout(context.Background(), lastWords)
		defer cancel()
		if h.Shutdown(last) != nil {
			_ = h.Close()
		}
	}
	s.chat.Close()
}
