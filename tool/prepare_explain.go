package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

func printer() *message.Printer { return message.NewPrinter(language.English) }

// explain turns the validator's tree of errors into a list of what to change.
func explain(err error) []ArgumentProblem {
	var root *jsonschema.ValidationError
	if !errors.As(err, &root) {
		return []ArgumentProblem{{Message: err.Error()}}
	}
	problems := explainTree(root)
	slices.SortStableFunc(problems, func(a, b ArgumentProblem) int { return strings.Compare(a.Path, b.Path) })
	problems = slices.Compact(problems)
	if len(problems) == 0 {
		problems = []ArgumentProblem{{Message: "does not fit the schema"}}
	}
	return problems
}

func explainTree(e *jsonschema.ValidationError) []ArgumentProblem {
	at := path(e.InstanceLocation)
	one := func(format string, args ...any) []ArgumentProblem {
		return []ArgumentProblem{{Path: at, Message: fmt.Sprintf(format, args...)}}
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return one("must be %s, not %s", orList(k.Want), k.Got)
	case *kind.Required:
		var out []ArgumentProblem
		for _, name := range k.Missing {
			out = append(out, ArgumentProblem{Path: join(at, name), Message: "is missing"})
		}
		return out
	case *kind.AdditionalProperties:
		var out []ArgumentProblem
		for _, name := range k.Properties {
			out = append(out, ArgumentProblem{Path: join(at, name), Message: "is not known here"})
		}
		return out
	case *kind.Enum:
		return one("must be one of %s, not %s", values(k.Want), values([]any{k.Got}))
	case *kind.Const:
		return one("must be %s, not %s", values([]any{k.Want}), values([]any{k.Got}))
	case *kind.Format:
		return one("must be a valid %s, which %s is not", k.Want, values([]any{k.Got}))
	case *kind.FalseSchema:
		return one("must not be given")
	case *kind.AnyOf:
		return one("fits none of the alternatives: %s", alternatives(e))
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			return one("fits more than one of the alternatives, and must fit one")
		}
		return one("fits none of the alternatives: %s", alternatives(e))
	}
	if len(e.Causes) > 0 {
		var out []ArgumentProblem
		for _, c := range e.Causes {
			out = append(out, explainTree(c)...)
		}
		return out
	}
	return one("%s", shorten(e.ErrorKind.LocalizedString(printer()), 300))
}

// alternatives says in one line why each alternative does not fit.
func alternatives(e *jsonschema.ValidationError) string {
	var parts []string
	for i, c := range e.Causes {
		var why []string
		for _, p := range explainTree(c) {
			where := strings.TrimPrefix(strings.TrimPrefix(p.Path, path(e.InstanceLocation)), ".")
			if where != "" {
				where += " "
			}
			why = append(why, where+p.Message)
		}
		parts = append(parts, fmt.Sprintf("(%d) %s", i+1, strings.Join(why, ", ")))
	}
	return shorten(strings.Join(parts, "; "), 600)
}

func orList(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	return strings.Join(words, "")
}

func values(vs []any) string {
	var parts []string
	for _, v := range vs {
		b, err := EncodeJSON(v)
		if err != nil {
			b = json.RawMessage("?")
		}
		parts = append(parts, shorten(string(b), 100))
	}
	return shorten(strings.Join(parts, ", "), 400)
}

var indexRE = regexp.MustCompile(`^[0-9]+$`)

// path writes a place as filter.tags[2].name.
func path(at []string) string {
	p := ""
	for _, part := range at {
		p = join(p, part)
	}
	return p
}

func join(p, part string) string {
	switch {
	case indexRE.MatchString(part) && p != "":
		return p + "[" + part + "]"
	case p == "":
		return part
	}
	return p + "." + part
}
