// Mcpgo is an MCP server made with mark3labs/mcp-go, for tests of agentd's
// client against another implementation of the protocol. It speaks over stdin
// and stdout, or over HTTP on a free port of 127.0.0.1, which it says.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func main() {
	overHTTP := flag.Bool("http", false, "serve streamable HTTP instead of stdin and stdout")
	flag.Parse()
	if err := run(*overHTTP); err != nil {
		fmt.Fprintln(os.Stderr, "mcpgo:", err)
		os.Exit(1)
	}
}

func run(overHTTP bool) error {
	s := newServer()
	if !overHTTP {
		return server.ServeStdio(s)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", server.NewStreamableHTTPServer(s, server.WithStateful(true)))
	fmt.Fprintf(os.Stderr, "listens on http://%s/mcp\n", l.Addr())
	return http.Serve(l, mux)
}

func newServer() *server.MCPServer {
	s := server.NewMCPServer("mcpgo", "1.0.0", server.WithToolCapabilities(true))
	cancelled := make(chan struct{}, 100)
	s.AddTool(mcp.NewTool("add", mcp.WithDescription("Adds two numbers."), mcp.WithReadOnlyHintAnnotation(true),
		mcp.WithNumber("a", mcp.Required()), mcp.WithNumber("b", mcp.Required())),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			a, b := req.GetFloat("a", 0), req.GetFloat("b", 0)
			return mcp.NewToolResultStructured(map[string]any{"sum": a + b}, fmt.Sprintf("%v", a+b)), nil
		})
	s.AddTool(mcp.NewTool("refuse", mcp.WithDescription("Fails, and says why.")),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultError("not today"), nil
		})
	s.AddTool(mcp.NewTool("break", mcp.WithDescription("Ends with an error of the protocol.")),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, fmt.Errorf("broken inside")
		})
	s.AddTool(mcp.NewTool("wait", mcp.WithDescription("Reports progress and waits until it is cancelled.")),
		func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if req.Params.Meta != nil && req.Params.Meta.ProgressToken != nil {
				if err := server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress", map[string]any{
					"progressToken": req.Params.Meta.ProgressToken, "progress": 1, "total": 2, "message": "half way",
				}); err != nil {
					return nil, err
				}
			}
			<-ctx.Done()
			cancelled <- struct{}{}
			return nil, ctx.Err()
		})
	s.AddTool(mcp.NewTool("see_cancelled", mcp.WithDescription("Returns when a wait was cancelled.")),
		func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			select {
			case <-cancelled:
				return mcp.NewToolResultText("a wait was cancelled"), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
	return s
}
