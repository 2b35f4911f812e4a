package mcp

import (
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A tool has the pool of its server, or its own.
func TestPoolsOfTools(t *testing.T) {
	s := configured(t, ServerConfig{Pool: "gpu", Tools: map[string]ToolConfig{"small": {Pool: "cpu"}}})
	for name, want := range map[string]string{"small": "tool.cpu", "large": "tool.gpu"} {
		if got := s.spec(&sdk.Tool{Name: name}).Pool; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	s = configured(t, ServerConfig{})
	if got := s.spec(&sdk.Tool{Name: "any"}).Pool; got != "" {
		t.Errorf("without: %q", got)
	}
}
