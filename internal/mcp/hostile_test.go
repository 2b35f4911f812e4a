package mcp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The test binary is its own collection of MCP servers: started with this
// variable it becomes the one that the variable names.
const (
	modeVar = "MCP_TEST_MODE"
	fileVar = "MCP_TEST_FILE"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVar); mode != "" {
		(&hostile{mode: mode, file: os.Getenv(fileVar)}).serve()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child configures a server that the test binary plays.
func child(t *testing.T, mode string) (ServerConfig, string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/said"
	return ServerConfig{Transport: "stdio", Command: exe, Env: map[string]string{modeVar: mode, fileVar: file}}, file
}

// hostile is a server written by hand, so that it can do what no SDK allows.
type hostile struct {
	mode, file string
	mu         sync.Mutex
	tools      []string
}

type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProtocolVersion string          `json:"protocolVersion"`
		RequestID       json.RawMessage `json:"requestId"`
		Name            string          `json:"name"`
		Arguments       json.RawMessage `json:"arguments"`
		Meta            map[string]any  `json:"_meta"`
	} `json:"params"`
}

func (h *hostile) send(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Printf(format+"\n", args...)
}

// note appends a line to the file that the test reads.
func (h *hostile) note(format string, args ...any) {
	f, err := os.OpenFile(h.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintf(f, format+"\n", args...)
		f.Close()
	}
}

func (h *hostile) result(id json.RawMessage, result string) {
	h.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func (h *hostile) text(id json.RawMessage, text string) {
	b, _ := json.Marshal(text)
	h.result(id, fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, b))
}

func (h *hostile) serve() {
	h.tools = []string{"act", "other"}
	switch h.mode {
	case "sleeper":
		<-time.After(10 * time.Minute)
		return
	case "refuses to start":
		fmt.Fprintln(os.Stderr, "no database: set DATABASE_URL")
		os.Exit(3)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		sub := exec.Command(os.Args[0])
		sub.Env = append(os.Environ(), modeVar+"=sleeper")
		sub.Stdout = os.Stdout
		if err := sub.Start(); err != nil {
			os.Exit(4)
		}
		h.note("%d", os.Getpid())
		h.note("%d", sub.Process.Pid)
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if h.mode == "stubborn" {
				<-time.After(10 * time.Minute)
			}
			return
		}
		var r rpc
		if json.Unmarshal(line, &r) != nil || h.mode == "mute" {
			continue
		}
		if h.mode == "chatty" {
			h.send("server says hello, and this is no JSON\n\n[1,2]\n{\"jsonrpc\":\"2.0\"}\n\x00\xff{")
		}
		h.handle(&r)
		if h.mode == "deaf" && r.Method == "tools/list" {
			<-time.After(10 * time.Minute)
		}
	}
}

func (h *hostile) handle(r *rpc) {
	switch r.Method {
	case "initialize":
		h.result(r.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"hostile","version":"1"}}`)
	case "ping":
		h.note("ping")
		if h.mode != "no ping" {
			h.result(r.ID, `{}`)
		}
	case "tools/list":
		if h.mode == "wrong list" {
			h.result(r.ID, `{"tools":"none"}`)
			return
		}
		var list []string
		for _, name := range h.tools {
			list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`, name))
		}
		h.result(r.ID, `{"tools":[`+strings.Join(list, ",")+`]}`)
	case "notifications/cancelled":
		h.note("cancelled %s", r.Params.RequestID)
	case "tools/call":
		go h.call(r)
	}
}

func (h *hostile) call(r *rpc) {
	h.note("call %s %v", r.Params.Name, r.Params.Meta[KeyMeta])
	switch h.mode {
	case "dies":
		fmt.Fprintln(os.Stderr, "panic: out of cheese")
		os.Exit(7)
	case "dies once":
		b, _ := os.ReadFile(h.file)
		if strings.Count(string(b), "call ") < 2 {
			os.Exit(7)
		}
		h.text(r.ID, "back again")
	case "never answers":
	case "ignores cancel":
		for i := range 1000 {
			h.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%q,"progress":%d,"message":"tick"}}`, r.Params.Meta["progressToken"], i)
			<-time.After(5 * time.Millisecond)
		}
	case "floods":
		for i := range 60_000 {
			h.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%q,"progress":%d}}`, r.Params.Meta["progressToken"], i)
			if i%10 == 0 {
				h.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
			}
		}
		h.text(r.ID, "done flooding")
	case "endless noise", "endless result", "result that stalls":
		if r.Params.Name == "other" {
			h.text(r.ID, "did other")
			return
		}
		if h.mode != "endless noise" {
			fmt.Print(`{"result":{"content":[{"type":"text","text":"`)
		}
		for n := 0; h.mode != "result that stalls" || n < 11; n++ {
			fmt.Print(strings.Repeat("x", 1<<20)) // and never the end of the line
		}
	case "huge, id first":
		h.text(r.ID, strings.Repeat("x", 12<<20))
	case "huge, id last":
		h.send(`{"result":{"content":[{"type":"text","text":"%s"}]},"jsonrpc":"2.0","id":%s}`, strings.Repeat("x", 12<<20), r.ID)
	case "huge, no id":
		h.send(`{"result":{"content":[{"type":"text","text":"%s`, strings.Repeat("x", 12<<20))
	case "fails":
		h.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no such table: t1 of sk-abc","data":{"x":1}}}`, r.ID)
	case "wrong content":
		h.result(r.ID, `{"content":[{"type":"text","text":7}]}`)
	case "unknown content":
		h.result(r.ID, `{"content":[{"type":"hologram"}]}`)
	case "content is null":
		h.result(r.ID, `{"content":[null]}`)
	case "null result":
		h.result(r.ID, `null`)
	case "text as result":
		h.result(r.ID, `"done"`)
	case "no result":
		h.send(`{"jsonrpc":"2.0","id":%s}`, r.ID)
		h.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, r.ID)
	case "wrong result":
		h.result(r.ID, `{"content":"not a list"}`)
	case "changes":
		h.tools = []string{"act", "fresh"}
		h.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		h.text(r.ID, "changed")
	case "env":
		h.text(r.ID, strings.Join(os.Environ(), "\n"))
	default:
		h.text(r.ID, "did "+r.Params.Name+" with "+string(r.Params.Arguments))
	}
}
