package script

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"agentd/fault"
)

var errNotScript = errors.New("not a script file")

// The file as it is written; doc.go describes the keys.
type rawScript struct {
	Name        string      `yaml:"name"`
	Models      []string    `yaml:"models"`
	Restart     string      `yaml:"restart"`
	Latency     *rawLatency `yaml:"latency"`
	Turns       []rawTurn   `yaml:"turns"`
	Fallthrough *string     `yaml:"fallthrough"`
}

type rawTurn struct {
	When      *rawWhen    `yaml:"when"`
	Thinking  string      `yaml:"thinking"`
	Text      string      `yaml:"text"`
	ToolCalls []rawCall   `yaml:"tool_calls"`
	Usage     *rawUsage   `yaml:"usage"`
	Stop      string      `yaml:"stop"`
	Latency   *rawLatency `yaml:"latency"`
	Repeat    *int        `yaml:"repeat"`
	Fault     *rawFault   `yaml:"fault"`
}

type rawWhen struct {
	User   string `yaml:"user"`
	System string `yaml:"system"`
	Tool   string `yaml:"tool"`
	Result string `yaml:"result"`
	Failed *bool  `yaml:"failed"`
}

type rawCall struct {
	ID        string `yaml:"id"`
	Name      string `yaml:"name"`
	Arguments any    `yaml:"arguments"`
}

type rawUsage struct {
	Input      *int64 `yaml:"input"`
	Output     *int64 `yaml:"output"`
	CacheRead  *int64 `yaml:"cache_read"`
	CacheWrite *int64 `yaml:"cache_write"`
	Reasoning  *int64 `yaml:"reasoning"`
}

type rawLatency struct {
	First string `yaml:"first"`
	Chunk string `yaml:"chunk"`
	Size  int    `yaml:"size"`
}

type rawFault struct {
	Kind       string `yaml:"kind"`
	Status     int    `yaml:"status"`
	RetryAfter string `yaml:"retry_after"`
	After      *int   `yaml:"after"`
	For        string `yaml:"for"`
	Times      int    `yaml:"times"`
	Message    string `yaml:"message"`
}

// Parse reads a script. The name stands in errors, and names a script that has no
// name of its own. Every error is a *[fault.Error] of kind Invalid whose Field is
// "file:line" and whose Hint says what to do.
func Parse(name string, data []byte) (s *Script, err error) {
	p := &parsing{file: name}
	defer func() {
		// The YAML library is fed what people write; a panic in it is a
		// file that cannot be read, not the end of the process.
		if r := recover(); r != nil {
			s, err = nil, p.fail(1, fmt.Sprintf("cannot be read as YAML (%v)", r), "check the file with a YAML linter")
		}
	}()
	if len(data) > maxFile {
		return nil, p.fail(1, "longer than 8 MiB", "split the script")
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, p.yaml(err)
	}
	p.tree = file
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, p.fail(1, "the script is empty", "give it turns, or a fallthrough")
	}
	if len(file.Docs) > 1 {
		line := 1
		if start := file.Docs[1].Start; start != nil {
			line = start.Position.Line
		}
		return nil, p.fail(line, "a second YAML document begins", "keep one script in a file; remove the ---")
	}
	if _, ok := file.Docs[0].Body.(ast.MapNode); !ok {
		return nil, p.fail(1, "a script is a mapping", "begin with `turns:`")
	}
	var alias *aliasError
	if errors.As(plain(file.Docs[0].Body), &alias) {
		return nil, p.fail(alias.line, alias.Error(), "write the value out")
	}
	var raw rawScript
	if err := yaml.UnmarshalWithOptions(data, &raw, yaml.Strict(), yaml.UseOrderedMap()); err != nil {
		return nil, p.yaml(err)
	}
	if raw.Name == "" {
		base := filepath.Base(name)
		raw.Name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	return p.compile(&raw)
}

// parsing is what errors need to say where they are.
type parsing struct {
	file string
	tree *ast.File
}

func (p *parsing) fail(line int, msg, hint string) error {
	return &fault.Error{Kind: fault.Invalid, Err: errors.New(msg), Hint: hint, Field: fmt.Sprintf("%s:%d", p.file, line)}
}

// at fails at the key of a path such as turns[2].fault.kind.
func (p *parsing) at(path, hint, format string, args ...any) error {
	return p.fail(p.line(path), path+": "+fmt.Sprintf(format, args...), hint)
}

