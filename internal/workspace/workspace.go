package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"agentd/fault"
	"agentd/tool"
)

// Group is the name that stands for all tools of the package in a profile.
const Group = "workspace"

// Names are the tools' names, sorted.
func Names() []string { return []string{"file_read", "glob", "grep"} }

// Options bound what the tools do. The zero value of a field means its default.
type Options struct {
	// MaxLines and MaxBytes bound the text of one result; default 2,000 and
	// 50 KiB.
	MaxLines, MaxBytes int
	// MaxImageBytes bounds an image; default 5 MiB, the limit of Anthropic's
	// API (https://docs.anthropic.com/en/docs/build-with-claude/vision).
	MaxImageBytes int64
	// MaxFileBytes bounds a file that is searched; default 10 MiB. Larger
	// files are skipped, and the result says so.
	MaxFileBytes int64
	// MaxFiles bounds how many entries a search looks at; default 200,000.
	MaxFiles int
}

func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&out.MaxLines, 2000)
	def(&out.MaxBytes, 50<<10)
	def(&out.MaxFiles, 200_000)
	if out.MaxImageBytes <= 0 {
		out.MaxImageBytes = 5 << 20
	}
	if out.MaxFileBytes <= 0 {
		out.MaxFileBytes = 10 << 20
	}
	return out
}

// Workspace is a folder that tools may read. It is safe for concurrent use.
type Workspace struct {
	dir  string // absolute, without symbolic links
	root *os.Root
	opts Options
}

// New opens the folder. opts may be nil.
func New(root string, opts *Options) (*Workspace, error) {
	fail := func(err error) (*Workspace, error) {
		return nil, &fault.Error{Op: "workspace.New", Kind: fault.Invalid, Field: root, Err: err,
			Hint: "give a folder that exists and can be read (workspace in agentd.yaml; a relative path is below the folder that agentd was started in)"}
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return fail(err)
	}
	dir, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return fail(err)
	}
	r, err := os.OpenRoot(dir)
	if err != nil {
		return fail(err)
	}
	return &Workspace{dir: dir, root: r, opts: opts.withDefaults()}, nil
}

// Dir is the folder, absolute and without symbolic links.
func (w *Workspace) Dir() string { return w.dir }

// Close gives the folder free. Calls under way may fail.
func (w *Workspace) Close() error { return w.root.Close() }

// Tools gives the tools, sorted by name.
func (w *Workspace) Tools() []tool.Tool {
	return []tool.Tool{
		builtin[readArgs]{name: "file_read", label: "Read file", description: readDescription, schema: readSchema, run: w.read},
		builtin[globArgs]{name: "glob", label: "Find files", description: globDescription, schema: globSchema, run: w.glob},
		builtin[grepArgs]{name: "grep", label: "Search files", description: grepDescription, schema: grepSchema, run: w.grep},
	}
}

// builtin makes a tool.Tool of a function with typed arguments.
type builtin[A any] struct {
	name, label, description, schema string
	run                              func(context.Context, A) (tool.Result, error)
}

// Spec describes the tool.
func (b builtin[A]) Spec() tool.Spec {
	return tool.Spec{
		Name: b.name, Label: b.label, Description: b.description, Schema: json.RawMessage(b.schema),
		Effect: tool.Read, Timeout: 30 * time.Second, Source: "builtin",
	}
}

// Run decodes the arguments and calls the function. What a model can correct
// becomes an error result.
func (b builtin[A]) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	var args A
	if len(call.Args) > 0 {
		if err := json.Unmarshal(call.Args, &args); err != nil {
			return tool.ErrorResult("The arguments are not right: " + err.Error()), nil
		}
	}
	res, err := b.run(ctx, args)
	var r *refusal
	if errors.As(err, &r) {
		return tool.ErrorResult(r.Error()), nil
	}
	return res, err
}

// refusal is an error that a model reads: what was wrong and what to do.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

func refuse(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// result is a text with details for programs.
func result(text string, details any) (tool.Result, error) {
	res := tool.TextResult(text)
	b, err := json.Marshal(details)
	if err != nil {
		return tool.Result{}, fmt.Errorf("workspace: details: %w", err)
	}
	res.Details = b
	return res, nil
}
