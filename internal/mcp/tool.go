package mcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentd/tool"
)

// maxDescription bounds a tool's description: it is part of every prompt.
const maxDescription = 32 << 10

// remoteTool is a tool as its server lists it, with what the configuration says.
type remoteTool struct {
	server *server
	// name is the server's own.
	name string
	spec tool.Spec
}

// describe turns a list of tools into specs, without the hidden ones.
func (s *server) describe(list []*sdk.Tool) []remoteTool {
	var out []remoteTool
	seen := map[string]bool{}
	for _, t := range list {
		if t.Name == "" || seen[t.Name] || !s.access.visible(t.Name) {
			continue
		}
		seen[t.Name] = true
		spec := s.spec(t)
		if err := s.m.schemas.Check(spec); err != nil {
			s.log.Warn("a tool of an MCP server has a schema with mistakes", "server", s.name, "error", err)
		}
		out = append(out, remoteTool{server: s, name: t.Name, spec: spec})
	}
	slices.SortFunc(out, func(a, b remoteTool) int { return strings.Compare(a.name, b.name) })
	return out
}

func (s *server) spec(t *sdk.Tool) tool.Spec {
	own := s.cfg.Tools[t.Name]
	hints := t.Annotations
	if hints == nil {
		hints = &sdk.ToolAnnotations{}
	}
	spec := tool.Spec{
		Name: t.Name, Label: t.Title, Description: t.Description, Schema: objectSchema(t.InputSchema),
		Effect: s.cfg.effect(t.Name), Source: "mcp:" + s.name,
		// The engine's clock rings after ours, which knows better what to say.
		Timeout: s.callTimeout(t.Name) + time.Second,
	}
	if spec.Label == "" {
		spec.Label = hints.Title
	}
	if pool := cmp.Or(own.Pool, s.cfg.Pool); pool != "" {
		spec.Pool = "tool." + pool
	}
	if own.Description != "" {
		spec.Description = own.Description
	}
	if len(spec.Description) > maxDescription {
		spec.Description = strings.ToValidUTF8(spec.Description[:maxDescription], "") + "…"
	}
	if spec.Effect == "" && s.cfg.TrustHints {
		switch {
		case hints.ReadOnlyHint:
			spec.Effect = tool.Read
		case hints.IdempotentHint:
			spec.Effect = tool.Idempotent
		}
	}
	spec.Effect = spec.EffectOrDefault()
	yes := func(b *bool) bool { return b != nil && *b }
	spec.Classes = suggestClasses(t.Name, spec.Effect, yes(hints.DestructiveHint) && !hints.ReadOnlyHint, yes(hints.OpenWorldHint))
	s.approval.apply(&spec, t.Name)
	return spec
}

func (s *server) callTimeout(name string) time.Duration {
	if d := s.cfg.Tools[name].Timeout; d > 0 {
		return d
	}
	return s.cfg.Timeouts.Call
}

// objectSchema writes a schema whole and makes sure that it says object at the
// top: some models' APIs refuse the whole request otherwise.
func objectSchema(schema any) json.RawMessage {
	obj, ok := schema.(map[string]any)
	if !ok {
		return json.RawMessage(`{"type":"object"}`)
	}
	if obj["type"] != "object" {
		c := make(map[string]any, len(obj)+1)
		for k, v := range obj {
			c[k] = v
		}
		c["type"] = "object"
		obj = c
	}
	raw, err := tool.EncodeJSON(obj)
	if err != nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	return raw
}

// expose gives the tools the names by which the model knows them.
func expose(all []remoteTool, reserved []string) []tool.Tool {
	count := map[string]int{}
	for _, name := range reserved {
		count[name]++
	}
	for _, t := range all {
		count[clean(t.name)]++
	}
	used := map[string]bool{}
	var out []tool.Tool
	for _, t := range all {
		name := clean(t.name)
		if count[name] > 1 {
			name = clean(t.server.name + "_" + t.name)
			if used[name] || count[name] > 0 {
				name = hashed(name, t.server.name+"\x00"+t.name)
			}
		}
		used[name] = true
		spec := t.spec
		spec.Name = name
		if spec.Label == "" {
			spec.Label = t.name
		}
		out = append(out, &mcpTool{server: t.server, name: t.name, spec: spec})
	}
	slices.SortFunc(out, func(a, b tool.Tool) int { return strings.Compare(a.Spec().Name, b.Spec().Name) })
	return out
}

// calls reports whether name is the server's own name of a tool or one of those by
// which expose lets a model know it. Which of them it is depends on other servers.
func (s *server) calls(own, name string) bool {
	prefixed := clean(s.name + "_" + own)
	return name == own || name == clean(own) || name == prefixed || name == hashed(prefixed, s.name+"\x00"+own)
}

// Names are all names by which a tool may be meant: the one it has, the one its
// server gives it, and server_tool, which it has while another tool is called the
// same. Which of them the model knows depends on other servers; a rule about the
// tool must not. A tool of no MCP server has its own name alone.
func Names(t tool.Tool) []string {
	names := []string{t.Spec().Name}
	if m, ok := t.(*mcpTool); ok {
		names = append(names, m.name, clean(m.name), m.server.name+"_"+m.name, clean(m.server.name+"_"+m.name))
	}
	return names
}

// maxName is the longest name of a tool that every model takes.
const maxName = 64

// clean makes a name that every model takes. Different names stay different.
func clean(name string) string {
	out := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	if out == name && len(out) <= maxName && out != "" {
		return out
	}
	return hashed(out, name)
}

// hashed shortens a name and adds a hash of what it stands for.
func hashed(name, original string) string {
	sum := sha256.Sum256([]byte(original))
	return name[:min(len(name), maxName-9)] + "_" + hex.EncodeToString(sum[:4])
}
