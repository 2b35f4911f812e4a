package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentd/bench/worker"
	"agentd/message"
)

// longEntries is how many entries the long session of the part context has.
const longEntries = 2000

// history is a session of n entries as a file: questions, calls, results and answers, the
// same as in the engine's BenchmarkAssembly.
func history(n int) ([]byte, error) {
	var out bytes.Buffer
	line := func(v any) error {
		raw, err := json.Marshal(v)
		out.Write(append(raw, '\n'))
		return err
	}
	const at = "2026-01-01T00:00:00.000Z"
	if err := line(map[string]any{"type": "session", "format": "agentd", "version": 1, "id": "ses_long", "timestamp": at}); err != nil {
		return nil, err
	}
	var parent *string
	for i := range n {
		var m message.Message
		switch id := fmt.Sprint("call_", i/4); i % 4 {
		case 0:
			m = message.User(fmt.Sprintf("Question %d: %s", i, strings.Repeat("what of it? ", 20)))
		case 1:
			m = message.Message{Role: message.RoleAssistant, StopReason: message.StopToolUse, Provider: "fake", Model: "m",
				Content: []message.Block{message.Text("I look."), message.Call(id, "echo", json.RawMessage(fmt.Sprintf(`{"path":"/src/file_%d.go","from":%d}`, i, i)))},
				Usage:   &message.Usage{Input: 1000, Output: 50, CacheRead: 900, TotalTokens: 1050}}
		case 2:
			m = message.ToolResult(id, "echo", false, message.Text(strings.Repeat("func line() { return \"x\" }\n", 40)))
		default:
			m = message.Message{Role: message.RoleAssistant, StopReason: message.StopEnd, Provider: "fake", Model: "m",
				Content: []message.Block{message.Text(strings.Repeat("This is what it means. ", 15))}, Usage: &message.Usage{Input: 1000, Output: 50, TotalTokens: 1050}}
		}
		id := fmt.Sprintf("%08d", i)
		if err := line(map[string]any{"type": "message", "id": id, "parentId": parent, "timestamp": at, "message": m}); err != nil {
			return nil, err
		}
		parent = &id
	}
	return out.Bytes(), nil
}

// turn makes one run in a session over HTTP and says how long it took, until its last
// event was read.
func turn(ctx context.Context, c *http.Client, base, session string) (float64, error) {
	began := time.Now()
	var r struct {
		ID string `json:"run_id"`
	}
	if err := post(ctx, c, base+"/runs", map[string]any{"profile": "thoughtful", "input": worker.User, "session_id": session}, &r); err != nil {
		return 0, err
	}
	last, _, err := watch(ctx, c, base, r.ID, nil)
	if err == nil && last != "run_completed" {
		err = fmt.Errorf("run %s ended with %s", r.ID, last)
	}
	return ms(time.Since(began)), err
}

// imported makes a session of a file.
func imported(ctx context.Context, c *http.Client, base string, n int) (string, error) {
	file, err := history(n)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/sessions/import", bytes.NewReader(file))
	if err != nil {
		return "", err
	}
	res, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var s struct {
		ID string `json:"session_id"`
	}
	if err := json.NewDecoder(res.Body).Decode(&s); err != nil || s.ID == "" {
		return "", fmt.Errorf("import: %s, %v", res.Status, err)
	}
	return s.ID, nil
}

// context measures turns of a long session in a server that was just started, beside
// those of a short one: what they take longer is the long one's context. The scripted
// model answers inside the process, so no provider's form of the request is in it.
func (b *bench) context(ctx context.Context) error {
	configs, err := b.configs("", "thoughtful")
	if err != nil {
		return err
	}
	// What the session says is sent whole.
	f, err := os.OpenFile(filepath.Join(configs, "agents", "thoughtful.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err = f.WriteString("max_context_tokens: 0\ncompaction: {enabled: false}\n"); err == nil {
		err = f.Close()
	}
	if err != nil {
		return err
	}
	data, err := b.folder("data")
	if err != nil {
		return err
	}
	c := client()
	s, err := b.server(ctx, configs, data)
	if err != nil {
		return err
	}
	var long, short, other string
	for _, of := range []struct {
		id *string
		n  int
	}{{&long, longEntries}, {&short, 4}, {&other, 4}} {
		if *of.id, err = imported(ctx, c, s.url, of.n); err != nil {
			break
		}
	}
	if e := s.stop(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	var first, next, plain []float64
	for range 2*b.rounds + 1 {
		s, err := b.server(ctx, configs, data)
		if err != nil {
			return err
		}
		var t [4]float64
		for i, session := range []string{other, short, long, long} { // the first one is the process's first run
			if t[i], err = turn(ctx, c, s.url, session); err != nil {
				break
			}
		}
		if e := s.stop(); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
		plain, first, next = append(plain, t[1]), append(first, t[2]-t[1]), append(next, t[3]-t[1])
	}
	b.note("`agentd serve`, a turn of a short session, from the request to the last event", "%s", spread(plain, "ms"))
	b.note(fmt.Sprintf("what a session of %d entries adds to its first turn after a start", longEntries), "%s", spread(first, "ms"))
	b.note(fmt.Sprintf("what a session of %d entries adds to the next turn", longEntries), "%s", spread(next, "ms"))
	b.atMost("context of a long session, first turn after a start", median(first), 5, "ms")
	b.atMost("context of a long session, next turn", median(next), 5, "ms")
	return nil
}
