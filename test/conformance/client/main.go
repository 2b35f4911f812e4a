// Client is agentd's MCP client in the shape that the protocol's conformance
// kit drives: the kit starts it once for each scenario, with the address of a
// test server as the last argument, the scenario's name in
// MCP_CONFORMANCE_SCENARIO and its data in MCP_CONFORMANCE_CONTEXT. It uses the
// same manager as the product, so that the kit judges what users get.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"agentd/internal/mcp"
	"agentd/tool"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

// planned is one call that a scenario asks for.
type planned struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func run() error {
	if len(os.Args) < 2 {
		return errors.New("give the address of the server")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	m, err := mcp.New(map[string]mcp.ServerConfig{"kit": {
		Transport: "http", URL: os.Args[len(os.Args)-1], TrustHints: true,
	}}, &mcp.Options{Version: "conformance", Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		return err
	}
	defer m.Close()
	tools, problems := m.Tools(ctx, []string{"kit"})
	for _, p := range problems {
		return p.Err
	}
	byName := map[string]tool.Tool{}
	for _, t := range tools {
		byName[t.Spec().Label] = t
	}
	calls, err := plan(os.Getenv("MCP_CONFORMANCE_SCENARIO"), tools)
	if err != nil {
		return err
	}
	var errs []error
	for i, c := range calls {
		t := byName[c.Name]
		if t == nil {
			errs = append(errs, fmt.Errorf("there is no tool %q", c.Name))
			continue
		}
		r, err := t.Run(ctx, tool.Call{ID: fmt.Sprint(i), Key: fmt.Sprintf("kit/1/%d", i), Args: c.Arguments, Progress: func(tool.Progress) {}})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(os.Stderr, "%s: error=%v %v\n", c.Name, r.IsError, r.Content)
	}
	return errors.Join(errs...)
}

// plan says which tools a scenario wants called. Scenarios that are not named
// are about connecting and listing, or about what agentd does not do; for those
// every tool is called once.
func plan(scenario string, tools []tool.Tool) ([]planned, error) {
	var data struct {
		ToolCalls []planned `json:"toolCalls"`
	}
	if s := os.Getenv("MCP_CONFORMANCE_CONTEXT"); s != "" {
		if err := json.Unmarshal([]byte(s), &data); err != nil {
			return nil, fmt.Errorf("MCP_CONFORMANCE_CONTEXT: %w", err)
		}
	}
	switch {
	case len(data.ToolCalls) > 0:
		return data.ToolCalls, nil
	case scenario == "initialize" || scenario == "request-metadata":
		return nil, nil
	case scenario == "tools_call":
		return []planned{{"add_numbers", json.RawMessage(`{"a":5,"b":3}`)}}, nil
	case scenario == "json-schema-ref-no-deref":
		return nil, nil
	case scenario == "json-schema-2020-12-preservation":
		for _, t := range tools {
			if s := t.Spec(); s.Label == "json_schema_2020_12_tool" {
				args, err := json.Marshal(map[string]json.RawMessage{"schema": s.Schema})
				return []planned{{"json_schema_echo", args}}, err
			}
		}
		return nil, errors.New("there is no tool json_schema_2020_12_tool")
	}
	var all []planned
	for _, t := range tools {
		all = append(all, planned{t.Spec().Label, json.RawMessage(`{"region":"us-west1"}`)})
	}
	return all, nil
}
