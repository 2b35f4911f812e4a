//go:build unix

package peers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentd/client"
	"agentd/event"
)

// ledgerVar makes the test's binary an MCP server whose calls are written to the
// file and answered only when the file beside it, with ".answer", is there.
const ledgerVar = "AGENTD_PEERS_LEDGER"

func TestMain(m *testing.M) {
	if path := os.Getenv(ledgerVar); path != "" {
		serve(path)
		return
	}
	os.Exit(m.Run())
}

func serve(path string) {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var r struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name string `json:"name"`
				Meta struct {
					Key string `json:"agentd/idempotencyKey"`
				} `json:"_meta"`
			} `json:"params"`
		}
		if json.Unmarshal(in.Bytes(), &r) != nil || len(r.ID) == 0 {
			continue
		}
		result := `{}`
		switch r.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"ledger","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"pay","inputSchema":{"type":"object"}},{"name":"put","inputSchema":{"type":"object"}},{"name":"look","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				_, err = fmt.Fprintln(f, r.Params.Name, r.Params.Meta.Key)
			}
			if err == nil {
				err = f.Close()
			}
			if err != nil {
				panic(err)
			}
			if _, err := os.Stat(path + ".answer"); err != nil {
				continue // it has happened, and nobody will hear of it
			}
			result = `{"content":[{"type":"text","text":"done"}]}`
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", r.ID, result)
	}
}

// binary is the real one.
type binary struct {
	t    *testing.T
	path string
	dir  string
	cmd  *exec.Cmd
	url  string
}

func (b *binary) start() *client.Client {
	b.t.Helper()
	b.cmd = exec.Command(b.path, "serve", "--addr", "127.0.0.1:0", "--data", filepath.Join(b.dir, "data"), "--configs", filepath.Join(b.dir, "configs"))
	b.cmd.Dir = b.dir
	stderr, err := b.cmd.StderrPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	listens := regexp.MustCompile(`listens on (http://\S+)`)
	up := make(chan string, 1)
	go func() {
		for in := bufio.NewScanner(stderr); in.Scan(); {
			if m := listens.FindStringSubmatch(in.Text()); m != nil {
				up <- m[1]
			}
		}
		close(up)
	}()
	select {
	case b.url = <-up:
	case <-time.After(patience):
	}
	c, err := client.New(b.url, nil)
	if err != nil {
		b.t.Fatalf("agentd does not start: %v", err)
	}
	return c
}

// kill is kill -9.
func (b *binary) kill() {
	b.t.Helper()
	if err := b.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		b.t.Fatal(err)
	}
	_ = b.cmd.Wait() // it was killed
}

// 1. A run that is killed goes on by itself; what is safe to repeat is repeated under
// the same key, and what is not only on a person's word.
func TestPeers01KillNineRepeatsNothingUnsafe(t *testing.T) {
	ctx := deadline(t)
	b := &binary{t: t, dir: t.TempDir(), path: filepath.Join(t.TempDir(), "agentd")}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", b.path, "agentd/cmd/agentd").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ledger := filepath.Join(b.dir, "ledger")
	write(t, filepath.Join(b.dir, "configs/agents/p.yaml"), "profile_name: p\nprimary_model: {provider: script, model: m, script: p.yaml}\ntools: {mcp_servers: [s]}\napproval_mode: never\n")
	write(t, filepath.Join(b.dir, "configs/p.yaml"), "turns:\n- tool_calls: [{name: pay, arguments: {}}, {name: put, arguments: {}}, {name: look, arguments: {}}]\n- text: All paid.\n")
	write(t, filepath.Join(b.dir, "configs/mcp/servers.yaml"), fmt.Sprintf("servers:\n  s:\n    transport: stdio\n    command: %q\n    env: {%s: %q}\n    effects: {look: read, put: idempotent, pay: once}\n", self, ledgerVar, ledger))
	calls := func() map[string]int {
		n := map[string]int{}
		raw, err := os.ReadFile(ledger)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			n[strings.TrimSpace(line)]++
		}
		return n
	}
	c := b.start()
	var runs []*client.Run
	for _, mode := range []string{"interactive", "autonomous"} {
		r, err := c.Start(ctx, client.StartRequest{Profile: "p", Mode: mode, Input: text("pay")})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
	}
	for len(calls()) < 6 {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("calls %v", calls())
		}
	}
	b.kill()
	write(t, ledger+".answer", "")
	c = b.start()
	defer b.kill()
	asked := until(ctx, t, c, runs[0].ID, event.CheckpointRequired).Data.(*event.Checkpoint)
	if asked.Kind != "uncertain" || asked.ToolCall.Name != "pay" {
		t.Errorf("people are asked %+v", asked)
	}
	if _, err := c.Answer(ctx, client.AnswerRequest{Interrupt: asked.InterruptID, Decision: "done"}); err != nil {
		t.Error(err)
	}
	for _, r := range runs {
		if end := until(ctx, t, c, r.ID, event.RunCompleted).Data.(*event.Ended); end.Output != "All paid." {
			t.Errorf("%+v", end)
		}
	}
	n := calls()
	for call, times := range n {
		want := 2 // the same key both times
		if strings.HasPrefix(call, "pay ") {
			want = 1
		}
		if times != want {
			t.Errorf("%q happened %d times, want %d", call, times, want)
		}
	}
	if len(n) != 6 {
		t.Errorf("calls %v", n)
	}
}
