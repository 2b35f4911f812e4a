package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// ledgerEnv makes the test binary an MCP server that writes every call it
// performs to the file that the variable names.
const ledgerEnv = "AGENTD_CRASH_LEDGER"

func TestMain(m *testing.M) {
	if path := os.Getenv(ledgerEnv); path != "" {
		if err := serveLedger(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveLedger performs calls: each is one line in the ledger, durable before the
// result is sent, with the tool and the idempotency key.
func serveLedger(path string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "ledger", Version: "1"}, nil)
	for _, name := range []string{"do_read", "do_idem", "do_once"} {
		s.AddTool(&sdk.Tool{Name: name, Description: "Writes a line.", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)},
			func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				key, _ := req.Params.Meta["agentd/idempotencyKey"].(string)
				if _, err := f.WriteString(name + " " + key + "\n"); err != nil {
					return nil, err
				}
				if err := f.Sync(); err != nil {
					return nil, err
				}
				if name == "do_once" {
					// It has happened and nobody knows yet: the moment that
					// matters lasts long enough for kills to meet it.
					<-time.After(20 * time.Millisecond)
				}
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: name + " did " + string(req.Params.Arguments)}}}, nil
			})
	}
	return s.Run(context.Background(), &sdk.StdioTransport{})
}

// readLedger counts the calls by tool and key.
func readLedger(t *testing.T, path string) map[string]int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]int{}
	for line := range strings.Lines(string(b)) {
		calls[strings.TrimSpace(line)]++
	}
	return calls
}
