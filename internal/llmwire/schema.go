package llmwire

import (
	"bytes"
	"encoding/json"

	"agentd/internal/jsonrepair"
)

// AppendSchema appends a JSON schema for services that read schemas into types of their
// own, in which the schema `true` (anything) has no place: generators write it for values
// of any type, and one of them in one tool has the whole request refused. It becomes {},
// and `false` becomes {"not":{}}, which mean the same.
func AppendSchema(dst []byte, schema json.RawMessage) []byte {
	o, _ := jsonrepair.Object(schema)
	if !bytes.Contains(o, []byte("true")) && !bytes.Contains(o, []byte("false")) {
		return append(dst, o...)
	}
	return appendSchema(dst, o)
}

func appendSchema(dst, raw []byte) []byte {
	switch {
	case string(raw) == "true":
		return append(dst, "{}"...)
	case string(raw) == "false":
		return append(dst, `{"not":{}}`...)
	case len(raw) > 0 && raw[0] == '[': // items of a tuple, in older drafts
		return appendSchemas(dst, raw)
	case len(raw) == 0 || raw[0] != '{':
		return append(dst, raw...)
	}
	return appendMembers(dst, raw, func(dst, key, value []byte) []byte {
		switch string(key) {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			return appendNamed(dst, value)
		case "anyOf", "oneOf", "allOf", "prefixItems":
			return appendSchemas(dst, value)
		case "items", "contains", "not", "if", "then", "else", "propertyNames":
			return appendSchema(dst, value)
		case "additionalProperties", "unevaluatedProperties":
			if len(value) > 0 && value[0] == '{' { // yes and no are its usual values
				return appendSchema(dst, value)
			}
		}
		return append(dst, value...)
	})
}

// appendNamed appends an object whose members are schemas.
func appendNamed(dst, raw []byte) []byte {
	if len(raw) == 0 || raw[0] != '{' {
		return append(dst, raw...)
	}
	return appendMembers(dst, raw, func(dst, _, value []byte) []byte { return appendSchema(dst, value) })
}

// appendMembers appends an object, with each value as write has it.
func appendMembers(dst, raw []byte, write func(dst, key, value []byte) []byte) []byte {
	dst = append(dst, '{')
	first := true
	for c := Object(raw); ; first = false {
		key, value, ok := c.Member()
		if !ok {
			return append(dst, '}')
		}
		if !first {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), key...), '"', ':')
		dst = write(dst, key, value)
	}
}

// appendSchemas appends a list of schemas.
func appendSchemas(dst, raw []byte) []byte {
	if len(raw) == 0 || raw[0] != '[' {
		return append(dst, raw...)
	}
	dst = append(dst, '[')
	first := true
	for c := Array(raw); ; first = false {
		one, ok := c.Element()
		if !ok {
			return append(dst, ']')
		}
		if !first {
			dst = append(dst, ',')
		}
		dst = appendSchema(dst, one)
	}
}
