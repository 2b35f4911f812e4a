package skill

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Skill is what is known of a skill before its text is read.
type Skill struct {
	Name, Description string
	// Tools are the names of tools that it says it needs.
	Tools                  []string
	License, Compatibility string
	Metadata               map[string]string
	// Source is where it was found: profile, project, user or pack.
	Source string
	// File is the file with its text, Dir the folder with its other files; "" if it
	// is a file by itself.
	File, Dir string
	// Size is that of its text in bytes.
	Size int

	// text is the file with its text, files the folder with its other files; both as
	// they were when it was found.
	text, files place
}

// place is where something of a skill is: below a folder without symbolic links, which
// what is read must lie in.
type place struct{ root, name string }

// Severity is how bad a problem is.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the skill can not be used
	Warning Severity = "warning" // it can, though something is wrong
)

// Problem is one thing that is wrong, and where.
type Problem struct {
	File     string
	Line     int
	Severity Severity
	Message  string
	Hint     string
}

// String is the problem on one line, as file:line: severity: message (hint).
func (p Problem) String() string {
	s := fmt.Sprintf("%s:%d: %s: %s", p.File, max(1, p.Line), p.Severity, p.Message)
	if p.Hint != "" {
		s += " (" + p.Hint + ")"
	}
	return s
}

// Bounds of the standard, and of what is parsed at all.
const (
	maxName          = 64
	maxDescription   = 1024
	maxCompatibility = 500
	maxFront         = 16 << 10
	longText         = 20 << 10 // about 5,000 tokens
)

