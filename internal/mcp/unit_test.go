package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentd/fault"
	"agentd/message"
	"agentd/tool"
)

func configured(t *testing.T, cfg ServerConfig) *server {
	t.Helper()
	cfg.Transport, cfg.Command = "stdio", "x"
	m, err := New(map[string]ServerConfig{"srv": cfg}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m.servers["srv"]
}

func TestSpecs(t *testing.T) {
	yes := true
	readOnly := &sdk.ToolAnnotations{ReadOnlyHint: true}
	tests := []struct {
		name       string
		cfg        ServerConfig
		tool       sdk.Tool
		effect     tool.Effect
		classes    []string
		approval   string
		conditions []string
	}{
		{name: "nothing is known", tool: sdk.Tool{Name: "note"}, effect: tool.Once, classes: []string{"write"}},
		{name: "hints are not trusted", tool: sdk.Tool{Name: "note", Annotations: readOnly}, effect: tool.Once, classes: []string{"write"}},
		{name: "hints are trusted", cfg: ServerConfig{TrustHints: true}, tool: sdk.Tool{Name: "note", Annotations: readOnly}, effect: tool.Read},
		{name: "idempotent hint", cfg: ServerConfig{TrustHints: true}, tool: sdk.Tool{Name: "note", Annotations: &sdk.ToolAnnotations{IdempotentHint: true}}, effect: tool.Idempotent, classes: []string{"write"}},
		{name: "the configuration wins over hints", cfg: ServerConfig{TrustHints: true, Effects: map[string]tool.Effect{"note": tool.Once}}, tool: sdk.Tool{Name: "note", Annotations: readOnly}, effect: tool.Once, classes: []string{"write"}},
		{name: "the exact name wins over a pattern, the longer over the shorter", cfg: ServerConfig{Effects: map[string]tool.Effect{"*": tool.Once, "note*": tool.Idempotent, "note_x": tool.Read}}, tool: sdk.Tool{Name: "note_x"}, effect: tool.Read},
		{name: "the longer pattern", cfg: ServerConfig{Effects: map[string]tool.Effect{"*": tool.Once, "note*": tool.Idempotent}}, tool: sdk.Tool{Name: "note_y"}, effect: tool.Idempotent, classes: []string{"write"}},
		{name: "destructive by hint", cfg: ServerConfig{Effects: map[string]tool.Effect{"*": tool.Read}}, tool: sdk.Tool{Name: "x", Annotations: &sdk.ToolAnnotations{DestructiveHint: &yes, OpenWorldHint: &yes}}, effect: tool.Read, classes: []string{"dangerous", "delete", "network"}},
		{name: "delete by name", tool: sdk.Tool{Name: "deleteFile"}, effect: tool.Once, classes: []string{"dangerous", "delete", "write"}},
		{name: "shell by name", tool: sdk.Tool{Name: "run-shell.command"}, effect: tool.Once, classes: []string{"dangerous", "shell", "write"}},
		{name: "always", cfg: ServerConfig{RequiresApproval: Approval{Always: []Rule{{Tool: "no*"}}}}, tool: sdk.Tool{Name: "note"}, effect: tool.Once, classes: []string{"write"}, approval: "always"},
		{name: "always for some arguments", cfg: ServerConfig{RequiresApproval: Approval{Always: []Rule{{Tool: "note", Args: "prod"}}}}, tool: sdk.Tool{Name: "note"}, effect: tool.Once, classes: []string{"write"}, approval: "conditional", conditions: []string{"prod"}},
		{name: "class", cfg: ServerConfig{RequiresApproval: Approval{Conditional: []Condition{{Class: "write"}}}}, tool: sdk.Tool{Name: "note"}, effect: tool.Once, classes: []string{"write"}, approval: "always"},
		{name: "class of another tool", cfg: ServerConfig{RequiresApproval: Approval{Conditional: []Condition{{Class: "delete"}}}}, tool: sdk.Tool{Name: "note"}, effect: tool.Once, classes: []string{"write"}},
		{name: "expression", cfg: ServerConfig{RequiresApproval: Approval{Conditional: []Condition{{Args: `"force":true`}}}}, tool: sdk.Tool{Name: "note"}, effect: tool.Once, classes: []string{"write"}, approval: "conditional", conditions: []string{`"force":true`}},
		{name: "declared class with arguments", cfg: ServerConfig{RequiresApproval: Approval{Conditional: []Condition{{Tool: "note", Class: "network", Args: "http"}}}}, tool: sdk.Tool{Name: "note"}, effect: tool.Once, classes: []string{"network", "write"}, approval: "conditional", conditions: []string{"http"}},
		{name: "declared class counts for a later rule", cfg: ServerConfig{RequiresApproval: Approval{Conditional: []Condition{{Class: "shell"}, {Tool: "note", Class: "shell", Args: "rm"}}}}, tool: sdk.Tool{Name: "note"}, effect: tool.Once, classes: []string{"shell", "write"}, approval: "always"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := configured(t, tt.cfg)
			spec := s.spec(&tt.tool)
			if spec.Effect != tt.effect || !slices.Equal(spec.Classes, tt.classes) || spec.Approval != tt.approval || !slices.Equal(spec.Conditions, tt.conditions) {
				t.Errorf("got %s %v %q %q", spec.Effect, spec.Classes, spec.Approval, spec.Conditions)
			}
		})
	}
}

