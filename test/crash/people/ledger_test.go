//go:build unix

package people

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// The test's binary is also the MCP server whose tools write down that they ran.

// ledgerEnv names the folder of the ledger; if it is set, this process is the server.
const ledgerEnv = "AGENTD_TEST_LEDGER"

// Files in the ledger's folder.
const (
	ledgerFile = "ledger.jsonl"
	aliveFile  = "alive" // every server holds a shared lock on it as long as it lives
)

// The ledger's tools by effect; paint is a once tool that needs approval.
const (
	toolLook  = "look"
	toolPut   = "put"
	toolFire  = "fire"
	toolPaint = "paint"
)

// written is one line of the ledger: a tool that ran.
type written struct {
	Tool string          `json:"tool"`
	Key  string          `json:"key"`
	Args json.RawMessage `json:"args"`
}

// toolText is what a tool of the ledger answers.
func toolText(tool string, n int) string { return fmt.Sprintf("%s did %d", tool, n) }

type ledgerServer struct {
	mu  sync.Mutex
	out *bufio.Writer
	log *os.File
}

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProtocolVersion string          `json:"protocolVersion"`
		Name            string          `json:"name"`
		Arguments       json.RawMessage `json:"arguments"`
		Meta            struct {
			Key string `json:"agentd/idempotencyKey"`
		} `json:"_meta"`
	} `json:"params"`
}

// serveLedger speaks MCP until its standard input ends, as it does when the
// process that started it is killed. Calls under way then are finished: that is
// what makes outcomes unknown.
func serveLedger(dir string) error {
	alive, err := os.OpenFile(filepath.Join(dir, aliveFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer alive.Close()
	if err := syscall.Flock(int(alive.Fd()), syscall.LOCK_SH); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, ledgerFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s := &ledgerServer{out: bufio.NewWriter(os.Stdout), log: log}
	var calls sync.WaitGroup
	defer calls.Wait()
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var r request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			return err
		}
		switch r.Method {
		case "initialize":
			s.answer(r.ID, map[string]any{"protocolVersion": r.Params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}},
				"serverInfo": map[string]any{"name": "ledger", "version": "1.0.0"}})
		case "tools/list":
			s.answer(r.ID, map[string]any{"tools": ledgerTools()})
		case "tools/call":
			calls.Go(func() { s.call(&r) })
		default:
			if len(r.ID) > 0 {
				s.answer(r.ID, map[string]any{})
			}
		}
	}
	return in.Err()
}

func ledgerTools() []map[string]any {
	var tools []map[string]any
	for _, name := range []string{toolLook, toolPut, toolFire, toolPaint} {
		tools = append(tools, map[string]any{"name": name, "description": "Writes down that it ran.", "inputSchema": map[string]any{
			"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}, "required": []string{"n"}}})
	}
	return tools
}

// call runs a tool: a moment before it is written down and one after, so that
// kills fall on either side.
func (s *ledgerServer) call(r *request) {
	h := fnv.New32a()
	fmt.Fprint(h, r.Params.Meta.Key, r.Params.Name)
	before, after := h.Sum32()%9, h.Sum32()/9%9
	<-time.After(time.Duration(before) * time.Millisecond)
	line, err := json.Marshal(written{r.Params.Name, r.Params.Meta.Key, r.Params.Arguments})
	if err == nil {
		_, err = s.log.Write(append(line, '\n'))
	}
	if err == nil {
		err = s.log.Sync()
	}
	<-time.After(time.Duration(after) * time.Millisecond)
	var args struct{ N int }
	if err == nil {
		err = json.Unmarshal(r.Params.Arguments, &args)
	}
	text := toolText(r.Params.Name, args.N)
	if err != nil {
		text = err.Error()
	}
	s.answer(r.ID, map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}, "isError": err != nil})
}

func (s *ledgerServer) answer(id json.RawMessage, result any) {
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Who asked may have been killed: then nobody reads, which is all right.
	_, _ = s.out.Write(append(raw, '\n'))
	_ = s.out.Flush()
}

// readLedger gives how often each key was written, by tool.
func readLedger(dir string) (map[string][]written, error) {
	f, err := os.Open(filepath.Join(dir, ledgerFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := map[string][]written{}
	in := bufio.NewScanner(f)
	for in.Scan() {
		var w written
		if err := json.Unmarshal(in.Bytes(), &w); err != nil {
			return nil, fmt.Errorf("%q: %w", in.Text(), err)
		}
		lines[w.Key] = append(lines[w.Key], w)
	}
	return lines, in.Err()
}
