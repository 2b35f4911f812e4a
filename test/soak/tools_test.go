//go:build unix

package soak

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The test's binary is also both MCP servers: one whose tools write down that they
// ran, and one that does so too and then fails in one way or another.
const (
	dirVar  = "AGENTD_SOAK_LEDGER" // the folder they write to
	modeVar = "AGENTD_SOAK_SERVER" // ledger or hostile
)

// Files in that folder. Every server holds a shared lock on alive while it lives.
const (
	ledgerFile = "ledger.jsonl"
	aliveFile  = "alive"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(dirVar); dir != "" {
		if err := serveTools(dir, os.Getenv(modeVar)); err != nil {
			fmt.Fprintln(os.Stderr, "tools:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// written is one line of the ledger: a call that happened.
type written struct{ Tool, Key string }

type tools struct {
	mode string
	mu   sync.Mutex
	out  *bufio.Writer
	log  *os.File
}

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProtocolVersion string `json:"protocolVersion"`
		Name            string `json:"name"`
		Meta            struct {
			Key   string `json:"agentd/idempotencyKey"`
			Token any    `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
}

// serveTools speaks MCP until its standard input ends, as it does when agentd is
// killed. What it does then is finished: that is what makes outcomes unknown.
func serveTools(dir, mode string) error {
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
	s := &tools{mode: mode, out: bufio.NewWriter(os.Stdout), log: log}
	names := map[string][]string{"ledger": {"look", "put", "fire", "paint"}, "hostile": {"poke", "risk"}}[mode]
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
			s.result(r.ID, map[string]any{"protocolVersion": r.Params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}},
				"serverInfo": map[string]any{"name": mode, "version": "1.0.0"}})
		case "tools/list":
			var list []map[string]any
			for _, name := range names {
				list = append(list, map[string]any{"name": name, "description": "Writes down that it ran.", "inputSchema": map[string]any{
					"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}}})
			}
			s.result(r.ID, map[string]any{"tools": list})
		case "tools/call":
			calls.Go(func() { s.call(&r) })
		default:
			if len(r.ID) > 0 {
				s.result(r.ID, map[string]any{})
			}
		}
	}
	return in.Err()
}

// call writes down that the call happens, and then answers, more or less.
func (s *tools) call(r *request) {
	h := fnv.New32a()
	fmt.Fprint(h, r.Params.Meta.Key, r.Params.Name)
	chance := h.Sum32()
	<-time.After(time.Duration(chance%7) * time.Millisecond)
	line, err := json.Marshal(written{r.Params.Name, r.Params.Meta.Key})
	if err == nil {
		_, err = s.log.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err)
	}
	<-time.After(time.Duration(chance/7%7) * 10 * time.Millisecond) // it has happened, and nobody knows yet
	if s.mode == "hostile" {
		switch chance / 49 % 24 {
		case 0:
			os.Exit(7)
		case 1:
			return // never answers
		case 2:
			<-time.After(1500 * time.Millisecond) // after the call's time
		case 3:
			for i := range 3_000 {
				s.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token(r.Params.Meta.Token), i))
			}
		case 4:
			s.text(r.ID, strings.Repeat("large ", 100_000))
			return
		case 5:
			s.send(`{"jsonrpc":"2.0","id":` + string(r.ID) + `,"result":{"content":"not a list"}}`)
			return
		case 6:
			s.send(`{"jsonrpc":"2.0","id":` + string(r.ID) + `,"error":{"code":-32000,"message":"no such table"}}`)
			return
		case 7:
			s.send("this is no JSON\n\x00\xff{")
		}
	}
	s.text(r.ID, r.Params.Name+" did it")
}

func token(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(b)
}

func (s *tools) text(id json.RawMessage, text string) {
	s.result(id, map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}})
}

func (s *tools) result(id json.RawMessage, result any) {
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
	if err != nil {
		panic(err)
	}
	s.send(string(raw))
}

func (s *tools) send(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Who asked may have been killed: then nobody reads, which is all right.
	_, _ = s.out.WriteString(line + "\n")
	_ = s.out.Flush()
}

// readLedger counts the calls by tool and key.
func readLedger(dir string) (map[written]int, error) {
	b, err := os.ReadFile(filepath.Join(dir, ledgerFile))
	if err != nil {
		return nil, err
	}
	calls := map[written]int{}
	for line := range strings.Lines(string(b)) {
		var w written
		if err := json.Unmarshal([]byte(line), &w); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		calls[w]++
	}
	return calls, nil
}
