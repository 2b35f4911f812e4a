package profile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	// maxFile is far above any real configuration.
	maxFile = 1 << 20
	// maxDepth and maxNodes stop documents that are small on disk and endless
	// when their aliases are followed.
	maxDepth = 64
	maxNodes = 100_000
)

// parseYAML reads one document. The node is nil if there are problems.
func parseYAML(file string, data []byte) (root ast.Node, problems Problems) {
	at := func(pos place, msg, hint string) (ast.Node, Problems) {
		return nil, Problems{{File: file, Line: pos.line, Column: pos.column, Message: msg, Hint: hint, Severity: SeverityError}}
	}
	start := place{1, 1}
	if len(data) > maxFile {
		return at(start, fmt.Sprintf("the file has %d bytes, more than %d", len(data), maxFile), "split it")
	}
	if pos, ok := tooDeep(data); ok {
		return at(pos, fmt.Sprintf("nested deeper than %d levels", maxDepth), "a bracket is likely not closed")
	}
	defer func() {
		// The parser is somebody else's and this is a file that a person
		// edits: a bug there must not end the process.
		if r := recover(); r != nil {
			root, problems = at(start, "the YAML parser failed on this file", "check its indentation and quotes")
		}
	}()
	f, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var syntax *yaml.SyntaxError
		if errors.As(err, &syntax) {
			return at(placeOf(syntax.Token), "YAML syntax: "+syntax.Message, "check indentation, quotes and brackets around here")
		}
		return at(start, "YAML syntax: the file cannot be read", "check indentation, quotes and brackets")
	}
	for _, doc := range f.Docs {
		if doc.Body == nil {
			continue
		}
		if _, ok := doc.Body.(*ast.DirectiveNode); ok {
			continue
		}
		if root != nil {
			return at(placeOfNode(doc.Body), "a second document in one file", "keep one document and put the other in its own file")
		}
		root = doc.Body
	}
	if root == nil {
		return at(start, "the file is empty", "fill it, or delete it; `agentd config init` writes examples")
	}
	return root, nil
}

// tooDeep looks for nesting that no person writes before the parser, which
// recurses, sees it.
func tooDeep(data []byte) (place, bool) {
	pos, depth := place{1, 1}, 0
	for _, c := range data {
		switch c {
		case '[', '{':
			if depth++; depth > 16*maxDepth {
				return pos, true
			}
		case ']', '}':
			depth = max(0, depth-1)
		}
		pos.column++
		if c == '\n' {
			pos = place{pos.line + 1, 1}
		}
	}
	return place{}, false
}

// place is a position, counted from 1.
type place struct{ line, column int }

func placeOf(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{1, 1}
	}
	return place{max(1, t.Position.Line), max(1, t.Position.Column)}
}

// placeOfNode is where the node begins as a person sees it: a mapping begins at
// its first key.
func placeOfNode(n ast.Node) place {
	switch n := n.(type) {
	case nil:
		return place{1, 1}
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return placeOfNode(n.Values[0])
		}
	case *ast.MappingValueNode:
		if n.Key != nil {
			return placeOf(n.Key.GetToken())
		}
	}
	return placeOf(n.GetToken())
}

// kindOf names what a node is, in words for people.
func kindOf(n ast.Node) string {
	switch n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return "a text"
	case *ast.IntegerNode:
		return "an integer"
	case *ast.FloatNode:
		return "a number with decimals"
	case *ast.InfinityNode, *ast.NanNode:
		return ".inf or .nan"
	case *ast.BoolNode:
		return "a boolean"
	case *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	}
	return strings.ToLower(n.Type().String())
}
