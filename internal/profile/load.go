package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"agentd/configs"
	"agentd/fault"
	"agentd/internal/mcp"
)

// Options say what a configuration is checked against. The zero value and nil
// mean the defaults.
type Options struct {
	// Env looks up the environment; default os.LookupEnv.
	Env func(name string) (string, bool)
	// Builtins are the names of built-in tools and groups; nil: any name is
	// accepted.
	Builtins []string
	// Providers are those that this build has an adapter for; default
	// anthropic, openai, azure, gemini, ollama, script.
	Providers []string
	// LookPath finds the program of a stdio server, as [exec.LookPath] does; one
	// that it does not find is a notice. Nil: programs are not looked for.
	LookPath func(name string) (string, error)
}

func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.Env == nil {
		out.Env = os.LookupEnv
	}
	if out.Providers == nil {
		out.Providers = []string{"anthropic", "openai", "azure", "gemini", "ollama", "script"}
	}
	return out
}

// Load reads a configuration folder. The configuration holds what is right; the
// problems list everything that is not ([Problems.Err]).
func Load(dir string, opts *Options) (*Config, Problems) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		msg := "there is no such folder"
		if err == nil {
			msg = "this is not a folder"
		} else if !errors.Is(err, fs.ErrNotExist) {
			msg = "the folder can not be read"
		}
		return &Config{}, Problems{{File: dir, Line: 1, Column: 1, Message: msg, Severity: SeverityError,
			Hint: "give the folder that holds agents/, or write one with: agentd config init"}}
	}
	return LoadFS(os.DirFS(dir), filepath.ToSlash(dir), opts)
}

// LoadFS reads a configuration folder from fsys. name stands before file names
// in problems.
func LoadFS(fsys fs.FS, name string, opts *Options) (*Config, Problems) {
	l := &loader{fsys: fsys, name: name, opts: opts.withDefaults(),
		config:   &Config{Profiles: map[string]*Profile{}, Servers: map[string]mcp.ServerConfig{}, fsys: fsys},
		profiles: map[string]source{}, servers: map[string]source{}, prices: map[string]Price{}}
	setDefaults(reflect.ValueOf(&l.config.Settings).Elem())
	settings := l.settings("agentd.yaml")
	l.serversFile("mcp/servers.yaml", false)
	l.serversFile("mcp/mcp.json", true)
	l.serversFile("mcp.json", true)
	files := l.profileFiles()
	l.check(settings, files)
	l.problems.sort()
	return l.config, l.problems
}

// Embedded is the configuration inside the binary: a copy of configs/.
func Embedded() fs.FS { return configs.Files() }

// WriteDefaults writes the embedded configuration to dir and returns the paths
// written. It overwrites nothing: if one of the files is there already, it
// writes none and returns a *fault.Error of kind conflict that names them.
func WriteDefaults(dir string) ([]string, error) {
	src := Embedded()
	var names, there []string
	err := fs.WalkDir(src, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		names = append(names, name)
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name))); err == nil {
			there = append(there, name)
		}
		return nil
	})
	if err != nil {
		return nil, &fault.Error{Op: "profile.WriteDefaults", Err: err}
	}
	if len(there) > 0 {
		return nil, &fault.Error{Op: "profile.WriteDefaults", Kind: fault.Conflict, Field: dir,
			Err:  fmt.Errorf("files are there already: %s", strings.Join(there, ", ")),
			Hint: "nothing was written; move them away or choose another folder"}
	}
	var written []string
	for _, name := range names {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := writeNew(src, name, to); err != nil {
			return written, &fault.Error{Op: "profile.WriteDefaults", Kind: fault.Unavailable, Field: to, Err: err,
				Hint: "check that the folder can be written"}
		}
		written = append(written, to)
	}
	return written, nil
}

func writeNew(src fs.FS, name, to string) error {
	data, err := fs.ReadFile(src, name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// loader reads a folder. It notes where names were defined first.
type loader struct {
	fsys     fs.FS
	name     string
	opts     Options
	config   *Config
	problems Problems

	profiles map[string]source
	servers  map[string]source
	prices   map[string]Price // by provider and model
}

// source is where something was defined.
type source struct {
	file string
	pos  place
}

// openFile is a parsed file, ready to be decoded.
type openFile struct {
	*decoder
	root ast.Node
}

// profileFile is a decoded profile with the places of its keys.
type profileFile struct {
	profile *Profile
	decoder *decoder
}

// read gives the file's root node and a decoder; nil if it is absent or broken.
func (l *loader) read(name string, optional bool) *openFile {
	file := path.Join(l.name, name)
	data, err := fs.ReadFile(l.fsys, name)
	if err != nil {
		if !optional || !errors.Is(err, fs.ErrNotExist) {
			l.problems = append(l.problems, Problem{File: file, Line: 1, Column: 1, Severity: SeverityError,
				Message: "the file can not be read", Hint: "check that it is a file and its permissions"})
		}
		return nil
	}
	root, problems := parseYAML(file, data)
	if root == nil {
		l.problems = append(l.problems, problems...)
		return nil
	}
	return &openFile{newDecoder(file, root, l.opts.Env), root}
}

func (l *loader) settings(name string) *decoder {
	r := l.read(name, true)
	if r == nil {
		return nil
	}
	v := reflect.ValueOf(&l.config.Settings).Elem()
	r.value(r.root, "", v, "", 0)
	l.problems = append(l.problems, r.problems...)
	r.problems = nil
	return r.decoder
}

func (l *loader) profileFiles() []*profileFile {
	var files []*profileFile
	entries, err := fs.ReadDir(l.fsys, "agents")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.problems = append(l.problems, Problem{File: path.Join(l.name, "agents"), Line: 1, Column: 1, Severity: SeverityError,
			Message: "the folder can not be read", Hint: "check that it is a folder and its permissions"})
	}
	for _, e := range entries {
		ext := path.Ext(e.Name())
		if e.IsDir() || ext != ".yaml" && ext != ".yml" || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		r := l.read("agents/"+e.Name(), false)
		if r == nil {
			continue
		}
		p := &Profile{File: r.file}
		setDefaults(reflect.ValueOf(p).Elem())
		setDefaults(reflect.ValueOf(&p.PrimaryModel).Elem())
		r.value(r.root, "", reflect.ValueOf(p).Elem(), "", 0)
		files = append(files, &profileFile{p, r.decoder})
	}
	if len(files) == 0 && len(entries) == 0 {
		l.problems = append(l.problems, Problem{File: path.Join(l.name, "agents"), Line: 1, Column: 1, Severity: SeverityError,
			Message: "there are no profiles", Hint: "write agents/NAME.yaml; `agentd config init` writes examples"})
	}
	slices.SortFunc(files, func(a, b *profileFile) int { return strings.Compare(a.profile.File, b.profile.File) })
	return files
}
