package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentd/fault"
	"agentd/internal/mcp"
)

// Config is everything that a configuration folder says. It is read-only.
type Config struct {
	Settings Settings
	// Profiles by name.
	Profiles map[string]*Profile
	// Servers are the MCP servers by name.
	Servers map[string]mcp.ServerConfig

	fsys fs.FS
}

// Names lists the profiles, sorted.
func (c *Config) Names() []string { return slices.Sorted(maps.Keys(c.Profiles)) }

// Profile finds a profile by name, or by name@version. The error is a
// *fault.Error of kind not_found that lists the profiles there are.
func (c *Config) Profile(name string) (*Profile, error) {
	bare, version, versioned := strings.Cut(name, "@")
	p, ok := c.Profiles[bare]
	if ok && (!versioned || p.ProfileVersion == version) {
		return p, nil
	}
	err := &fault.Error{Kind: fault.NotFound, Field: "profile", Err: fmt.Errorf("no profile is named %q", bare),
		Hint: "profiles: " + strings.Join(c.Names(), ", ")}
	switch near := nearest(bare, c.Names()); {
	case ok:
		err.Err = fmt.Errorf("profile %q has version %s, not %s", bare, p.ProfileVersion, version)
		err.Hint = "ask for " + bare + "@" + p.ProfileVersion + ", or for " + bare
	case len(c.Profiles) == 0:
		err.Hint = "there are no profiles; `agentd config init` writes some"
	case near != "":
		err.Hint = "did you mean " + near + "? " + err.Hint
	}
	return nil, err
}

// Script reads the script file of a scripted model; nil if it names none.
func (c *Config) Script(m *Model) ([]byte, error) {
	if m.Script == "" {
		return nil, nil
	}
	if filepath.IsAbs(m.Script) {
		return os.ReadFile(m.Script)
	}
	if c.fsys == nil {
		return nil, errors.New("a relative script needs a configs folder")
	}
	return fs.ReadFile(c.fsys, filepath.ToSlash(filepath.Clean(m.Script)))
}

// String counts what there is; values stay out of logs.
func (c *Config) String() string {
	count := func(n int, what string) string {
		if n == 1 {
			return "1 " + what
		}
		return fmt.Sprintf("%d %ss", n, what)
	}
	return count(len(c.Profiles), "profile") + ", " + count(len(c.Servers), "MCP server")
}

// GoString counts what there is; values stay out of logs.
func (c *Config) GoString() string { return c.String() }
