package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentd/fault"
	"agentd/internal/logs"
	"agentd/tool"
)

// KeyMeta is the key in a call's _meta that carries its idempotency key: the
// same for every attempt of the same call.
const KeyMeta = "agentd/idempotencyKey"

// mcpTool is a server's tool as agents see it.
type mcpTool struct {
	server *server
	name   string
	spec   tool.Spec
}

// Spec describes the tool.
func (t *mcpTool) Spec() tool.Spec { return t.spec }

// Run calls the tool. The errors are *fault.Error that name the server. An error
// that the server itself answered with is none of them: the server works, the
// tool failed, and the model reads why.
func (t *mcpTool) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	s := t.server
	began := s.m.opts.Now()
	timeout := s.callTimeout(t.name)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	result, attempts, err := t.run(ctx, call)
	answer := t.failure(ctx, err)
	switch {
	case answer != nil:
		result, err = tool.ErrorResult(answer.Error()), nil
	case err != nil:
		doubt := attempts > 0 && inDoubt(ctx, err)
		if err = t.explain(ctx, err, timeout); doubt {
			err = &tool.InDoubtError{Err: err}
		}
	}
	t.record(call, result, cmp.Or(err, answer), attempts, s.m.opts.Now().Sub(began))
	return result, err
}

// failure is what the server says went wrong in its tool, where that is what err
// is about; nil for failures of the connection, of the call's time, and for calls
// that the server would not even try.
func (t *mcpTool) failure(ctx context.Context, err error) error {
	var wire *jsonrpc.Error
	var herr *httpError
	if !errors.As(err, &wire) || errors.As(err, &herr) || ctx.Err() != nil {
		return nil
	}
	if failed, _ := lost(err); failed {
		return nil
	}
	switch wire.Code {
	case codeTooLarge, codeGarbage, codeLost, jsonrpc.CodeInvalidParams, jsonrpc.CodeMethodNotFound:
		return nil
	}
	return fmt.Errorf("%s failed: %s (code %d)", t.name, wire.Message, wire.Code)
}

// inDoubt is whether a call that failed may have happened: it was sent, and what
// came back, if anything did, says nothing about it.
func inDoubt(ctx context.Context, err error) bool {
	var wire *jsonrpc.Error
	var odd *unreadable
	switch failed, sent := lost(err); {
	case failed:
		return sent
	case ctx.Err() != nil, errors.As(err, &odd):
		return true
	}
	return errors.As(err, &wire) && (wire.Code == codeTooLarge || wire.Code == codeGarbage)
}

var errTimeout = errors.New("it took too long")

// run performs the call with all its attempts.
func (t *mcpTool) run(ctx context.Context, call tool.Call) (res tool.Result, attempts int, err error) {
	s := t.server
	args, err := canonical(call.Args)
	if err != nil {
		return res, 0, s.fault(fault.Invalid, "", "%s: %w", t.name, err)
	}
	if why := s.access.refusal(t.name, args); why != "" {
		return res, 0, s.fault(fault.Forbidden, "use other arguments, or ask the operator to change the list", "%s may not be called so: %s", t.name, why)
	}
	s.wait(+1)
	release, err := s.slot(ctx, t.name)
	s.wait(-1)
	if err != nil {
		return res, 0, fmt.Errorf("it waited for a free slot all the time: %w", err)
	}
	defer release()
	pause := s.cfg.Retries.Backoff
	for {
		attempts++
		r, err := t.attempt(ctx, call, args)
		if err == nil {
			return r, attempts, nil
		}
		failed, sent := lost(err)
		more := *s.cfg.Retries.Max
		if errors.Is(err, sdk.ErrSessionMissing) {
			more = max(more, 1) // the server has restarted, and refused the call unread
		}
		if !failed || ctx.Err() != nil || attempts > more || sent && t.spec.EffectOrDefault() == tool.Once {
			return res, attempts, err
		}
		s.log.Info("a call of an MCP tool is tried again", "server", s.name, "tool", t.name, "attempt", attempts+1, "error", logs.Report(s.redactor.text(err.Error())))
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return res, attempts, fmt.Errorf("%w, after: %w", context.Cause(ctx), err)
		}
		pause *= 2
	}
}

func (s *server) wait(n int) {
	s.mu.Lock()
	s.waiting += n
	s.mu.Unlock()
}

