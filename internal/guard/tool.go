package guard

import (
	"context"
	"fmt"
	"strings"

	"agentd/fault"
	"agentd/tool"
)

// Tool guards a tool with a breaker of its own, one for each tenant, and, if it is
// of an MCP server, with one that it shares with the server's other tools. A server fails when it
// can not be reached, breaks off or takes too long; a tool fails also when its
// result is an error. Calls of an open breaker fail at once.
func (g *Guards) Tool(inner tool.Tool, own, server Breaker) tool.Tool {
	spec := inner.Spec()
	what := Thing{Kind: "tool", Name: spec.Name}
	t := &guarded{inner: inner}
	if name, ok := strings.CutPrefix(spec.Source, "mcp:"); ok {
		t.server = g.gate(Thing{Kind: "server", Name: name}, "", server)
		what.Server = name
	}
	if own.Failures > 0 {
		t.own = func(tenant string) *gate { return g.gate(what, tenant, own) }
	}
	if t.own == nil && t.server == nil {
		return inner
	}
	return t
}

type guarded struct {
	inner  tool.Tool
	server *gate
	// own gives the tool's breaker of a tenant; nil: there is none.
	own func(tenant string) *gate
}

// Spec implements tool.Tool.
func (t *guarded) Spec() tool.Spec { return t.inner.Spec() }

// Run implements tool.Tool.
func (t *guarded) Run(ctx context.Context, call tool.Call) (res tool.Result, err error) {
	if e := t.server.enter(); e != nil {
		return res, refusedTool(call.Name, e)
	}
	var own *gate
	if t.own != nil {
		own = t.own(call.Tenant)
	}
	if e := own.enter(); e != nil {
		t.server.leave(nothing)
		return res, refusedTool(call.Name, e)
	}
	says, saysServer := fails, fails // a panic, too
	defer func() {
		own.leave(says)
		t.server.leave(saysServer)
	}()
	res, err = t.inner.Run(ctx, call)
	says = saysTool(ctx, err)
	saysServer = says
	if err == nil && res.IsError {
		says = fails
	}
	return res, err
}

func refusedTool(name string, e *OpenError) error {
	return &fault.Error{Op: "guard", Kind: fault.Unavailable, Err: fmt.Errorf("%s was not called: %w", name, e),
		Hint: "do something else meanwhile; circuit_breakers in the profile says when to give up"}
}

// saysTool is what the end of a call says. A call that was refused unsent says nothing.
func saysTool(ctx context.Context, err error) outcome {
	switch {
	case err == nil:
		return works
	case givenUp(ctx):
		return nothing
	case ctx.Err() != nil:
		return fails
	}
	switch fault.KindOf(err) {
	case fault.Invalid, fault.Forbidden, fault.Unsupported, fault.Cancelled:
		return nothing
	}
	return fails
}
