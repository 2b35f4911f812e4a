package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// layers says what packages may import of this module, and of the standard
// library where that matters. The first rule whose folder fits counts.
var layers = []struct {
	folder string
	// only lists what may be imported of the module; nil: anything not in never.
	only  []string
	never []string
	// stdlib lists the allowed packages of the standard library; nil: all.
	stdlib []string
	reason string
}{
	{folder: "message", only: []string{}, reason: "the vocabulary stands under everything"},
	{folder: "fault", only: []string{}, reason: "errors stand under everything"},
	{folder: "event", only: []string{"message"}, reason: "events speak of messages and of nothing else"},
	{folder: "internal/run", only: []string{"message", "event"},
		stdlib: []string{"bytes", "cmp", "encoding/json", "errors", "fmt", "iter", "maps", "math", "slices", "sort", "strconv", "strings", "unicode", "unicode/utf8"},
		reason: "the machine is a pure function: no clock, no I/O, no randomness, no goroutines, no context"},
	{folder: "model", never: []string{"internal/engine", "internal/run", "internal/server", "internal/store", "internal/session", "internal/profile"},
		reason: "models are a port: whoever embeds agentd may use them alone"},
	{folder: "tool", never: []string{"internal/engine", "internal/run", "internal/server", "internal/store", "internal/profile", "internal/mcp"},
		reason: "tools are a port: built-in, MCP and extension tools are all made from it"},
	{folder: "internal/store", never: []string{"internal/run", "internal/engine", "internal/server", "internal/session", "internal/profile"},
		reason: "the store keeps states as bytes and never learns what they mean"},
	{folder: "internal/schedule", never: []string{"internal/engine", "internal/store", "internal/server", "internal/profile"}, reason: "when something is due has nothing to do with what it is"},
	{folder: "internal/guard", only: []string{"fault", "message", "model", "tool"}, reason: "guards stand around ports and know nothing else"},
	{folder: "internal/rate", never: []string{"internal/engine", "internal/store", "internal/server", "internal/profile"}, reason: "what is used is counted without knowing what for"},
	{folder: "internal/memory", only: []string{"fault", "tool", "internal/redact", "internal/store", "internal/wholefile"}, reason: "what is remembered is kept and shown; whose run asks is not its business"},
	{folder: "internal/skill", never: []string{"internal/engine", "internal/store", "internal/server", "internal/profile"}, reason: "skills are files; which agent has which is not their business"},
	{folder: "internal/workspace", only: []string{"fault", "message", "tool"}, reason: "built-in tools are tools like any other"},
	{folder: "internal/mcp", never: []string{"internal/engine", "internal/run", "internal/server", "internal/store", "internal/profile"},
		reason: "MCP is one source of tools; who uses them is not its business"},
	{folder: "internal/profile", never: []string{"internal/engine", "internal/run", "internal/server", "internal/store", "internal/session"},
		reason: "configuration is read before anything runs"},
	{folder: "internal/keys", only: []string{"fault", "internal/store"}, reason: "who a caller is has nothing to do with what it calls"},
	{folder: "internal/timetable", only: []string{"fault", "message", "internal/engine", "internal/schedule", "internal/store"}, reason: "what starts runs at certain times speaks to the engine like any client"},
	{folder: "internal/sim", never: []string{"internal/engine", "internal/run", "internal/server", "internal/store", "internal/profile"},
		reason: "the simulator is the other side of the wire: it must not share the code it tests"},
	{folder: "internal/engine", never: []string{"internal/server", "internal/cli", "internal/tui", "internal/console"},
		reason: "the engine knows no HTTP and no terminal"},
	{folder: "internal/azureid", never: []string{"internal/engine", "internal/store", "internal/server", "internal/profile", "model"}, reason: "who agentd is at Azure has nothing to do with what it asks for there"},
	{folder: "internal/natsbus", never: []string{"internal/engine", "internal/store", "internal/server", "internal/profile", "internal/cli"}, reason: "a bus carries bytes and knows nobody"},
	{folder: "internal/redact", only: []string{}, reason: "what hides secrets stands under everything that shows something"},
	{folder: "internal/wholefile", only: []string{}, reason: "how a file is written has nothing to do with what is in it"},
	{folder: "internal/logs", only: []string{"internal/redact"}, reason: "logs are under everything that logs"},
	{folder: "internal/telemetry", never: []string{"internal/server", "internal/cli", "internal/store"}, reason: "telemetry is told by the engine and knows nobody else"},
	{folder: "internal/session", never: []string{"internal/engine", "internal/server"}, reason: "sessions are under the engine"},
	{folder: "internal/policy", never: []string{"internal/engine", "internal/server"}, reason: "policy is under the engine"},
	{folder: "internal/prefix", only: []string{"event", "message", "model"}, reason: "what changed in a request is a function of two requests"},
	{folder: "internal/prompt", never: []string{"internal/engine", "internal/server"}, reason: "prompts are under the engine"},
	{folder: "internal/server", never: []string{"internal/cli", "internal/tui"}, reason: "the command line starts the server, not the other way round"},
	{folder: "client", only: []string{"message", "event", "fault", "internal/sse"}, reason: "a client needs the wire and the vocabulary, not the engine"},
}

