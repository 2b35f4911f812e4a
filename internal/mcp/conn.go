package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentd/internal/logs"
	"agentd/tool"
)

// maxPages bounds one list of tools, beside Options.MaxTools.
const maxPages = 200

// probeTimeout bounds the question whether a server speaks the newer protocol:
// some servers never answer it.
const probeTimeout = 3 * time.Second

// errDead ends the calls of a connection that ended.
var errDead = errors.New("the connection to the server ended")

// conn is one live connection.
type conn struct {
	session *sdk.ClientSession
	proc    *process // nil for http
	guard   *guard   // nil for stdio
	ctx     context.Context
	cancel  context.CancelCauseFunc

	calls    atomic.Int64 // running
	token    atomic.Int64
	mu       sync.Mutex
	progress map[string]func(tool.Progress)
	// changed gets a value when the server says that its tools changed.
	changed chan struct{}
}

// dial connects to the server and performs the handshake.
func (s *server) dial(ctx context.Context) (*conn, error) {
	protocol := s.cfg.Protocol
	if protocol == protocolAuto && s.legacy.Load() {
		protocol = protocolLegacy
	}
	if protocol != protocolAuto {
		return s.open(ctx, protocol)
	}
	pctx, cancel := context.WithTimeout(ctx, min(probeTimeout, s.cfg.Timeouts.Connect/3))
	c, err := s.open(pctx, protocolModern)
	cancel()
	if err == nil || ctx.Err() != nil {
		return c, err
	}
	s.log.Debug("an MCP server does not take the newer protocol; the older one is used", "server", s.name, "error", err)
	c, err = s.open(ctx, protocolLegacy)
	if err == nil {
		s.legacy.Store(true)
	}
	return c, err
}

// open makes one connection with one revision of the protocol.
func (s *server) open(ctx context.Context, protocol string) (*conn, error) {
	c := &conn{progress: map[string]func(tool.Progress){}, changed: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	sv := newSieve(s.name, s.log, s.m.opts.Now)
	var transport sdk.Transport
	if s.cfg.Transport == "stdio" {
		proc, err := startProcess(s.name, &s.cfg, s.log, s.m.opts.TerminateGrace)
		if err != nil {
			return nil, fmt.Errorf("the program can not be started: %w", err)
		}
		c.proc = proc
		transport = &stdioTransport{proc: proc, sieve: sv, limit: s.m.opts.MaxMessageBytes,
			broken: func(err error) { s.drop(c, err) }}
	} else {
		c.guard = newGuard(s.name, &s.cfg, sv, s.m.opts.MaxMessageBytes, s.log)
		transport = &sdk.StreamableClientTransport{
			Endpoint: s.cfg.URL, HTTPClient: c.guard.client(),
			// The pause of the SDK grows with the attempt and overflows at 57.
			MaxRetries:   50,
			MaxEventSize: s.m.opts.MaxMessageBytes + 4096,
		}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "agentd", Version: s.m.opts.Version}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{},
		Logger:       s.sdkLog(),
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case c.changed <- struct{}{}:
			default:
			}
		},
		ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
			c.report(req.Params)
		},
		//lint:ignore SA1019 servers of the revisions before 2026-07-28 log this way
		LoggingMessageHandler: func(_ context.Context, req *sdk.LoggingMessageRequest) {
			text, _ := tool.EncodeJSON(req.Params.Data)
			s.log.Debug("MCP server log", "server", s.name, "level", req.Params.Level, "text", logs.Report(s.redactor.text(preview(text, 500))))
		},
	})
	type connected struct {
		session *sdk.ClientSession
		err     error
	}
	done := make(chan connected, 1)
	go func() {
		session, err := client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: protocol})
		done <- connected{session, err}
	}()
	var r connected
	select {
	case r = <-done:
	case <-ctx.Done():
		r.err = context.Cause(ctx)
		go func() { // whatever comes of it is closed
			if late := <-done; late.err == nil {
				late.session.Close()
			}
		}()
	}
	if r.err != nil {
		c.cancel(errDead)
		return nil, s.explainDial(c, r.err)
	}
	c.session = r.session
	return c, nil
}

// explainDial ends a connection that did not come about, and says what the
// server's program had to say about it.
func (s *server) explainDial(c *conn, err error) error {
	late := errors.Is(err, context.DeadlineExceeded)
	if late {
		err = fmt.Errorf("the server did not complete the handshake within %s", s.cfg.Timeouts.Connect)
	}
	if c.guard != nil {
		c.guard.base.CloseIdleConnections()
		return err
	}
	exited := false
	select {
	case <-c.proc.exited:
		exited = true
	case <-time.After(50 * time.Millisecond): // its last words may still be on the way
		select {
		case <-c.proc.exited:
			exited = true
		default:
		}
	}
	c.proc.stop()
	go c.proc.wait(context.Background())
	if exited {
		select { // what it said before it ended is the reason
		case <-c.proc.heard:
		case <-time.After(time.Second):
		}
	}
	if exited && !late {
		how := "status 0"
		if c.proc.status != nil {
			how = c.proc.status.Error()
		}
		err = fmt.Errorf("the program ended (%s) before the handshake was complete", how)
	}
	if last := c.proc.stderr.last(10); last != "" {
		err = fmt.Errorf("%w; its last words: %s", err, s.redactor.text(strings.ReplaceAll(last, "\n", " | ")))
	}
	return err
}

