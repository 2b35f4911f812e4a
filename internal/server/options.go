package server

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"time"

	"agentd/internal/keys"
	"agentd/internal/server/wire"
)

// Options configure a server. The zero value is a loopback server for one tenant.
type Options struct {
	// Version is shown by /healthz; empty shows none.
	Version string
	// Metrics writes the metrics in Prometheus' text form; nil: GET /metrics
	// is not there.
	Metrics func(context.Context, io.Writer) error
	// Paths are the only ones that there are; nil: all.
	Paths []string
	// Log gets the access log and internal errors; nil discards.
	Log *slog.Logger

	// MaxBody is the limit of a request's body in bytes; 0 means 10 MiB.
	MaxBody int64
	// BodyTimeout bounds the time a body may take to arrive; 0 means a minute.
	BodyTimeout time.Duration
	// MaxHeader is the limit of a request's headers in bytes; 0 means 64 KiB.
	MaxHeader int
	// HeaderTimeout bounds the time that headers, and a handshake, may take;
	// 0 means 10 seconds.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a connection without a request is kept; 0 means
	// 2 minutes.
	IdleTimeout time.Duration
	// Heartbeat is the longest silence of a stream; 0 means 15 seconds.
	Heartbeat time.Duration
	// AnswerTimeout bounds the writing of an answer that is not a stream;
	// 0 means a minute.
	AnswerTimeout time.Duration
	// WriteTimeout bounds one write to a stream; 0 means 30 seconds.
	WriteTimeout time.Duration
	// Delay is how long a server that was told to end goes on as before, but for
	// GET /readyz, which answers 503: so long those in front of it may take to look
	// for another one. 0 means that it does not wait.
	Delay time.Duration
	// Grace is how long a shutdown waits for requests; 0 means 10 seconds.
	Grace time.Duration
	// RejoinWindow is how long the run of a chat request with an
	// Idempotency-Key goes on after its client has disconnected, so that a
	// retry can join it; 0 means 10 seconds.
	RejoinWindow time.Duration

	// Keys are the API keys; nil: there are none, everybody is the tenant
	// "default" and may do everything. They are asked for as soon as there is
	// one.
	Keys *keys.Keys
	// AllowKeyless lets the server listen beyond loopback though nobody needs a
	// key. Otherwise it refuses to.
	AllowKeyless bool
	// CertFile and KeyFile are PEM files: then the server speaks TLS alone.
	CertFile, KeyFile string
	// Hosts are names besides localhost and loopback addresses under which
	// the server may be called. Empty: beyond loopback any name is good where a
	// key is needed, and any address where none is.
	Hosts []string
	// Origins are the web origins ("https://app.example.com") whose pages may
	// call the server, besides pages that it serves itself.
	Origins []string

	// DefaultProfile is used where a request names none, and for unknown
	// models of the faces. Empty: the engine is asked for the profile "", which
	// agentd's own refuses, and unknown models are an error.
	DefaultProfile string
	// TaskProfile answers the one-shot tasks of chat frontends (titles, tags);
	// empty: the profile that the request names, without its tools.
	TaskProfile string

	// UserHeader names the header in which a trusted client says who its user is;
	// empty: none is read.
	UserHeader string
	// ConversationHeader names the header in which chat clients name their
	// conversation, whose calls then share one session; empty: none is read.
	ConversationHeader string
	// MaxFile is the limit of a session file in bytes; 0 means 64 MiB.
	MaxFile int64

	// Schedules are what starts runs at certain times; nil has none.
	Schedules Schedules

	// Memories are what agents remember; nil has none.
	Memories Memories

	// Skills are those that agents have; nil has none.
	Skills Skills

	// Now and NewID are the server's clock and its source of request ids; nil
	// means the real ones.
	Now   func() time.Time
	NewID func() string
}

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.MaxBody <= 0 {
		c.MaxBody = wire.DefaultMaxBody
	}
	if c.MaxFile <= 0 {
		c.MaxFile = 64 << 20
	}
	if c.BodyTimeout <= 0 {
		c.BodyTimeout = wire.DefaultBodyTimeout
	}
	if c.MaxHeader <= 0 {
		c.MaxHeader = 64 << 10
	}
	if c.HeaderTimeout <= 0 {
		c.HeaderTimeout = 10 * time.Second
	}
	if c.IdleTimeout <= 0 {
		c.IdleTimeout = 2 * time.Minute
	}
	if c.Heartbeat <= 0 {
		c.Heartbeat = 15 * time.Second
	}
	if c.AnswerTimeout <= 0 {
		c.AnswerTimeout = time.Minute
	}
	if c.WriteTimeout <= 0 {
		c.WriteTimeout = 30 * time.Second
	}
	if c.Grace <= 0 {
		c.Grace = 10 * time.Second
	}
	if c.RejoinWindow <= 0 {
		c.RejoinWindow = 10 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewID == nil {
		c.NewID = rand.Text
	}
	return c
}
