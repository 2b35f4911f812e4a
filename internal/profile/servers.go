package profile

import (
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"agentd/fault"
	"agentd/internal/mcp"
)

var serverNameRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)

// serversFile reads MCP servers. A file of the common JSON shape may call the
// list mcpServers, the transport type, and leave it out.
func (l *loader) serversFile(name string, isJSON bool) {
	r := l.read(name, true)
	if r == nil {
		return
	}
	d := r.decoder
	defer func() { l.problems = append(l.problems, d.problems...) }()
	root := d.resolve(r.root, "")
	if root == nil {
		return
	}
	top, ok := d.entries(root, "", placeOfNode(root), 0)
	if !ok {
		return
	}
	found := false
	for _, e := range top {
		if e.key != "servers" && (!isJSON || e.key != "mcpServers") {
			d.fail(e.pos, e.key, "unknown key", "the one key here is servers")
			continue
		}
		found = true
		d.places[e.key] = e.pos
		node := d.resolve(e.node, e.key)
		if _, null := node.(*ast.NullNode); node == nil || null {
			continue
		}
		servers, _ := d.entries(node, e.key, e.pos, 1)
		for _, s := range servers {
			l.server(d, e.key, s, isJSON)
		}
	}
	if !found && len(d.problems) == 0 {
		d.fail(place{1, 1}, "servers", "is missing", "add it: servers: {}")
	}
}

func (l *loader) server(d *decoder, parent string, e entry, isJSON bool) {
	key := join(parent, e.key)
	d.places[key] = e.pos
	if !serverNameRE.MatchString(e.key) {
		d.fail(e.pos, key, "is not a name", "use 1 to 32 letters, digits, _ or -, beginning with a letter or digit")
	}
	if first, ok := l.servers[e.key]; ok {
		d.fail(e.pos, key, fmt.Sprintf("another server is named %q: %s, line %d", e.key, first.file, first.pos.line), "rename one of them")
		return
	}
	l.servers[e.key] = source{d.file, e.pos}
	before := len(d.problems)
	node := e.node
	if isJSON {
		var disabled bool
		if node, disabled = commonShape(node); disabled {
			return
		}
	}
	var cfg mcp.ServerConfig
	v := reflect.ValueOf(&cfg).Elem()
	setDefaults(v)
	if _, null := d.resolve(node, key).(*ast.NullNode); null {
		d.fail(e.pos, key, "has no value", "give a transport and a command or url")
		return
	}
	d.value(node, key, v, "", 1)
	d.serverProblems(key, cfg.Validate(), d.problems[before:])
	if d.problems[before:].Err() != nil {
		return
	}
	l.config.Servers[e.key] = cfg
	l.program(d, join(key, "command"), &cfg)
}

// program notes a program that is not there. It is no error: it may be installed
// later, and the folder may be meant for another machine.
func (l *loader) program(d *decoder, key string, cfg *mcp.ServerConfig) {
	if l.opts.LookPath == nil || cfg.Transport != "stdio" {
		return
	}
	if _, err := l.opts.LookPath(cfg.Command); err == nil || errors.Is(err, exec.ErrDot) {
		return
	}
	msg := "there is no such program"
	if !strings.ContainsAny(cfg.Command, `/\`) {
		msg += " on the PATH"
	}
	pos := d.at(key)
	d.problems = append(d.problems, Problem{File: d.file, Line: pos.line, Column: pos.column, Key: key, Severity: SeverityNotice,
		Message: msg, Hint: "install it, or write its path; until then the server's tools are missing"})
}

// serverProblems gives what the server's own checks found its place. Keys that
// could not be read have their problem already.
func (d *decoder) serverProblems(key string, err error, already Problems) {
	if err == nil || slices.ContainsFunc(already, func(p Problem) bool { return p.Key == key }) {
		return
	}
	errs := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs = joined.Unwrap()
	}
	for _, err := range errs {
		var f *fault.Error
		if !errors.As(err, &f) {
			d.fail(d.at(key), key, "is not right", "compare with docs/configuration.md")
			continue
		}
		k := join(key, f.Field)
		if d.wrong(k) {
			continue
		}
		msg := fmt.Sprint(f.Err)
		for path := range d.fromEnv {
			if path == k || strings.HasPrefix(path, k+".") || strings.HasPrefix(path, k+"[") {
				msg = "is not right, with the text from the environment"
			}
		}
		d.fail(d.at(k), k, msg, f.Hint)
	}
}

// commonShape rewrites what other programs call differently, and reports
// whether the server is switched off.
func commonShape(n ast.Node) (out ast.Node, disabled bool) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return n, false
	}
	c := *m
	c.Values = nil
	var transport, command, url bool
	for _, v := range m.Values {
		k, ok := v.Key.(*ast.StringNode)
		if !ok {
			c.Values = append(c.Values, v)
			continue
		}
		switch k.Value {
		case "disabled":
			if b, ok := v.Value.(*ast.BoolNode); ok {
				disabled = b.Value
				continue
			}
		case "type", "transport":
			transport = true
			kk := *k
			kk.Value = "transport"
			vv := *v
			vv.Key = &kk
			if s, ok := v.Value.(*ast.StringNode); ok {
				switch strings.ToLower(s.Value) {
				case "http", "streamable-http", "streamablehttp", "streamable_http":
					ss := *s
					ss.Value = "http"
					vv.Value = &ss
				}
			}
			v = &vv
		case "command":
			command = true
		case "url":
			url = true
		}
		c.Values = append(c.Values, v)
	}
	if !transport && command != url {
		kind := "stdio"
		if url {
			kind = "http"
		}
		// The place of the new pair is the server's: that is where a person looks.
		key := &ast.StringNode{BaseNode: &ast.BaseNode{}, Token: m.GetToken(), Value: "transport"}
		value := &ast.StringNode{BaseNode: &ast.BaseNode{}, Token: m.GetToken(), Value: kind}
		c.Values = append(c.Values, &ast.MappingValueNode{BaseNode: &ast.BaseNode{}, Start: m.GetToken(), Key: key, Value: value})
	}
	return &c, disabled
}