// close ends the connection. Calls that run fail; the server is told and its
// process group ended, at the latest when ctx ends.
func (c *conn) close(ctx context.Context, cause error) {
	c.cancel(cause)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = c.session.Close()
	}()
	if c.proc != nil {
		c.proc.stop()
		c.proc.wait(ctx)
	}
	bound := time.NewTimer(2 * time.Second)
	defer bound.Stop()
	select {
	case <-closed:
	case <-bound.C:
	case <-ctx.Done():
	}
	if c.guard != nil {
		c.guard.base.CloseIdleConnections()
	}
}

// modern reports whether the newer protocol is spoken, which has no ping.
func (c *conn) modern() bool {
	r := c.session.InitializeResult()
	return r != nil && r.ProtocolVersion >= protocolModern
}

// list reads the server's tools, page by page.
func (c *conn) list(ctx context.Context, maxTools int) (tools []*sdk.Tool, err error) {
	if r := c.session.InitializeResult(); r != nil && r.Capabilities != nil && r.Capabilities.Tools == nil {
		return nil, nil // a server without tools need not know the question
	}
	params := &sdk.ListToolsParams{}
	for range maxPages {
		r, err := c.session.ListTools(ctx, params)
		if err != nil {
			return nil, garbledList(ctx, err)
		}
		tools = append(tools, r.Tools...)
		if len(tools) > maxTools {
			return nil, fmt.Errorf("the server has more than %d tools (limits.max_mcp_tools of agentd.yaml)", maxTools)
		}
		if r.NextCursor == "" {
			return tools, nil
		}
		params = &sdk.ListToolsParams{Cursor: r.NextCursor}
	}
	return nil, fmt.Errorf("the list of tools has more than %d pages", maxPages)
}

// listen registers a receiver of progress and returns its token. After stop
// returned, nothing is received.
func (c *conn) listen(receive func(tool.Progress)) (token string, stop func()) {
	token = fmt.Sprintf("agentd-%d", c.token.Add(1))
	c.mu.Lock()
	c.progress[token] = receive
	c.mu.Unlock()
	return token, func() {
		c.mu.Lock()
		delete(c.progress, token)
		c.mu.Unlock()
	}
}

// report hands progress to the call that it is about; progress of calls that
// ended, or never were, is dropped.
func (c *conn) report(p *sdk.ProgressNotificationParams) {
	token, _ := p.ProgressToken.(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	if receive := c.progress[token]; receive != nil {
		receive(tool.Progress{Message: preview([]byte(p.Message), 2000), Done: p.Progress, Total: p.Total})
	}
}

// outcome is what became of one attempt.
type outcome struct {
	result *sdk.CallToolResult
	err    error
}

// call sends one call and waits for its end, for ctx or for the end of the
// connection.
func (c *conn) call(ctx context.Context, params *sdk.CallToolParams, receive func(tool.Progress)) (*sdk.CallToolResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })()
	if receive != nil {
		token, stop := c.listen(receive)
		defer stop()
		params.SetProgressToken(token)
	}
	c.calls.Add(1)
	defer c.calls.Add(-1)
	done := make(chan outcome, 1)
	go func() {
		// A server that does not read its input blocks the writer, which knows no context.
		r, err := c.session.CallTool(ctx, params)
		done <- outcome{r, err}
	}()
	select {
	case a := <-done:
		if a.err != nil && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return a.result, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// lost reports whether err means that the transport failed, so that nobody knows
// whether the call happened, or, if sent is false, that it provably did not.
func lost(err error) (yes, sent bool) {
	var wire *jsonrpc.Error
	var herr *httpError
	switch {
	case errors.Is(err, sdk.ErrSessionMissing), errors.Is(err, errNotConnected):
		return true, false
	case errors.As(err, &herr):
		return herr.transient(), herr.Status != 429
	case errors.Is(err, errDead), errors.Is(err, sdk.ErrConnectionClosed):
		return true, true
	}
	// The SDK joins failures of the network with an error of its own that looks
	// like the server's, so the network is looked for first.
	if yes, sent := transportFailed(err); yes {
		return true, sent
	}
	return errors.As(err, &wire) && wire.Code == codeLost, true
}