func (t *mcpTool) attempt(ctx context.Context, call tool.Call, args json.RawMessage) (tool.Result, error) {
	c, err := t.server.live(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	params := &sdk.CallToolParams{Name: t.name, Arguments: args, Meta: sdk.Meta{}}
	if call.Key != "" {
		params.Meta[KeyMeta] = call.Key
	}
	if call.Traceparent != "" {
		params.Meta["traceparent"] = call.Traceparent
	}
	r, err := c.call(ctx, params, call.Progress)
	if err != nil {
		failed, _ := lost(err)
		if failed && c.proc != nil || errors.Is(err, sdk.ErrSessionMissing) || errors.Is(err, sdk.ErrConnectionClosed) {
			t.server.drop(c, err)
		}
		if u := garbled(ctx, err); u != nil {
			t.server.log.Warn("an MCP server's answer can not be read", "server", t.server.name, "tool", t.name, "error", logs.Report(t.server.redactor.text(u.err.Error())))
			return tool.Result{}, u
		}
		return tool.Result{}, err
	}
	return convert(r)
}

// explain turns what went wrong into words for the model and for people.
func (t *mcpTool) explain(ctx context.Context, err error, timeout time.Duration) error {
	s := t.server
	var done *fault.Error
	var wire *jsonrpc.Error
	var herr *httpError
	var odd *unreadable
	failed, sent := lost(err)
	switch {
	case errors.As(err, &done) && done.Op == "mcp":
		return err
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), errTimeout):
		return s.fault(fault.Timeout, fmt.Sprintf("it may still happen there; timeouts.call of servers.%s is %s", s.name, timeout), "%s took longer than %s%s", t.name, timeout, s.aside(err))
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return s.fault(fault.Timeout, "it may still happen there", "%s took too long: %w", t.name, context.Cause(ctx))
	case ctx.Err() != nil:
		return s.fault(fault.Cancelled, "", "%s was cancelled: %w", t.name, context.Cause(ctx))
	case errors.As(err, &herr):
		kind, hint := fault.Unavailable, ""
		switch herr.Status {
		case 401, 403:
			kind, hint = fault.Unauthorized, "set the right headers for servers."+s.name
		case 429:
			kind = fault.RateLimited
		}
		return s.fault(kind, hint, "%s: %s", t.name, s.redactor.text(herr.Error()))
	case errors.As(err, &odd):
		return s.fault(fault.Unavailable, "the server is broken", "%s: %w", t.name, odd)
	case errors.Is(err, errNotConnected):
		return s.fault(fault.Unavailable, s.hint(), "%s was not called: %s", t.name, s.redactor.text(err.Error()))
	case failed:
		return s.fault(fault.Unavailable, t.doubtIf(sent), "%s: %s", t.name, s.redactor.text(network(err).Error()))
	case errors.As(err, &wire):
		switch wire.Code {
		case codeTooLarge:
			return s.fault(fault.TooLarge, "", "%s: %s", t.name, wire.Message)
		case codeGarbage:
			return s.fault(fault.Unavailable, "the server is broken", "%s: %s", t.name, wire.Message)
		case jsonrpc.CodeInvalidParams, jsonrpc.CodeMethodNotFound:
			return s.fault(fault.Invalid, "", "%s was refused: %s (code %d)", t.name, wire.Message, wire.Code)
		}
	}
	return s.fault(fault.Unavailable, "", "%s: %s", t.name, s.redactor.text(err.Error()))
}

// aside adds what a call was doing when its time was over.
func (s *server) aside(err error) string {
	text := strings.TrimSuffix(s.redactor.text(err.Error()), errTimeout.Error())
	if text = strings.TrimRight(text, ": "); text == "" {
		return ""
	}
	return ": " + text
}

// network gives the part of a failure that says what happened.
func network(err error) error {
	var wire *jsonrpc.Error
	var at *url.Error
	switch {
	case errors.As(err, &at):
		return at.Err
	case errors.As(err, &wire) && wire.Code == codeLost:
		return errors.New(wire.Message)
	}
	return err
}

// doubtIf says what is unknown about a call that was sent and whose answer was lost.
func (t *mcpTool) doubtIf(sent bool) string {
	if sent && t.spec.EffectOrDefault() == tool.Once {
		return "it may have happened: find out before calling it again"
	}
	return ""
}

// record logs a call with its arguments, redacted. err is why there is no result,
// or what the server said beside a result that is an error.
func (t *mcpTool) record(call tool.Call, res tool.Result, err error, attempts int, took time.Duration) {
	s := t.server
	outcome, level := "ok", slog.LevelInfo
	attrs := []slog.Attr{slog.String("server", s.name), slog.String("tool", t.name), slog.String("run", call.RunID), slog.String("call", call.ID),
		slog.Duration("duration", took), slog.Int("attempts", attempts)}
	switch {
	case res.IsError:
		outcome = "error"
	case err != nil:
		outcome, level = string(fault.KindOf(err)), slog.LevelWarn
	}
	if err != nil {
		attrs = append(attrs, slog.Any("error", logs.Report(preview([]byte(s.redactor.text(err.Error())), 500))))
	}
	attrs = append(attrs, slog.String("outcome", outcome))
	ctx := context.Background()
	if s.log.Enabled(ctx, slog.LevelDebug) {
		attrs = append(attrs, slog.Any("args", logs.Payload(preview(s.redact(t.name, call.Args), 2000))))
	}
	s.log.LogAttrs(ctx, level, "MCP call", attrs...)
}
