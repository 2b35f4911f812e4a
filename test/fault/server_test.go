package fault

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// modeVar makes the test binary an MCP server that fails in the named way.
const modeVar = "FAULT_TEST_MODE"

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVar); mode != "" {
		(&hostile{mode: mode}).serve()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// hostileModes are the ways in which the server fails.
var hostileModes = []string{"works", "refuses to start", "mute", "dies", "never answers", "answers late", "floods", "huge", "wrong result", "error", "garbage"}

// hostile is a server written by hand, so that it can do what no SDK allows.
type hostile struct {
	mode string
	mu   sync.Mutex
}

func (h *hostile) send(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Printf(format+"\n", args...)
}

func (h *hostile) serve() {
	if h.mode == "refuses to start" {
		os.Exit(3)
	}
	if mark, ok := strings.CutPrefix(h.mode, "gone "); ok {
		// It works until the file is there: then it dies, and does not start again.
		go func() {
			for {
				if _, err := os.Stat(mark); err == nil {
					os.Exit(9)
				}
				<-time.After(5 * time.Millisecond)
			}
		}()
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var r struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Meta map[string]any `json:"_meta"`
			} `json:"params"`
		}
		if json.Unmarshal(line, &r) != nil || h.mode == "mute" {
			continue
		}
		switch r.Method {
		case "initialize":
			h.send(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"hostile","version":"1"}}}`, r.ID)
		case "ping":
			h.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, r.ID)
		case "tools/list":
			h.send(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"act","inputSchema":{"type":"object"}}]}}`, r.ID)
		case "tools/call":
			go h.call(r.ID, r.Params.Meta["progressToken"])
		}
	}
}

func (h *hostile) call(id json.RawMessage, token any) {
	const fine = `{"content":[{"type":"text","text":"done"}]}`
	switch h.mode {
	case "dies":
		os.Exit(7)
	case "never answers":
	case "answers late":
		<-time.After(1200 * time.Millisecond) // after the call's time
		h.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, fine)
	case "floods":
		for i := range 5_000 {
			h.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%q,"progress":%d}}`, token, i)
		}
		h.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, fine)
	case "huge":
		h.send(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`, id, strings.Repeat("x", 12<<20))
	case "wrong result":
		h.send(`{"jsonrpc":"2.0","id":%s,"result":{"content":"not a list"}}`, id)
	case "error":
		h.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no such table"}}`, id)
	case "garbage":
		h.send("this is no JSON\n\x00\xff{")
	default:
		h.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, fine)
	}
}
