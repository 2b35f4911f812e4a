package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"agentd/fault"
)

// Decode reads a JSON object into a struct and refuses what the struct does not
// have: unknown and repeated fields, wrong types, more than one value.
func Decode(body []byte, into any) error {
	if err := checkSyntax(body); err != nil {
		return err
	}
	if err := checkKeys(body, into); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return explain(body, err)
	}
	return nil
}

// DecodeLoose is Decode for protocols whose clients send fields of their own:
// unknown fields are ignored.
func DecodeLoose(body []byte, into any) error {
	if err := checkSyntax(body); err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return explain(body, err)
	}
	return nil
}

func checkSyntax(body []byte) error {
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	if len(trimmed) == 0 {
		return &fault.Error{Kind: fault.Invalid, Err: errors.New("the body is empty"), Hint: "Send a JSON object."}
	}
	if !json.Valid(body) {
		var v struct{}
		return explain(body, json.Unmarshal(body, &v))
	}
	if !utf8.Valid(body) {
		return &fault.Error{Kind: fault.Invalid, Err: errors.New("the body is not UTF-8")}
	}
	if trimmed[0] != '{' {
		return &fault.Error{Kind: fault.Invalid, Err: errors.New("the body must be a JSON object, not " + kindOf(trimmed[0]))}
	}
	return nil
}

// checkKeys finds unknown and repeated keys of the object and says where they are.
func checkKeys(body []byte, into any) error {
	known := fields(into)
	dec := json.NewDecoder(bytes.NewReader(body))
	if _, err := dec.Token(); err != nil {
		return explain(body, err)
	}
	seen := map[string]bool{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return explain(body, err)
		}
		name, _ := key.(string)
		at := position(body, dec.InputOffset())
		switch {
		case !slices.Contains(known, name):
			return &fault.Error{Kind: fault.Invalid, Field: Clip(name, 80), Err: fmt.Errorf("unknown field at %s", at),
				Hint: "The fields are: " + strings.Join(known, ", ") + "."}
		case seen[name]:
			return &fault.Error{Kind: fault.Invalid, Field: name, Err: fmt.Errorf("the field is there twice, again at %s", at)}
		}
		seen[name] = true
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			return explain(body, err)
		}
	}
	return nil
}

// fields lists the JSON names of a struct in source order.
func fields(into any) []string {
	t := reflect.TypeOf(into).Elem()
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// explain says in terms of the body what the decoder found.
func explain(body []byte, err error) error {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	var made *fault.Error
	switch {
	case errors.As(err, &made):
		return err
	case errors.As(err, &syntax):
		return &fault.Error{Kind: fault.Invalid, Err: fmt.Errorf("malformed JSON at %s: %s", position(body, syntax.Offset), syntax.Error())}
	case errors.As(err, &typ):
		return &fault.Error{Kind: fault.Invalid, Field: typ.Field,
			Err: fmt.Errorf("must be %s, not %s, at %s", wanted(typ.Type), Clip(typ.Value, 60), position(body, typ.Offset))}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return &fault.Error{Kind: fault.Invalid, Field: Clip(strings.Trim(name, `"`), 80), Err: errors.New("unknown field")}
	}
	return &fault.Error{Kind: fault.Invalid, Err: err}
}

// position gives line and column, counted from 1, of the byte before an offset.
func position(body []byte, offset int64) string {
	at := max(0, min(int(offset)-1, len(body)))
	line := 1 + bytes.Count(body[:at], []byte{'\n'})
	start := bytes.LastIndexByte(body[:at], '\n') + 1
	return fmt.Sprintf("line %d, column %d", line, utf8.RuneCount(body[start:at])+1)
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Pointer:
		return wanted(t.Elem())
	}
	return "an object"
}

func kindOf(first byte) string {
	switch first {
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// Given reports whether an optional field is there and not null.
func Given(raw json.RawMessage) bool {
	return len(raw) > 0 && !bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}
