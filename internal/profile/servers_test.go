package profile

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestServers(t *testing.T) {
	c, problems := load(map[string]string{"agents/a.yaml": minimal, "mcp/servers.yaml": `
servers:
  files:
    transport: stdio
    command: npx
    args: [-y, "${PKG:-server}"]
    env: {TOKEN: "${TOKEN}"}
    timeouts: {connect: 5s, call: 1m}
    retries: {max: 0, backoff: 100ms}
    concurrency_limit: 2
    allowlist: [read_*, {tool: write, args: "^x"}]
    denylist: ["rm"]
    requires_approval: {always: [write], conditional: [delete, "DROP TABLE", {tool: sh, class: shell}]}
    redaction: [password]
    effects: {read_*: read}
    trust_hints: true
    capabilities: [files]
    tools: {slow: {timeout: 9m}}
  web: {transport: http, url: "https://example.com/mcp", headers: {Authorization: "Bearer ${TOKEN}"}, protocol: auto}
`}, &Options{Env: env("TOKEN", "hush")})
	if len(problems) > 0 {
		t.Fatal(lines(problems))
	}
	s := c.Servers["files"]
	if got := fmt.Sprint(s.Args, s.Timeouts, *s.Retries.Max, s.Retries.Backoff, s.Allowlist, s.RequiresApproval, s.Effects, s.Tools["slow"].Timeout); got !=
		"[-y server] {5s 1m0s} 0 100ms [{read_* } {write ^x}] {[{write }] [{  delete} { DROP TABLE } {sh  shell}]} map[read_*:read] 9m0s" {
		t.Errorf("%s", got)
	}
	if s.Env["TOKEN"] != "hush" || c.Servers["web"].Headers["Authorization"] != "Bearer hush" {
		t.Error("the environment was not filled in")
	}
	if shown := fmt.Sprintf("%v %+v %#v %v", c, c, c, c.Servers["files"]); strings.Contains(shown, "hush") {
		t.Error("a secret is shown")
	}
}

func TestServerProblems(t *testing.T) {
	_, problems := load(map[string]string{"agents/a.yaml": minimal, "mcp/servers.yaml": `
servers:
  a: {transport: stdio}
  b: {transport: carrier-pigeon, url: "http://x"}
  c: {transport: http, url: nowhere, timeouts: {call: 5}}
  d: {transport: stdio, command: x, comand: y}
  e: {transport: stdio, command: x, allowlist: [{tool: t, args: "("}, 3, "${NOPE}"]}
  f: {transport: stdio, command: x, requires_approval: {conditional: ["("]}, effects: {t: maybe}}
  "g h": {transport: stdio, command: x}
  i:
  a: {transport: stdio, command: x}
  k: {transport: stdio, command: x, redaction: ["/(${S}/"]}
  l: {transport: http, url: "http://x", command: y}
extra: 1
`}, &Options{Env: env("S", "hush")})
	want := `
c/mcp/servers.yaml:3:3: error: servers.a.command: a stdio server needs a command (name the program to start)
c/mcp/servers.yaml:4:18: error: servers.b.transport: does not know the value "carrier-pigeon" (one of: stdio, http)
c/mcp/servers.yaml:5:29: error: servers.c.url: is not an address (write http://host/path or https://host/path)
c/mcp/servers.yaml:5:55: error: servers.c.timeouts.call: a duration without its unit (write it with its unit, such as 500ms, 10s or 2m30s)
c/mcp/servers.yaml:6:37: error: servers.d.comand: unknown key (did you mean command?)
c/mcp/servers.yaml:7:65: error: servers.e.allowlist[0].args: is not a regular expression (see https://golang.org/s/re2syntax)
c/mcp/servers.yaml:7:71: error: servers.e.allowlist[1]: must be a mapping, not an integer (write a mapping)
c/mcp/servers.yaml:7:74: error: servers.e.allowlist[2]: the environment variable NOPE is not set (set it, or give a default: ${NOPE:-default})
c/mcp/servers.yaml:8:37: error: servers.f.requires_approval: "(" is not a regular expression (a class (write, delete, network, shell, dangerous) or a regular expression)
c/mcp/servers.yaml:8:91: error: servers.f.effects.t: does not know the value "maybe" (one of: read, idempotent, once)
c/mcp/servers.yaml:9:3: error: servers.g h: is not a name (use 1 to 32 letters, digits, _ or -, beginning with a letter or digit)
c/mcp/servers.yaml:10:3: error: servers.i: has no value (give a transport and a command or url)
c/mcp/servers.yaml:11:3: error: servers.a: given twice; first on line 3 (keep one)
c/mcp/servers.yaml:12:37: error: servers.k.redaction: is not right, with the text from the environment (a field's name, or /regular expression/)
c/mcp/servers.yaml:13:41: error: servers.l.command: an http server has no command (remove command and env, or set transport: stdio)
c/mcp/servers.yaml:14:1: error: extra: unknown key (the one key here is servers)
`
	if got := lines(problems); got != strings.TrimPrefix(want, "\n") {
		t.Errorf("got\n%swant%s", got, want)
	}
}

