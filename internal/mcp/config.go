package mcp

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"agentd/fault"
	"agentd/tool"
)

// Revisions of the protocol that can be asked for.
const (
	protocolAuto   = "auto"
	protocolLegacy = "2025-11-25"
	protocolModern = "2026-07-28"
)

// Defaults of a server's configuration.
const (
	DefaultConnectTimeout   = 30 * time.Second
	DefaultCallTimeout      = 120 * time.Second
	DefaultRetries          = 2
	DefaultBackoff          = 500 * time.Millisecond
	DefaultConcurrencyLimit = 8
)

// ServerConfig describes one server, as in configs/mcp/servers.yaml.
type ServerConfig struct {
	// Transport is stdio (a program that agentd starts) or http (streamable HTTP).
	Transport string `yaml:"transport" enum:"stdio,http" required:"true" example:"stdio"`
	// Description is for people; it has no effect.
	Description string `yaml:"description"`

	// Command is the program of a stdio server: a path, or a name on the PATH.
	Command string `yaml:"command" example:"npx"`
	// Args are the program's arguments.
	Args []string `yaml:"args"`
	// Cwd is the folder the program starts in; default: agentd's own.
	Cwd string `yaml:"cwd"`
	// Env is added to the program's environment, which otherwise holds PATH,
	// HOME, LANG and TMPDIR alone.
	Env map[string]string `yaml:"env"`

	// URL is the address of an http server.
	URL string `yaml:"url" format:"url" example:"https://mcp.example.com/mcp"`
	// Endpoint is another name of URL.
	Endpoint string `yaml:"endpoint" format:"url"`
	// Headers are sent with every request to an http server, and never to
	// another host.
	Headers map[string]string `yaml:"headers"`

	// Protocol is the revision to speak: 2025-11-25, 2026-07-28, or auto (try
	// the newer one for three seconds, then use the older). Default:
	// 2025-11-25 for stdio, auto for http.
	Protocol string `yaml:"protocol" enum:"auto,2025-11-25,2026-07-28"`
	// Timeouts bound connecting and calling.
	Timeouts Timeouts `yaml:"timeouts"`
	// Retries say how often a call is sent again where that is safe.
	Retries Retries `yaml:"retries"`
	// ConcurrencyLimit is the number of calls that may run at the same time;
	// further ones wait. Default 8.
	ConcurrencyLimit int `yaml:"concurrency_limit" min:"0"`

	// Allowlist, if not empty, names the tools that may be used.
	Allowlist []Rule `yaml:"allowlist"`
	// Denylist names tools that may not be used. It wins over the allowlist.
	Denylist []Rule `yaml:"denylist"`
	// RequiresApproval says which calls a person must agree to.
	RequiresApproval Approval `yaml:"requires_approval"`
	// Redaction lists what is masked in logs and events: the name of a field
	// of arguments or results at any depth (with * and ?, in upper or lower
	// case), or /regular expression/ for a part of a text.
	Redaction []string `yaml:"redaction"`
	// Effects say what running a tool twice would do: read (nothing),
	// idempotent (the same), once (it would happen twice). A key may contain
	// * and ?; an exact name wins over a pattern, a longer pattern over a
	// shorter. Default: once.
	Effects map[string]tool.Effect `yaml:"effects" enum:"read,idempotent,once"`
	// TrustHints believes the server's readOnlyHint and idempotentHint where
	// Effects says nothing. Default false.
	TrustHints bool `yaml:"trust_hints"`
	// Capabilities are groups that the server's tools belong to, such as shell,
	// code, memory. They have no effect yet.
	Capabilities []string `yaml:"capabilities"`
	// Pool names the nodes that call this server's tools, where several share the
	// runs: those that serve tool.NAME. Every node that drives runs connects, too, to
	// know the tools. Empty: nodes that serve tool.
	Pool string `yaml:"pool" format:"pool" example:"gpu"`
	// Tools changes settings of single tools, by the name the server gives them.
	Tools map[string]ToolConfig `yaml:"tools"`
}