func TestLayers(t *testing.T) {
	for _, f := range code(t) {
		for _, p := range layerBreaks(f) {
			t.Error(p)
		}
	}
}

func layerBreaks(f *file) (breaks []string) {
	for _, rule := range layers {
		if !within(f.dir, rule.folder) {
			continue
		}
		for _, imp := range f.imports() {
			dir, own := inModule(imp)
			var bad bool
			switch {
			case own && within(dir, rule.folder):
			case own && rule.only != nil:
				bad = !slices.Contains(rule.only, dir)
			case own:
				bad = within(dir, rule.never...)
			case isStdlib(imp):
				bad = rule.stdlib != nil && !slices.Contains(rule.stdlib, imp)
			default:
				bad = rule.only != nil && len(rule.only) < 3 // vocabulary and machine: nobody else's code
			}
			if bad {
				breaks = append(breaks, f.path+" imports "+imp+": "+rule.reason)
			}
		}
		break
	}
	return breaks
}

// Adapters of models are chosen by configuration; one that imports another makes
// a build that can not leave it out. Tests share the suite modeltest.
func TestModelsNeverImportEachOther(t *testing.T) {
	for _, f := range files(t) {
		rest, ok := strings.CutPrefix(f.dir, "model/")
		if !ok {
			continue
		}
		self, _, _ := strings.Cut(rest, "/")
		for _, imp := range f.imports() {
			other, ok := strings.CutPrefix(imp, module+"/model/")
			if !ok || within(other, self) || f.test && within(other, "modeltest") {
				continue
			}
			t.Errorf("%s imports %s: adapters share code through packages under internal/, never through each other", f.path, imp)
		}
	}
}

// One place listens, so that one place decides about addresses, keys and limits.
// The others are programs of their own (examples, test servers).
func TestServersListenInOnePlace(t *testing.T) {
	for _, f := range code(t) {
		if within(f.dir, "internal/server", "internal/sim", "examples", "test", "bench") {
			continue
		}
		for _, p := range httpServers(f) {
			t.Error(p)
		}
	}
}

func httpServers(f *file) (found []string) {
	pkg := packageFor(f, "net/http")
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if name, ok := selector(n, pkg, "Server", "ListenAndServe", "ListenAndServeTLS", "Serve", "ServeTLS", "Handle", "HandleFunc", "DefaultServeMux"); ok {
			found = append(found, f.at(n)+": http."+name+" belongs into internal/server: only it listens")
		}
		return true
	})
	return found
}

