package script

import (
	_ "embed"
	"os"
	"regexp"
	"slices"
	"time"

	"agentd/fault"
	"agentd/message"
)

// Script is a parsed script. It is immutable and safe for concurrent use.
type Script struct {
	name        string
	models      []string
	never       bool // restart: never
	turns       []*turn
	conditional bool // any turn has a when
	fallthru    *text
}

// Name is the script's name, or the file's if it has none.
func (s *Script) Name() string { return s.name }

// Models are the model ids that the script answers; empty means any.
func (s *Script) Models() []string { return slices.Clone(s.models) }

// Answers reports whether the script answers requests for the model.
func (s *Script) Answers(model string) bool {
	return len(s.models) == 0 || slices.Contains(s.models, model)
}

// turn is one reply of a script, compiled.
type turn struct {
	number   int // from 1, for errors
	when     *when
	thinking *text
	text     *text
	calls    []*call
	usage    *usage
	stop     message.StopReason
	latency  Latency
	repeat   int
	fault    *Fault
}

type when struct {
	user, system, result *regexp.Regexp
	tool                 string
	failed               *bool
}

// call is one tool call. Either fixed is its whole arguments, or raw is a
// template of them, or args is a tree with templates in it.
type call struct {
	id    *text
	name  string
	fixed []byte
	raw   *text
	args  *node
}

type usage struct {
	input, output, cacheRead, cacheWrite, reasoning *int64
}

// Latency is how long a reply takes. The zero value is no delay and chunks of
// [DefaultSize] runes.
type Latency struct {
	First time.Duration // before the first byte
	Chunk time.Duration // between two chunks
	Size  int           // runes per chunk; 0 means DefaultSize
}

// DefaultSize is the number of runes in a chunk unless a script says otherwise.
const DefaultSize = 24

// maxFile bounds a script file; larger ones are refused.
const maxFile = 8 << 20

// Load reads and parses a script file.
func Load(path string) (*Script, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, &fault.Error{Op: "script.Load", Kind: fault.NotFound, Err: err, Hint: "give the path of a script file", Field: path}
	}
	if fi.IsDir() || fi.Size() > maxFile {
		return nil, &fault.Error{Op: "script.Load", Kind: fault.Invalid, Err: errNotScript, Field: path,
			Hint: "give one YAML file of at most 8 MiB"}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &fault.Error{Op: "script.Load", Kind: fault.Unavailable, Err: err, Field: path}
	}
	return Parse(path, data)
}

//go:embed demo.yaml
var demoYAML []byte

// Demo returns the script of the demo agent: it lists, searches and reads the
// files of the current folder with the built-in tools glob, grep and file_read,
// and reports what they found.
func Demo() *Script { return must("demo.yaml", demoYAML) }

// Echo returns a script that answers every request with the last user text.
func Echo() *Script { return must("echo", []byte("name: echo\nfallthrough: \"{{.User}}\"\n")) }

// must parses a script that ships with the program; a test holds that it does.
func must(name string, data []byte) *Script {
	s, err := Parse(name, data)
	if err != nil {
		panic(err)
	}
	return s
}