// Timeouts bound what a server may take. Zero means the default.
type Timeouts struct {
	// Connect bounds starting the program or reaching the address, the
	// handshake and the first list of tools. Default 30s.
	Connect time.Duration `yaml:"connect" min:"0s" example:"30s"`
	// Call bounds one call as the agent sees it: waiting for a free slot,
	// reconnecting and all attempts included. Default 120s.
	Call time.Duration `yaml:"call" min:"0s" example:"120s"`
}

// Retries say how calls are repeated after a failure of the transport. Only
// calls that are safe to repeat are.
type Retries struct {
	// Max is the number of further attempts; 0 means none. Default 2.
	Max *int `yaml:"max" min:"0" max:"10"`
	// Backoff is the pause before the first of them; it doubles. Default 500ms.
	Backoff time.Duration `yaml:"backoff" min:"0s" example:"500ms"`
}

// Approval says which calls a person must agree to.
type Approval struct {
	// Always names tools, as an allowlist does. An entry with args asks only
	// for calls whose arguments match.
	Always []Rule `yaml:"always"`
	// Conditional entries are a class (write, delete, network, shell,
	// dangerous: calls of tools of that class), a regular expression over the
	// arguments' JSON, or {tool, args, class}.
	Conditional []Condition `yaml:"conditional"`
}

// ToolConfig changes the settings of one tool.
type ToolConfig struct {
	// Timeout replaces timeouts.call.
	Timeout time.Duration `yaml:"timeout" min:"0s"`
	// ConcurrencyLimit bounds the calls of this tool, within the server's.
	ConcurrencyLimit int `yaml:"concurrency_limit" min:"0"`
	// Description replaces the server's text.
	Description string `yaml:"description"`
	// Redaction is added to the server's.
	Redaction []string `yaml:"redaction"`
	// Pool replaces the server's.
	Pool string `yaml:"pool" format:"pool" example:"gpu"`
}

// String describes the server without what may be secret.
func (c ServerConfig) String() string {
	if c.Transport == "http" {
		if u, err := url.Parse(c.address()); err == nil {
			return "http " + u.Scheme + "://" + u.Host + u.Path
		}
		return "http"
	}
	return "stdio " + c.Command
}

// GoString describes the server without what may be secret.
func (c ServerConfig) GoString() string { return c.String() }

// LogValue describes the server without what may be secret.
func (c ServerConfig) LogValue() slog.Value { return slog.StringValue(c.String()) }

func (c *ServerConfig) address() string {
	if c.URL != "" {
		return c.URL
	}
	return c.Endpoint
}