// line finds the line of a path, or of the nearest part of it that is there.
func (p *parsing) line(path string) int {
	for path != "" {
		if yp, err := yaml.PathString("$." + path); err == nil && p.tree != nil {
			if n, err := yp.FilterFile(p.tree); err == nil && n != nil && n.GetToken() != nil {
				return n.GetToken().Position.Line
			}
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			break
		}
		path = path[:cut]
	}
	return 1
}

// yaml turns an error of the YAML library into one of ours.
func (p *parsing) yaml(err error) error {
	var ye yaml.Error
	if !errors.As(err, &ye) {
		return p.fail(1, firstLine(err.Error()), "check the file with a YAML linter")
	}
	line := 1
	if tk := ye.GetToken(); tk != nil && tk.Position != nil {
		line = tk.Position.Line
	}
	var (
		unknown *yaml.UnknownFieldError
		typ     *yaml.TypeError
		node    *yaml.UnexpectedNodeTypeError
	)
	switch {
	case errors.As(err, &unknown):
		key := unknown.Token.Value
		hint := "remove it, or see the list of keys in docs/scripts.md"
		if near := nearest(key); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return p.fail(line, fmt.Sprintf("unknown key %q", key), hint)
	case strings.HasPrefix(ye.GetMessage(), "mapping key") && ye.GetToken() != nil:
		return p.fail(line, fmt.Sprintf("the key %q stands twice", ye.GetToken().Value), "remove one of them")
	case errors.As(err, &typ):
		got := ""
		if typ.Token != nil {
			got = typ.Token.Value
		}
		want := "a value of another type"
		if typ.DstType != nil {
			want = wanted(typ.DstType.String())
		}
		return p.fail(line, fmt.Sprintf("%s%q is not %s", keyBefore(typ.Token), got, want), "write "+want)
	case errors.As(err, &node):
		return p.fail(line, firstLine(ye.GetMessage()), "check the indentation and the dashes of this line against docs/scripts.md")
	}
	return p.fail(line, firstLine(ye.GetMessage()), "correct the YAML of this line")
}

func wanted(goType string) string {
	switch {
	case strings.Contains(goType, "int"):
		return "a whole number"
	case strings.Contains(goType, "bool"):
		return "true or false"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case strings.HasSuffix(goType, "string"):
		return "a text (put it in quotes)"
	}
	return "a mapping"
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// keys are all the keys of the format, to guess at a mistyped one.
func keys() []string {
	return strings.Fields(`name models restart latency turns fallthrough when thinking text tool_calls usage stop
		repeat fault user system tool result failed id arguments input output cache_read cache_write reasoning
		first chunk size kind status retry_after after for times message`)
}

// keyBefore is "key: " for the token of a value, or "" where no key precedes it.
func keyBefore(t *token.Token) string {
	if t == nil || t.Prev == nil || t.Prev.Type != token.MappingValueType || t.Prev.Prev == nil {
		return ""
	}
	return t.Prev.Prev.Value + ": "
}

// nearest returns the key that is at most two edits away from s.
func nearest(s string) string {
	best, found := 3, ""
	for _, k := range keys() {
		if d := edits(s, k); d < best && d < len(k) {
			best, found = d, k
		}
	}
	return found
}

// edits is the Levenshtein distance, 3 for anything far.
func edits(a, b string) int {
	if len(a) > len(b)+2 || len(b) > len(a)+2 {
		return 3
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diag
			if a[i-1] != b[j-1] {
				cost++
			}
			diag = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

// plain refuses anchors and aliases: an alias can refer to itself, and a script
// has no use for them.
func plain(n ast.Node) error {
	v := &plainVisitor{}
	ast.Walk(v, n)
	return v.err
}

type plainVisitor struct{ err error }

// Visit implements ast.Visitor.
func (v *plainVisitor) Visit(n ast.Node) ast.Visitor {
	if v.err != nil {
		return nil
	}
	switch n.(type) {
	case *ast.AliasNode, *ast.AnchorNode, *ast.MergeKeyNode:
		v.err = &aliasError{n.GetToken().Position.Line}
		return nil
	}
	return v
}

type aliasError struct{ line int }

func (e *aliasError) Error() string { return "anchors and aliases are not supported" }