var (
	standardName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	possibleName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._-]*$`)
)

// Parse reads a skill: its front matter and, as body, the text behind it. folder is
// the name that the standard wants it to have; "" for a file by itself. A skill is
// nil if it can not be used; then a problem is an [Error].
func Parse(file, folder string, data []byte) (s *Skill, body string, problems []Problem) {
	p := &parse{file: file}
	front, body, first := split(data)
	if first == 0 {
		p.add(1, Error, "there is no front matter", "begin the file with a line ---, then name: and description:, then a line ---")
		return nil, "", p.problems
	}
	s = &Skill{Name: folder, File: file, Size: len(body)}
	p.front(s, front, first)
	p.check(s, folder, body)
	if slices.ContainsFunc(p.problems, func(x Problem) bool { return x.Severity == Error }) {
		return nil, "", p.problems
	}
	return s, body, p.problems
}

// split takes a file apart. first is the number of the front matter's first line, 0
// if there is none.
func split(data []byte) (front, body string, first int) {
	text := strings.TrimPrefix(strings.ReplaceAll(string(data), "\r\n", "\n"), "\uFEFF")
	head, rest, ok := strings.Cut(text, "\n")
	if !ok || strings.TrimRight(head, " \t") != "---" {
		return "", "", 0
	}
	at := 0
	for line := range strings.SplitAfterSeq(rest, "\n") {
		if strings.TrimRight(line, " \t\n") == "---" {
			return rest[:at], strings.TrimSpace(strings.ToValidUTF8(rest[at+len(line):], "\uFFFD")), 2
		}
		at += len(line)
	}
	return "", "", 0
}

type parse struct {
	file     string
	problems []Problem
	lines    map[string]int
}

func (p *parse) add(line int, sev Severity, msg, hint string) {
	p.problems = append(p.problems, Problem{File: p.file, Line: line, Severity: sev, Message: msg, Hint: hint})
}

// front reads the front matter. The parser is somebody else's and the file may be
// anybody's: a bug there must not end the process.
func (p *parse) front(s *Skill, text string, first int) {
	p.lines = map[string]int{}
	if len(text) > maxFront || strings.Count(text, "[")+strings.Count(text, "{") > 500 {
		p.add(first, Error, fmt.Sprintf("the front matter has more than %d bytes, or is no list of keys", maxFront), "move what is long into the text behind it")
		return
	}
	defer func() {
		if recover() != nil {
			p.add(first, Error, "the YAML parser failed on the front matter", "check its indentation and quotes")
		}
	}()
	f, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		line, msg := first, "it can not be read"
		var syntax *yaml.SyntaxError
		if errors.As(err, &syntax) {
			line, msg = first-1+lineOf(syntax.Token), syntax.Message
		}
		p.add(line, Error, "the front matter is not YAML: "+msg, "put texts with a colon into quotes")
		return
	}
	for _, doc := range f.Docs {
		var values []*ast.MappingValueNode
		switch n := doc.Body.(type) {
		case *ast.MappingNode:
			values = n.Values
		case *ast.MappingValueNode:
			values = []*ast.MappingValueNode{n}
		}
		for _, v := range values {
			p.value(s, v, first-1)
		}
	}
}

func lineOf(t *token.Token) int {
	if t == nil || t.Position == nil {
		return 1
	}
	return max(1, t.Position.Line)
}

func (p *parse) value(s *Skill, v *ast.MappingValueNode, before int) {
	key, line := v.Key.GetToken().Value, before+lineOf(v.Key.GetToken())
	p.lines[key] = line
	one := func(to *string) {
		text, ok := scalar(v.Value)
		if !ok {
			p.add(line, Error, key+" must be a text", "")
		}
		*to = strings.TrimSpace(text)
	}
	switch key {
	case "name":
		one(&s.Name)
	case "description":
		one(&s.Description)
	case "license":
		one(&s.License)
	case "compatibility":
		one(&s.Compatibility)
	case "tools":
		list, ok := v.Value.(*ast.SequenceNode)
		if !ok {
			p.add(line, Warning, "tools must be a list", "write tools: [NAME, …]")
			return
		}
		for _, n := range list.Values {
			if t, ok := scalar(n); ok && t != "" {
				s.Tools = append(s.Tools, oneLine(t))
			} else {
				p.add(line, Warning, "tools must be a list of names", "write tools: [NAME, …]")
			}
		}
	case "metadata":
		m, ok := v.Value.(*ast.MappingNode)
		if !ok {
			p.add(line, Warning, "metadata must be a mapping of texts", "")
			return
		}
		s.Metadata = map[string]string{}
		for _, x := range m.Values {
			if text, ok := scalar(x.Value); ok {
				s.Metadata[x.Key.GetToken().Value] = text
			}
		}
	case "allowed-tools", "disable-model-invocation":
		p.add(line, Warning, key+" has no effect", "the profile says which tools an agent has, and its skills.deny which skills")
	default:
		p.add(line, Warning, "skills have no key "+oneLine(key), "keys are name, description, tools, license, compatibility, metadata")
	}
}

// scalar is the text of a value that is one.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	case *ast.NullNode:
		return "", true
	}
	return "", false
}

// check holds a skill against the standard. What it says costs a skill is what
// it can not do without; the rest is told.
func (p *parse) check(s *Skill, folder, body string) {
	at := func(key string) int { return max(1, p.lines[key]) }
	switch {
	case s.Name == "":
		p.add(at("name"), Error, "name is missing", "use 1 to 64 letters a-z, digits and hyphens")
	case len(s.Name) > maxName || !possibleName.MatchString(s.Name):
		p.add(at("name"), Error, "name is not a name", "use 1 to 64 letters a-z, digits and hyphens")
	case p.lines["name"] == 0:
		p.add(1, Warning, "name is missing; that of the folder is taken", "write name: "+folder)
	case !standardName.MatchString(s.Name):
		p.add(at("name"), Warning, "name has other characters than a-z, 0-9 and single hyphens between them", "other programs will not find the skill")
	case folder != "" && folder != s.Name:
		p.add(at("name"), Warning, fmt.Sprintf("name is not that of the folder, %s", oneLine(folder)), "other programs want them to be the same")
	}
	switch n := utf8.RuneCountInString(s.Description); {
	case s.Description == "":
		p.add(at("description"), Error, "description is missing", "say what the skill is for and when to use it: models choose by it")
	case n > maxDescription:
		p.add(at("description"), Warning, fmt.Sprintf("description has %d characters, more than %d; models see its beginning", n, maxDescription), "make it shorter")
	}
	if utf8.RuneCountInString(s.Compatibility) > maxCompatibility {
		p.add(at("compatibility"), Warning, fmt.Sprintf("compatibility is longer than %d characters", maxCompatibility), "make it shorter")
	}
	switch {
	case body == "":
		p.add(1, Warning, "there are no instructions behind the front matter", "write what to do")
	case len(body) > longText:
		p.add(1, Warning, fmt.Sprintf("the text has %d bytes; about 5,000 tokens (%d bytes) are advised", len(body), longText), "move parts into files of their own, which are read when they are needed")
	}
}

// oneLine is a text as it may stand in a list: no line breaks, nothing that is not
// seen.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.Join(strings.Fields(text), " ")
}