// Validate reports everything that is wrong with the configuration, one
// *fault.Error each, joined. The Field of each is the key.
func (c *ServerConfig) Validate() error {
	var errs []error
	bad := func(field, hint, format string, args ...any) {
		errs = append(errs, &fault.Error{Kind: fault.Invalid, Field: field, Err: fmt.Errorf(format, args...), Hint: hint})
	}
	switch c.Transport {
	case "stdio":
		if c.Command == "" {
			bad("command", "name the program to start", "a stdio server needs a command")
		}
		if c.address() != "" || len(c.Headers) > 0 {
			bad("url", "remove url and headers, or set transport: http", "a stdio server has no address")
		}
	case "http":
		u, err := url.Parse(c.address())
		switch {
		case c.address() == "":
			bad("url", "such as https://mcp.example.com/mcp", "an http server needs a url")
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			bad("url", "such as https://mcp.example.com/mcp", "is not an http address")
		case u.User != nil:
			bad("url", "put credentials in headers", "must not contain credentials")
		}
		if c.URL != "" && c.Endpoint != "" && c.URL != c.Endpoint {
			bad("endpoint", "keep one of them", "url and endpoint differ")
		}
		if c.Command != "" || len(c.Env) > 0 {
			bad("command", "remove command and env, or set transport: stdio", "an http server has no command")
		}
	default:
		bad("transport", "one of: stdio, http", "does not know the value %q", c.Transport)
	}
	for name := range c.Headers {
		if k := http.CanonicalHeaderKey(name); strings.HasPrefix(k, "Mcp-") || k == "Content-Type" || k == "Accept" || k == "Host" {
			bad("headers."+name, "remove it", "belongs to the protocol")
		}
	}
	for name := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			bad("env", "use letters, digits and _", "%q is not the name of a variable", name)
		}
	}
	switch c.Protocol {
	case "", protocolAuto, protocolLegacy, protocolModern:
	default:
		bad("protocol", "one of: auto, 2025-11-25, 2026-07-28", "does not know the value %q", c.Protocol)
	}
	if c.Timeouts.Connect < 0 || c.Timeouts.Call < 0 || c.Retries.Backoff < 0 || c.ConcurrencyLimit < 0 || c.Retries.Max != nil && *c.Retries.Max < 0 {
		bad("timeouts", "use positive values", "timeouts, retries and limits must not be negative")
	}
	for name, e := range c.Effects {
		if !e.Valid() {
			bad("effects."+name, "one of: read, idempotent, once", "does not know the value %q", string(e))
		}
	}
	if _, err := compileRules(c.Allowlist); err != nil {
		bad("allowlist", "see https://golang.org/s/re2syntax", "%w", err)
	}
	if _, err := compileRules(c.Denylist); err != nil {
		bad("denylist", "see https://golang.org/s/re2syntax", "%w", err)
	}
	if _, err := compileApproval(c.RequiresApproval); err != nil {
		bad("requires_approval", "a class (write, delete, network, shell, dangerous) or a regular expression", "%w", err)
	}
	if _, err := newRedactor(c.Redaction); err != nil {
		bad("redaction", "a field's name, or /regular expression/", "%w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tools)) {
		if _, err := newRedactor(c.Tools[name].Redaction); err != nil {
			bad("tools."+name+".redaction", "a field's name, or /regular expression/", "%w", err)
		}
	}
	return errors.Join(errs...)
}

func (c *ServerConfig) withDefaults() ServerConfig {
	d := *c
	d.URL = c.address()
	if d.Protocol == "" {
		d.Protocol = protocolLegacy
		if d.Transport == "http" {
			d.Protocol = protocolAuto
		}
	}
	if d.Timeouts.Connect == 0 {
		d.Timeouts.Connect = DefaultConnectTimeout
	}
	if d.Timeouts.Call == 0 {
		d.Timeouts.Call = DefaultCallTimeout
	}
	if d.Retries.Max == nil {
		n := DefaultRetries
		d.Retries.Max = &n
	}
	if d.Retries.Backoff == 0 {
		d.Retries.Backoff = DefaultBackoff
	}
	if d.ConcurrencyLimit == 0 {
		d.ConcurrencyLimit = DefaultConcurrencyLimit
	}
	return d
}

// effect is what the configuration says about running the tool twice; "" where
// it says nothing.
func (c *ServerConfig) effect(name string) tool.Effect {
	if e, ok := c.Effects[name]; ok {
		return e
	}
	best := ""
	for _, pattern := range slices.Sorted(maps.Keys(c.Effects)) {
		if len(pattern) > len(best) && glob(pattern).MatchString(name) {
			best = pattern
		}
	}
	return c.Effects[best]
}

// glob compiles a name with * and ?.
func glob(pattern string) *regexp.Regexp {
	q := regexp.QuoteMeta(pattern)
	q = strings.ReplaceAll(q, `\*`, `.*`)
	q = strings.ReplaceAll(q, `\?`, `.`)
	return regexp.MustCompile(`(?s)^` + q + `$`)
}