func TestSchemasStayWholeAndAreObjects(t *testing.T) {
	var whole any
	text := `{"$schema":"https://json-schema.org/draft/2020-12/schema","allOf":[{"required":["a"]}],"properties":{"a":{"type":"string"}},"title":"T","type":"object","x-y":1}`
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		in   any
		want string
	}{
		{nil, `{"type":"object"}`},
		{true, `{"type":"object"}`},
		{map[string]any{}, `{"type":"object"}`},
		{map[string]any{"type": "string"}, `{"type":"object"}`},
		{map[string]any{"oneOf": []any{}}, `{"oneOf":[],"type":"object"}`},
		{whole, text},
	}
	for _, tt := range tests {
		if got := string(objectSchema(tt.in)); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func TestNames(t *testing.T) {
	a, b := configured(t, ServerConfig{}), configured(t, ServerConfig{})
	a.name, b.name = "alpha", "beta"
	offer := func(s *server, names ...string) (out []remoteTool) {
		for _, n := range names {
			out = append(out, remoteTool{server: s, name: n, spec: tool.Spec{Name: n}})
		}
		return out
	}
	long := strings.Repeat("n", 70)
	tests := []struct {
		name     string
		tools    []remoteTool
		reserved []string
		want     []string
	}{
		{"alone", offer(a, "read", "write"), nil, []string{"read", "write"}},
		{"two servers", append(offer(a, "read", "x"), offer(b, "read", "y")...), nil, []string{"alpha_read", "beta_read", "x", "y"}},
		{"reserved", offer(a, "glob"), []string{"glob"}, []string{"alpha_glob"}},
		{"the longer name is taken", append(offer(a, "read", "beta_read"), offer(b, "read")...), nil, []string{"alpha_read", "beta_read", hashed("beta_read", "beta\x00read")}},
		{"characters", offer(a, "a.b", "a b", "a_b"), nil, []string{"a_b", hashed("a_b", "a b"), hashed("a_b", "a.b")}},
		{"long", offer(a, long), nil, []string{hashed(long, long)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			tools := expose(tt.tools, tt.reserved)
			for _, x := range tools {
				got = append(got, x.Spec().Name)
			}
			slices.Sort(tt.want)
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if _, err := tool.NewSet(tools...); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAccess(t *testing.T) {
	tests := []struct {
		allow, deny []Rule
		tool, args  string
		visible     bool
		refused     string
	}{
		{nil, nil, "a", `{}`, true, ""},
		{[]Rule{{Tool: "read_*"}}, nil, "read_file", `{}`, true, ""},
		{[]Rule{{Tool: "read_*"}}, nil, "write_file", `{}`, false, "allowlist"},
		{[]Rule{{Tool: "read_*"}}, []Rule{{Tool: "read_secret"}}, "read_secret", `{}`, false, "denylist"},
		{[]Rule{{Tool: "q", Args: `"db":"test"`}}, nil, "q", `{"db":"test"}`, true, ""},
		{[]Rule{{Tool: "q", Args: `"db":"test"`}}, nil, "q", `{"db":"prod"}`, true, "allowlist"},
		{[]Rule{{Tool: "q", Args: `x`}, {Tool: "q"}}, nil, "q", `{"db":"prod"}`, true, ""},
		{nil, []Rule{{Tool: "*", Args: `rm -rf`}}, "sh", `{"c":"rm -rf /"}`, true, "denylist"},
		{nil, []Rule{{Tool: "pay", Args: `"n":[0-9]{4}`}}, "pay", `{"n":9e3}`, true, "denylist"},
		{[]Rule{{Tool: "pay", Args: `"n":[0-9]{1,3}[^0-9]`}}, nil, "pay", `{"n":999}`, true, ""},
		{[]Rule{{Tool: "pay", Args: `"n":[0-9]{1,3}[^0-9]`}}, nil, "pay", `{"n":1e9}`, true, "allowlist"},
		{nil, []Rule{{Tool: "r?ad"}}, "read", `{}`, false, "denylist"},
		{nil, []Rule{{Tool: "r.ad"}}, "read", `{}`, true, ""},
	}
	for i, tt := range tests {
		s := configured(t, ServerConfig{Allowlist: tt.allow, Denylist: tt.deny})
		if got := s.access.visible(tt.tool); got != tt.visible {
			t.Errorf("%d: visible %v", i, got)
		}
		got := s.access.refusal(tt.tool, []byte(tt.args))
		if (got == "") != (tt.refused == "") || !strings.Contains(got, tt.refused) {
			t.Errorf("%d: refused with %q, want %q", i, got, tt.refused)
		}
	}
}

// What a tool's own redaction hides is hidden by whatever name the model knows the
// tool.
func TestRedactionByEveryName(t *testing.T) {
	long := strings.Repeat("very_", 20) + "long"
	hide := map[string]ToolConfig{}
	owns := []string{"plain", "with space", long, long + "er", "same", "other"}
	for _, own := range owns {
		hide[own] = ToolConfig{Redaction: []string{"secret"}}
	}
	x := &server{name: "x", cfg: ServerConfig{Tools: hide}}
	y := &server{name: "y", cfg: ServerConfig{}}
	var all []remoteTool
	for _, own := range owns {
		all = append(all, remoteTool{server: x, name: own})
	}
	// x_same is taken, and so is other.
	all = append(all, remoteTool{server: y, name: "same"}, remoteTool{server: y, name: "x_same"})
	names := map[string]bool{}
	for _, tl := range expose(all, []string{"other"}) {
		name := tl.Spec().Name
		names[name] = true
		hidden := string(x.redact(name, []byte(`{"secret":1}`))) == `{"secret":"`+mask+`"}`
		// Of another server's x_same too much is hidden, which is the safe mistake.
		if mine := tl.(*mcpTool).server == x; mine && !hidden || name == "y_same" && hidden {
			t.Errorf("%s: hidden %v", name, hidden)
		}
	}
	if len(names) != len(all) || names["same"] || !names["x_other"] {
		t.Errorf("names: %v", names)
	}
}

func TestRedaction(t *testing.T) {
	r, err := newRedactor([]string{"password", "*_KEY", "/Bearer [a-z0-9]+/"})
	if err != nil {
		t.Fatal(err)
	}
	tests := [][2]string{
		{`{"a":1}`, `{"a":1}`},
		{`{"PassWord":{"deep":1},"list":[{"api_key":"k"}],"t":"Bearer abc1 x"}`, `{"PassWord":"[redacted]","list":[{"api_key":"[redacted]"}],"t":"[redacted] x"}`},
		{`"Bearer abc"`, `"[redacted]"`},
		{`"{\"password\":\"p\"}"`, `"{\"password\":\"[redacted]\"}"`},
		{`12345678901234567890`, `12345678901234567890`},
		{`{"password":`, `"[redacted]"`},
		{``, ``},
	}
	for _, tt := range tests {
		if got := string(r.json(json.RawMessage(tt[0]))); got != tt[1] {
			t.Errorf("%s: got %s, want %s", tt[0], got, tt[1])
		}
	}
}

func TestValidate(t *testing.T) {
	minus := -1
	tests := []struct {
		name  string
		cfg   ServerConfig
		field string
	}{
		{"no transport", ServerConfig{}, "transport"},
		{"no command", ServerConfig{Transport: "stdio"}, "command"},
		{"stdio with url", ServerConfig{Transport: "stdio", Command: "x", URL: "http://h"}, "url"},
		{"no url", ServerConfig{Transport: "http"}, "url"},
		{"no address", ServerConfig{Transport: "http", URL: "ftp://h"}, "url"},
		{"credentials in the url", ServerConfig{Transport: "http", URL: "http://u:p@h"}, "url"},
		{"two addresses", ServerConfig{Transport: "http", URL: "http://h", Endpoint: "http://i"}, "endpoint"},
		{"http with command", ServerConfig{Transport: "http", URL: "http://h", Command: "x"}, "command"},
		{"header of the protocol", ServerConfig{Transport: "http", URL: "http://h", Headers: map[string]string{"mcp-session-id": "x"}}, "headers.mcp-session-id"},
		{"name of a variable", ServerConfig{Transport: "stdio", Command: "x", Env: map[string]string{"A=B": ""}}, "env"},
		{"protocol", ServerConfig{Transport: "stdio", Command: "x", Protocol: "2024"}, "protocol"},
		{"retries", ServerConfig{Transport: "stdio", Command: "x", Retries: Retries{Max: &minus}}, "timeouts"},
		{"effect", ServerConfig{Transport: "stdio", Command: "x", Effects: map[string]tool.Effect{"t": "maybe"}}, "effects.t"},
		{"allow", ServerConfig{Transport: "stdio", Command: "x", Allowlist: []Rule{{Tool: "a", Args: "("}}}, "allowlist"},
		{"deny", ServerConfig{Transport: "stdio", Command: "x", Denylist: []Rule{{}}}, "denylist"},
		{"approval", ServerConfig{Transport: "stdio", Command: "x", RequiresApproval: Approval{Conditional: []Condition{{Class: "spooky"}}}}, "requires_approval"},
		{"redaction", ServerConfig{Transport: "stdio", Command: "x", Redaction: []string{"/(/"}}, "redaction"},
		{"redaction of a tool", ServerConfig{Transport: "stdio", Command: "x", Tools: map[string]ToolConfig{"t": {Redaction: []string{""}}}}, "tools.t.redaction"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.cfg.Validate()
			var f *fault.Error
			if !errors.As(err, &f) || f.Field != tt.field || f.Hint == "" || f.Kind != fault.Invalid {
				t.Errorf("got %v (%+v), want field %s", err, f, tt.field)
			}
			if _, err := New(map[string]ServerConfig{"bad": tt.cfg}, nil); err == nil || !strings.Contains(err.Error(), "servers.bad") {
				t.Errorf("New: %v", err)
			}
		})
	}
	cfg := ServerConfig{Transport: "stdio", Command: "x", Env: map[string]string{"K": "secret"}, Args: []string{"--token=secret"}, Headers: map[string]string{"A": "secret"}}
	for _, text := range []string{fmt.Sprint(cfg), fmt.Sprintf("%+v %#v", cfg, cfg), slog.AnyValue(cfg).Resolve().String()} {
		if strings.Contains(text, "secret") {
			t.Errorf("a secret is printed: %s", text)
		}
	}
}

func TestShortFormsInYAML(t *testing.T) {
	// A decoder for the two forms, as the configuration's has it.
	from := func(v any) func(any) error {
		return func(into any) error {
			b, err := json.Marshal(v)
			if err != nil {
				return err
			}
			return json.Unmarshal(b, into)
		}
	}
	var r Rule
	if err := r.UnmarshalYAML(from("read_*")); err != nil || r != (Rule{Tool: "read_*"}) {
		t.Errorf("%+v, %v", r, err)
	}
	if err := r.UnmarshalYAML(from(map[string]string{"Tool": "q", "Args": "x"})); err != nil || r != (Rule{Tool: "q", Args: "x"}) {
		t.Errorf("%+v, %v", r, err)
	}
	if err := r.UnmarshalYAML(from(5)); err == nil {
		t.Error("a number is accepted")
	}
	for in, want := range map[string]Condition{"writes": {Class: "write"}, "shell": {Class: "shell"}, "rm -rf": {Args: "rm -rf"}} {
		var c Condition
		if err := c.UnmarshalYAML(from(in)); err != nil || c != want {
			t.Errorf("%s: %+v, %v", in, c, err)
		}
	}
}

func TestConvert(t *testing.T) {
	r, err := convert(&sdk.CallToolResult{IsError: true, StructuredContent: map[string]any{"a": "<"}, Content: []sdk.Content{
		&sdk.TextContent{Text: "bad \xff byte"},
		&sdk.ImageContent{Data: []byte("png"), MIMEType: "image/png"},
		&sdk.ImageContent{Data: []byte("svg"), MIMEType: "image/svg+xml"},
		&sdk.AudioContent{Data: []byte("abc"), MIMEType: "audio/wav"},
		&sdk.ResourceLink{URI: "file:///x", Name: "x", Description: "the x"},
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///y", Text: "why"}},
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///z", Blob: []byte("png"), MIMEType: "image/png"}},
		&sdk.EmbeddedResource{},
	}})
	want := []message.Block{
		message.Text("bad \uFFFD byte"), message.Image("cG5n", "image/png"),
		message.Text("[image, image/svg+xml, 3 bytes: it can not be shown here]"),
		message.Text("[audio, audio/wav, 3 bytes: it can not be shown here]"),
		message.Text("[resource file:///x] x the x"), message.Text("[resource file:///y]\nwhy"), message.Image("cG5n", "image/png"), message.Text("[empty resource]"),
	}
	if err != nil || !r.IsError || string(r.Details) != `{"a":"<"}` || !reflect.DeepEqual(r.Content, want) {
		t.Errorf("%+v, %v", r, err)
	}
	for _, empty := range []*sdk.CallToolResult{{}, {IsError: true}, {StructuredContent: 7}} {
		if r, err := convert(empty); err != nil || len(r.Content) != 1 || r.Content[0].Text == "" {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

func TestSieveThinsOutFloods(t *testing.T) {
	now := time.Unix(0, 0)
	s := newSieve("srv", slog.New(slog.DiscardHandler), func() time.Time { return now })
	through := func(n int, method string) (got int) {
		for range n {
			if _, ok := s.admit([]byte(`{"jsonrpc":"2.0","method":"` + method + `"}`)); ok {
				got++
			}
		}
		return got
	}
	if got := through(5000, "notifications/progress"); got != noticeBurst {
		t.Errorf("%d of a burst came through", got)
	}
	if got := through(1, "notifications/tools/list_changed"); got != 1 {
		t.Error("another kind was held up")
	}
	now = now.Add(time.Second)
	if got := through(5000, "notifications/progress"); got != noticeRate {
		t.Errorf("%d came through after a second", got)
	}
	for _, msg := range []string{`{"id":1,"result":{}}`, `{"id":"a","error":{"code":1}}`} {
		if _, ok := s.admit([]byte(msg)); !ok {
			t.Errorf("%s was dropped", msg)
		}
	}
	for _, msg := range []string{``, `x`, `{}`, `[]`, `{"id":1}`, `{"id":null,"result":{}}`, `{"result":{}}`} {
		if _, ok := s.admit([]byte(msg)); ok {
			t.Errorf("%s came through", msg)
		}
	}
}

func TestIDOfLarge(t *testing.T) {
	pad := strings.Repeat("x", 100)
	tests := []struct{ head, tail, want string }{
		{`{"jsonrpc":"2.0","id":7,"result":{"a":"` + pad, pad + `"}}`, "7"},
		{`{"id":"q1","jsonrpc":"2.0","result":"` + pad, pad + `"}`, `"q1"`},
		{`{"result":{"id":3,"x":"` + pad, pad + `"},"jsonrpc":"2.0","id":9}`, "9"},
		{`{"result":{"x":"` + pad, pad + `"},"id":9,"jsonrpc":"2.0"}` + "\n", "9"},
		{`{"result":{"x":"` + pad, pad + `","id":9}}`, ""},
		{`{"jsonrpc":"2.0","method":"m","params":"` + pad, pad + `"}`, ""},
	}
	for _, tt := range tests {
		id, _ := idOfLarge([]byte(tt.head), []byte(tt.tail))
		if string(id) != tt.want {
			t.Errorf("%s…%s: got %s, want %s", tt.head[:30], tt.tail[len(tt.tail)-20:], id, tt.want)
		}
	}
}

func FuzzReadLine(f *testing.F) {
	f.Add([]byte("a\nbc\n"), 3)
	f.Add([]byte(strings.Repeat("x", 5000)+"\ny"), 100)
	f.Add([]byte("\n\n"), 0)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		if limit < 0 || limit > 1<<16 {
			return
		}
		r := bufio.NewReaderSize(bytes.NewReader(data), 16)
		read := 0
		for {
			line, tail, cut, err := readLine(r, limit)
			if !cut {
				if len(line) > limit {
					t.Fatalf("a line of %d bytes, limit %d", len(line), limit)
				}
				if !bytes.HasPrefix(data[read:], line) {
					t.Fatalf("line %q is not what was sent", line)
				}
				read += len(line)
			} else {
				if len(line) > edge || len(tail) > 2*edge {
					t.Fatalf("%d and %d bytes were kept", len(line), len(tail))
				}
				if end := bytes.IndexByte(data[read:], '\n'); end >= 0 {
					read += end + 1
				} else {
					read = len(data)
				}
				if !bytes.HasSuffix(data[:read], tail) {
					t.Fatalf("tail %q is not the end", tail)
				}
			}
			if err != nil {
				break
			}
		}
		if read != len(data) {
			t.Fatalf("%d of %d bytes were read", read, len(data))
		}
	})
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"))
	f.Add([]byte("id: 1\nretry: 5\nevent: message\ndata: {\"id\":1,\ndata: \"result\":{}}\n\nrest"))
	f.Add([]byte(": comment\r\nnonsense\r\n\r\ndata\n\n"))
	f.Add([]byte("data: " + strings.Repeat("x", 600) + "\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		log := slog.New(slog.DiscardHandler)
		g := &guard{limit: 512, log: log, server: "srv", sieve: newSieve("srv", log, time.Now)}
		out, err := io.ReadAll(g.events(io.NopCloser(bytes.NewReader(data)), json.RawMessage("1")))
		if err != nil {
			t.Fatal(err)
		}
		for event := range strings.SplitSeq(strings.TrimSuffix(string(out), "\n\n"), "\n\n") {
			var payload []string
			for line := range strings.SplitSeq(event, "\n") {
				field, value, ok := strings.Cut(line, ": ")
				switch {
				case line == "":
				case !ok || field != "id" && field != "retry" && field != "data":
					t.Fatalf("line %q", line)
				case field == "data":
					payload = append(payload, value)
				}
			}
			if len(payload) > 0 {
				if _, ok := readEnvelope([]byte(strings.Join(payload, "\n"))); !ok {
					t.Fatalf("data %q", payload)
				}
			}
		}
	})
}