func TestServersFileWithoutServers(t *testing.T) {
	for text, want := range map[string]string{
		"servers:\n  # none yet\n": "",
		"servers: {}":              "",
		"{}":                       "c/mcp/servers.yaml:1:1: error: servers: is missing (add it: servers: {})\n",
		"servers: [a]":             "c/mcp/servers.yaml:1:1: error: servers: must be a mapping, not a list (write a mapping)\n",
		"[]":                       "c/mcp/servers.yaml:1:1: error: must be a mapping, not a list (write a mapping)\n",
	} {
		_, problems := load(map[string]string{"agents/a.yaml": minimal, "mcp/servers.yaml": text}, nil)
		if got := lines(problems); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// Both shapes of mcp.json, as other programs write them: tabs and all.
func TestServersInJSON(t *testing.T) {
	c, problems := load(map[string]string{
		"agents/a.yaml": minimal,
		"mcp/mcp.json": "{\n\t\"servers\": {\n\t\t\"database\": {\"transport\": \"stdio\", \"command\": \"npx\", \"args\": [\"@my-org/db\"], \"env\": {\"DB\": \"${DB}\"}},\n" +
			"\t\t\"api\": {\"transport\": \"http\", \"url\": \"http://localhost:3001/mcp\"}\n\t}\n}\n",
		"mcp.json": `{"mcpServers": {
  "files": {"command": "npx", "args": ["-y", "x"]},
  "web": {"type": "streamable-http", "url": "https://example.com/mcp"},
  "plain": {"url": "https://example.com/mcp"},
  "off": {"command": "x", "disabled": true, "whatever": 1}
}}`}, &Options{Env: env("DB", "postgres://")})
	if len(problems) > 0 {
		t.Fatal(lines(problems))
	}
	var got []string
	for _, name := range []string{"database", "api", "files", "web", "plain", "off"} {
		s := c.Servers[name]
		got = append(got, fmt.Sprint(name, " ", s.Transport, " ", s.Command, s.URL, " ", s.Args))
	}
	want := "database stdio npx [@my-org/db]|api http http://localhost:3001/mcp []|files stdio npx [-y x]|web http https://example.com/mcp []|plain http https://example.com/mcp []|off   []"
	if strings.Join(got, "|") != want {
		t.Errorf("got %s", strings.Join(got, "|"))
	}
	if c.Servers["database"].Timeouts.Call != time.Duration(0) {
		t.Error("a timeout from nowhere")
	}
}

func TestServerNamedTwice(t *testing.T) {
	_, problems := load(map[string]string{"agents/a.yaml": minimal,
		"mcp/servers.yaml": "servers: {a: {transport: stdio, command: x}}", "mcp.json": `{"mcpServers": {"a": {"command": "x"}, "b": {"type": "sse", "url": "http://x"}}}`}, nil)
	want := `c/mcp.json:1:17: error: mcpServers.a: another server is named "a": c/mcp/servers.yaml, line 1 (rename one of them)
c/mcp.json:1:54: error: mcpServers.b.transport: does not know the value "sse" (one of: stdio, http)
`
	if got := lines(problems); got != want {
		t.Errorf("got\n%s", got)
	}
}
