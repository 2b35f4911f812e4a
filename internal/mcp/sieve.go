package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"agentd/internal/logs"
)

// Codes of the errors that take the place of an answer that could not be used.
// They lie outside the ranges of JSON-RPC and of the protocol.
const (
	codeTooLarge = -31001
	codeGarbage  = -31002
	codeLost     = -31003
)

// Limits on what a server may send unasked. The SDK keeps notifications in an
// unbounded queue, so a flood is thinned out before it.
const (
	noticeBurst = 1000
	noticeRate  = 200 // per second and kind
)

// sieve looks at every message of a server before the SDK does. It is safe for
// concurrent use: an http server sends on several streams.
type sieve struct {
	server string
	log    *slog.Logger
	now    func() time.Time

	mu      sync.Mutex
	buckets map[string]*bucket
	garbage int
}

type bucket struct {
	tokens  float64
	last    time.Time
	dropped int
}

func newSieve(server string, log *slog.Logger, now func() time.Time) *sieve {
	return &sieve{server: server, log: log, now: now, buckets: map[string]*bucket{}}
}

// envelope is the part of a message that decides what becomes of it.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (e *envelope) response() bool {
	return e.Method == "" && len(e.ID) > 0 && !bytes.Equal(e.ID, []byte("null")) && (e.Result != nil || e.Error != nil)
}

// read decodes the envelope; ok is false for what is not JSON-RPC.
func readEnvelope(msg []byte) (e envelope, ok bool) {
	if json.Unmarshal(msg, &e) != nil {
		return e, false
	}
	return e, e.Method != "" || e.response()
}

// admit reports whether a message goes on to the SDK.
func (s *sieve) admit(msg []byte) (envelope, bool) {
	e, ok := readEnvelope(msg)
	if !ok {
		s.mu.Lock()
		s.garbage++
		n := s.garbage
		s.mu.Unlock()
		if n&(n-1) == 0 { // the 1st, 2nd, 4th, 8th…
			s.log.Warn("an MCP server sent something that is not JSON-RPC", "server", s.server, "count", n, "text", logs.Report(preview(msg, 200)))
		}
		return e, false
	}
	if e.Method == "" {
		return e, true
	}
	return e, s.take(e.Method)
}

// take draws from the bucket of a kind of message.
func (s *sieve) take(method string) bool {
	kind := method
	switch method {
	case "notifications/progress", "notifications/message", "notifications/tools/list_changed":
	default:
		kind = "other"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	b := s.buckets[kind]
	if b == nil {
		b = &bucket{tokens: noticeBurst, last: now}
		s.buckets[kind] = b
	}
	b.tokens = min(noticeBurst, b.tokens+now.Sub(b.last).Seconds()*noticeRate)
	b.last = now
	if b.tokens >= 1 {
		b.tokens--
		return true
	}
	b.dropped++
	if n := b.dropped; n&(n-1) == 0 {
		s.log.Warn("an MCP server floods; messages are dropped", "server", s.server, "method", method, "dropped", n)
	}
	return false
}

// refuse is an answer that agentd gives itself in the server's place.
func refuse(id json.RawMessage, code int, format string, args ...any) []byte {
	msg, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id,
		"error": map[string]any{"code": code, "message": fmt.Sprintf(format, args...)},
	})
	if err != nil { // the id is JSON, all else is ours
		panic("mcp: " + err.Error())
	}
	return msg
}

func tooLarge(limit int) string {
	return fmt.Sprintf("the answer is larger than %s and was dropped: ask for less", mib(limit))
}

// mib writes a number of bytes for people.
func mib(n int) string { return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20)) }

// idOfLarge finds the id of a response of which only the first and the last
// bytes were kept. Ids stand first or last in the messages of all known SDKs.
func idOfLarge(head, tail []byte) (json.RawMessage, bool) {
	for _, re := range []*regexp.Regexp{idFirst, idFirstBare} {
		if m := re.FindSubmatch(head); m != nil {
			return json.RawMessage(bytes.Clone(m[1])), true
		}
	}
	if m := idLast.FindSubmatch(bytes.TrimSpace(tail)); m != nil {
		return json.RawMessage(bytes.Clone(m[1])), true
	}
	return nil, false
}

var (
	idFirst     = regexp.MustCompile(`^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d+|"[^"\\]*")\s*,`)
	idFirstBare = regexp.MustCompile(`^\s*\{\s*"id"\s*:\s*(\d+|"[^"\\]*")\s*,`)
	idLast      = regexp.MustCompile(`,\s*"id"\s*:\s*(\d+|"[^"\\]*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}$`)
)

// preview shortens bytes of a server for a log or an error.
func preview(b []byte, n int) string {
	b = bytes.TrimSpace(b)
	if len(b) > n {
		return string(bytes.ToValidUTF8(b[:n], nil)) + "…"
	}
	return string(bytes.ToValidUTF8(b, nil))
}
