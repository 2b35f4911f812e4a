package tool

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of the walk: a schema may refer to itself, and alternatives within
// alternatives multiply. What lies beyond is validated as it came.
const (
	maxCoerceDepth = 64
	maxCoerceSteps = 10_000
)

// coercer is one walk over a value.
type coercer struct{ steps int }

// coerce returns value brought nearer to what the schema wants. Maps and lists
// of value may be changed in place; they are the caller's own copy. Whether the
// result is valid is for validation to say.
func (co *coercer) coerce(s *jsonschema.Schema, value any, depth int) any {
	if co.steps++; s == nil || s.Bool != nil || depth > maxCoerceDepth || co.steps > maxCoerceSteps {
		return value
	}
	if s.Ref != nil {
		value = co.coerce(s.Ref, value, depth+1)
	}
	for _, part := range s.AllOf {
		value = co.coerce(part, value, depth+1)
	}
	value = coerceType(s, value)
	value = co.union(s.AnyOf, value, depth)
	value = co.union(s.OneOf, value, depth)
	switch x := value.(type) {
	case map[string]any:
		co.object(s, x, depth)
	case []any:
		for i := range x {
			if item := itemSchema(s, i); item != nil {
				x[i] = co.coerce(item, x[i], depth+1)
			}
		}
	}
	return value
}

func (co *coercer) object(s *jsonschema.Schema, obj map[string]any, depth int) {
	for name, value := range obj {
		sub := s.Properties[name]
		if sub == nil {
			if extra, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && len(s.PatternProperties) == 0 {
				obj[name] = co.coerce(extra, value, depth+1)
			}
			continue
		}
		if value == nil && !slices.Contains(s.Required, name) && sub.Validate(nil) != nil {
			// Models write null for "not given".
			delete(obj, name)
			continue
		}
		obj[name] = co.coerce(sub, value, depth+1)
	}
}

// itemSchema is the schema of a list's element, in the words of every draft.
func itemSchema(s *jsonschema.Schema, i int) *jsonschema.Schema {
	if i < len(s.PrefixItems) {
		return s.PrefixItems[i]
	}
	if s.Items2020 != nil {
		return s.Items2020
	}
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		return items
	case []*jsonschema.Schema:
		if i < len(items) {
			return items[i]
		}
		extra, _ := s.AdditionalItems.(*jsonschema.Schema)
		return extra
	}
	return nil
}

// union prefers a value that already fits an alternative, then the first
// alternative that fits after conversion.
func (co *coercer) union(arms []*jsonschema.Schema, value any, depth int) any {
	if len(arms) == 0 || slices.ContainsFunc(arms, func(arm *jsonschema.Schema) bool { return arm.Validate(value) == nil }) {
		return value
	}
	for _, arm := range arms {
		if co.steps > maxCoerceSteps {
			break
		}
		if c := co.coerce(arm, clone(value), depth+1); arm.Validate(c) == nil {
			return c
		}
	}
	return value
}

// coerceType converts a value whose type the schema does not allow.
func coerceType(s *jsonschema.Schema, value any) any {
	if s.Types == nil || s.Types.IsEmpty() {
		return coerceConstant(s, value)
	}
	want := s.Types.ToStrings()
	if fits(want, value) {
		return value
	}
	for _, t := range want {
		if c, ok := convert(t, value); ok {
			return c
		}
	}
	// One value where a list of such values is wanted.
	if slices.Contains(want, "array") && value != nil {
		return []any{value}
	}
	return value
}

// coerceConstant takes the one constant that is written like the value, where a
// schema lists constants without naming their type.
func coerceConstant(s *jsonschema.Schema, value any) any {
	if s.Enum == nil {
		return value
	}
	text, ok := scalarText(value)
	if !ok {
		return value
	}
	for _, v := range s.Enum.Values {
		if t, ok := scalarText(v); ok && t == text {
			return v
		}
	}
	return value
}

func fits(types []string, value any) bool {
	name := typeName(value)
	if slices.Contains(types, name) {
		return true
	}
	if n, ok := value.(json.Number); ok && slices.Contains(types, "integer") {
		r, ok := new(big.Rat).SetString(string(n))
		return ok && r.IsInt()
	}
	return false
}

// convert reads value as a value of another type, if that has one plain meaning.
func convert(to string, value any) (any, bool) {
	switch to {
	case "string":
		if value == nil {
			return nil, false
		}
		return scalarText(value)
	case "number", "integer":
		switch x := value.(type) {
		case bool:
			if x {
				return json.Number("1"), true
			}
			return json.Number("0"), true
		case string:
			n := json.Number(strings.TrimSpace(x))
			if !json.Valid([]byte(n)) || !fits([]string{"number"}, mustNumber(n)) || !fits([]string{to}, n) {
				return nil, false
			}
			if _, huge := hugeNumber(n); huge {
				return nil, false
			}
			return n, true
		}
	case "boolean":
		switch x := value.(type) {
		case string:
			switch strings.ToLower(strings.TrimSpace(x)) {
			case "true":
				return true, true
			case "false":
				return false, true
			}
		case json.Number:
			switch x {
			case "1":
				return true, true
			case "0":
				return false, true
			}
		}
	case "null":
		if s, ok := value.(string); ok && (s == "" || s == "null") {
			return nil, true
		}
	case "array", "object":
		if s, ok := value.(string); ok {
			if inner, ok := decodeText(s); ok && typeName(inner) == to {
				return inner, true
			}
		}
	}
	return nil, false
}

// mustNumber decodes a valid JSON text; anything but a number stays what it is.
func mustNumber(n json.Number) any {
	v, err := decode(json.RawMessage(n))
	if err != nil {
		return nil
	}
	return v
}

func scalarText(value any) (string, bool) {
	switch x := value.(type) {
	case string:
		return x, true
	case json.Number:
		return string(x), true
	case bool:
		if x {
			return "true", true
		}
		return "false", true
	case nil:
		return "null", true
	}
	return "", false
}

// typeName is JSON Schema's name of the value's type.
func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

func clone(value any) any {
	switch x := value.(type) {
	case []any:
		c := make([]any, len(x))
		for i := range x {
			c[i] = clone(x[i])
		}
		return c
	case map[string]any:
		c := make(map[string]any, len(x))
		for k := range x {
			c[k] = clone(x[k])
		}
		return c
	}
	return value
}