// thirdParty says who imports which module, so that each can be replaced in one
// place. The reason says what it is for; docs/dependencies.md says why this one.
var thirdParty = []struct {
	module  string
	folders []string // whose code may import it
	tests   []string // whose tests may, too
	reason  string
}{
	{"modernc.org/sqlite", []string{"internal/store/sqlite"}, nil, "SQLite without cgo"},
	{"modernc.org/libc", []string{"internal/store/sqlite"}, nil, "the C types of SQLite without cgo, for its file layer"},
	{"github.com/jackc/pgx", []string{"internal/store/postgres"}, nil, "PostgreSQL"},
	{"github.com/openai/openai-go", []string{"model/openai"}, []string{"internal/sim", "internal/server", "test"}, "OpenAI's SDK; tests drive our servers with it"},
	{"github.com/anthropics/anthropic-sdk-go", []string{"model/anthropic"}, []string{"internal/sim", "internal/server", "test"}, "Anthropic's SDK; tests drive our servers with it"},
	{"github.com/Azure/azure-sdk-for-go", []string{"internal/azureid"}, nil, "Azure's SDK: tokens of Entra ID and managed identities, secrets of Key Vault"},
	{"github.com/modelcontextprotocol/go-sdk", []string{"internal/mcp", "examples/mcp", "test"}, []string{"internal/engine", "internal/cli", "internal/server"}, "MCP; examples and test servers are the other side"},
	{"github.com/mark3labs/mcp-go", nil, []string{"internal/mcp", "test"}, "the other MCP implementation, as a peer in tests"},
	{"github.com/santhosh-tekuri/jsonschema", []string{"tool"}, []string{"internal/profile", "internal/workspace", "internal/server", "internal/mcp", "test"}, "JSON Schema; tests check shipped files and built-in tools"},
	{"golang.org/x/text", []string{"tool", "internal/cli"}, nil, "what jsonschema's messages are printed with; how wide characters are on a terminal"},
	{"github.com/goccy/go-yaml", []string{"internal/profile", "internal/skill", "model/script"}, []string{"internal/server", "internal/cli", "test"}, "YAML with places; configuration, scripts and the heads of skills are what people write in YAML"},
	{"go.opentelemetry.io/otel", []string{"internal/telemetry"}, nil, "OpenTelemetry's SDK: traces and metrics"},
	{"go.temporal.io", []string{"internal/engine/temporal"}, []string{"test"}, "Temporal's SDK: where and when runs are driven; tests look at its server"},
	{"github.com/nats-io", []string{"internal/natsbus"}, nil, "NATS: what nodes tell each other, in builds with the tag nats"},
	{"github.com/netresearch/go-cron", []string{"internal/schedule"}, nil, "cron expressions"},
	{"github.com/spf13/cobra", []string{"internal/cli"}, nil, "the command line"},
	{"github.com/spf13/pflag", []string{"internal/cli"}, nil, "cobra's flags"},
	{"github.com/tidwall/gjson", []string{"internal/sim", "internal/llmwire", "internal/server", "model/openai", "model/anthropic", "model/script", "internal/jsonrepair"}, []string{"test"}, "reading parts of JSON without decoding the whole, on hot paths"},
	{"github.com/bmatcuk/doublestar", []string{"internal/workspace"}, nil, "globs with **"},
	{"github.com/failsafe-go/failsafe-go", []string{"internal/guard"}, nil, "circuit breakers and bulkheads"},
	{"golang.org/x/time", []string{"internal/rate"}, nil, "the Go project's own; token buckets"},
	{"golang.org/x/sync", []string{"internal"}, nil, "the Go project's own; semaphores and groups"},
	{"golang.org/x/sys", []string{"internal"}, nil, "the Go project's own; what syscall lacks"},
	{"github.com/mattn/go-isatty", []string{"internal/cli"}, nil, "is this a terminal"},
	{"golang.org/x/term", []string{"internal/cli", "internal/tui"}, nil, "the Go project's own; is this a terminal"},
	{"golang.org/x/tools", nil, []string{"internal", "model", "test"}, "txtar transcripts"},
}

func TestThirdPartyModules(t *testing.T) {
	for _, f := range files(t) {
		for _, imp := range f.imports() {
			if _, own := inModule(imp); own || isStdlib(imp) {
				continue
			}
			known := false
			for _, m := range thirdParty {
				if !within(imp, m.module) {
					continue
				}
				known = true
				if !within(f.dir, m.folders...) && !(f.test && within(f.dir, m.tests...)) {
					t.Errorf("%s imports %s, which belongs to %v (%s): go through that package", f.path, imp, m.folders, m.reason)
				}
			}
			if !known {
				t.Errorf("%s imports %s: add the module to the table here with its reason, and to docs/dependencies.md", f.path, imp)
			}
		}
	}
}

// The rules themselves find what they should.
func TestLayerRulesFind(t *testing.T) {
	for _, tt := range []struct {
		path, text string
		want       int
	}{
		{"message/x.go", `package m; import ("fmt"; "agentd/event"; "github.com/x/y")`, 2},
		{"event/x.go", `package e; import ("agentd/message"; "net/http")`, 0},
		{"internal/run/x.go", `package r; import ("context"; "time"; "agentd/fault"; "slices")`, 3},
		{"internal/store/sqlite/x.go", `package s; import ("agentd/internal/run"; "agentd/internal/store"; "time")`, 1},
		{"internal/workspace/x.go", `package w; import ("agentd/internal/engine"; "github.com/x/y"; "os")`, 1},
		{"model/new/x.go", `package n; import ("agentd/internal/engine/sub"; "agentd/message")`, 1},
	} {
		f, err := parse(tt.path, tt.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := layerBreaks(f); len(got) != tt.want {
			t.Errorf("%s: %v, want %d", tt.path, got, tt.want)
		}
	}
	f, err := parse("x/x.go", `package x; import ("net/http"; h "net/http"); func f() { http.Get(""); http.ListenAndServe("", nil); var s = &http.Server{}; _ = s }`)
	if err != nil {
		t.Fatal(err)
	}
	if got := httpServers(f); len(got) != 2 {
		t.Errorf("servers: %v", got)
	}
}
