package profile

import (
	"fmt"
	"net"
	"strings"
)

// TLS is the server's certificate.
type TLS struct {
	// PEM file with the certificate and what lies between it and its root. A file that was replaced is read again, without a restart.
	Cert string `json:"cert,omitempty" example:"/etc/agentd/cert.pem"`
	// PEM file with the certificate's private key.
	Key string `json:"key,omitempty" example:"/etc/agentd/key.pem"`
}

// HTTP is how long the server waits, and for how much.
type HTTP struct {
	// Bytes of a request's headers; more is answered with 431.
	MaxHeaderBytes int `json:"max_header_bytes" default:"65536" min:"4096"`
	// How long a request's headers, and a TLS handshake, may take.
	HeaderTimeout Duration `json:"header_timeout" default:"10s" min:"1ms"`
	// How long a request's body may take to arrive; longer is answered with 408.
	BodyTimeout Duration `json:"body_timeout" default:"1m" min:"1ms"`
	// How long an answer that is not a stream may take to be read by its client.
	AnswerTimeout Duration `json:"answer_timeout" default:"1m" min:"1ms"`
	// How long one write to a stream may wait for its client.
	WriteTimeout Duration `json:"write_timeout" default:"30s" min:"1ms"`
	// How long a connection without a request is kept.
	IdleTimeout Duration `json:"idle_timeout" default:"2m" min:"1ms"`
	// Longest silence of a stream; then it says something that clients ignore.
	Heartbeat Duration `json:"heartbeat" default:"15s" min:"10ms"`
	// How long a server that was told to end goes on to take requests, while `/readyz` says 503: set it to the time that a load balancer in front of it takes to notice. The grace comes after it.
	ShutdownDelay Duration `json:"shutdown_delay" default:"0s"`
	// How long requests may go on when the server is told to end.
	ShutdownGrace Duration `json:"shutdown_grace" default:"10s" min:"1ms"`
	// How long the run of a chat client with an `Idempotency-Key` goes on after its client has gone, so that a repetition can join it.
	RejoinWindow Duration `json:"rejoin_window" default:"10s" min:"1ms"`
	// Header in which clients name their user, such as Open WebUI with ENABLE_FORWARD_USER_INFO_HEADERS; it comes before `user` in the body. Set it only where every client is trusted to tell the truth. Empty: no header is read.
	UserHeader string `json:"user_header,omitempty" example:"X-OpenWebUI-User-Id"`
	// Header in which chat clients name their conversation; its calls then share one session, in which an edited history is a branch. The same name is another conversation for another user or API key. For Open WebUI: X-OpenWebUI-Chat-Id.
	ConversationHeader string `json:"conversation_header,omitempty" default:"X-Agentd-Conversation-Id"`
}

// network checks what one value alone can not tell.
func (l *loader) network(d *decoder) {
	s := &l.config.Settings
	switch {
	case s.TLS.Cert != "" && s.TLS.Key == "" && !d.wrong("tls"):
		d.fail(d.at("tls"), "tls.key", "is missing: a certificate needs its private key", "name the PEM file that holds it")
	case s.TLS.Key != "" && s.TLS.Cert == "" && !d.wrong("tls"):
		d.fail(d.at("tls"), "tls.cert", "is missing: a private key needs its certificate", "name the PEM file that holds it")
	}
	if h := s.HTTP.UserHeader; h != "" && !d.wrong("http.user_header") && !headerRE.MatchString(h) {
		d.fail(d.at("http.user_header"), "http.user_header", "is not the name of a header", "write a name such as X-OpenWebUI-User-Id")
	}
	if h := s.HTTP.ConversationHeader; h != "" && !d.wrong("http.conversation_header") && !headerRE.MatchString(h) {
		d.fail(d.at("http.conversation_header"), "http.conversation_header", "is not the name of a header", "write a name such as X-OpenWebUI-Chat-Id")
	}
	for i, host := range s.Hosts {
		key := fmt.Sprintf("hosts[%d]", i)
		name := host
		if h, _, err := net.SplitHostPort(host); err == nil {
			name = h
		}
		if !d.wrong(key) && (name == "" || strings.ContainsAny(host, "/*?@ ") || strings.Contains(name, ":") && net.ParseIP(strings.Trim(name, "[]")) == nil) {
			d.fail(d.at(key), key, "is not a host", "write a name or an address, such as agents.example.com, without scheme, path and patterns")
		}
	}
}
