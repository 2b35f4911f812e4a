//go:build unix

package cluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// The test's binary is also the MCP server whose calls are written down.
const (
	ledgerVar = "AGENTD_CLUSTER_LEDGER" // the file
	paceVar   = "AGENTD_CLUSTER_PACE"   // how long a call takes, at the most
)

func TestMain(m *testing.M) {
	if path := os.Getenv(ledgerVar); path != "" {
		pace, err := time.ParseDuration(os.Getenv(paceVar))
		if err == nil {
			err = serveTools(path, pace)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "tools:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// written is one line of the ledger: a call began or ended.
type written struct {
	Tool, Key string
	Node      int   // the process that asked for it
	At        int64 // Unix milliseconds
	End       bool
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

// serveTools speaks MCP until its standard input ends, as it does when agentd is
// killed. What it does then is finished: that is what makes outcomes unknown.
func serveTools(path string, pace time.Duration) error {
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	node := os.Getppid()
	note := func(w written) {
		w.Node, w.At = node, time.Now().UnixMilli()
		line, err := json.Marshal(w)
		if err == nil {
			_, err = log.Write(append(line, '\n'))
		}
		if err != nil {
			panic(err)
		}
	}
	var mu sync.Mutex
	out := bufio.NewWriter(os.Stdout)
	send := func(id json.RawMessage, result any) {
		raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
		if err != nil {
			panic(err)
		}
		mu.Lock()
		defer mu.Unlock()
		// Who asked may have been killed: then nobody reads, which is all right.
		_, _ = out.Write(append(raw, '\n'))
		_ = out.Flush()
	}
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
			send(r.ID, map[string]any{"protocolVersion": r.Params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}},
				"serverInfo": map[string]any{"name": "ledger", "version": "1.0.0"}})
		case "tools/list":
			var list []map[string]any
			for _, name := range []string{"look", "put", "fire", "paint"} {
				list = append(list, map[string]any{"name": name, "description": "Writes down that it ran.", "inputSchema": map[string]any{
					"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}}})
			}
			send(r.ID, map[string]any{"tools": list})
		case "tools/call":
			calls.Go(func() {
				h := fnv.New32a()
				fmt.Fprint(h, r.Params.Meta.Key)
				w := written{Tool: r.Params.Name, Key: r.Params.Meta.Key}
				note(w)
				<-time.After(pace * time.Duration(1+h.Sum32()%8) / 8)
				w.End = true
				note(w)
				text := r.Params.Name + " did " + string(r.Params.Arguments)
				send(r.ID, map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}})
			})
		default:
			if len(r.ID) > 0 {
				send(r.ID, map[string]any{})
			}
		}
	}
	return in.Err()
}

// readLedger gives what was written of each call, by its key.
func readLedger(t *testing.T, path string) map[string][]written {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string][]written{}
	for line := range strings.Lines(string(b)) {
		var w written
		if err := json.Unmarshal([]byte(line), &w); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		calls[w.Key] = append(calls[w.Key], w)
	}
	return calls
}
