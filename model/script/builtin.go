package script

import (
	"cmp"
	"errors"
	"fmt"
	"html"
	"maps"
	"net/url"
	"reflect"
)

// builtins are Go's own functions of templates, but for `call`, for which there
// is nothing, and `js`. `and` and `or` are evaluated with their arguments.
func builtins() map[string]any {
	return map[string]any{
		"and": truth, "or": truth, // for the parser
		"not":      func(v any) bool { return !truth(v) },
		"len":      length,
		"index":    item,
		"slice":    piece,
		"print":    fmt.Sprint,
		"printf":   fmt.Sprintf,
		"println":  fmt.Sprintln,
		"html":     func(v ...any) string { return html.EscapeString(fmt.Sprint(v...)) },
		"urlquery": func(v ...any) string { return url.QueryEscape(fmt.Sprint(v...)) },
		"eq":       equal,
		"ne":       func(a, b any) (bool, error) { ok, err := equal(a, b); return !ok, err },
		"lt":       func(a, b any) (bool, error) { c, err := order(a, b); return c < 0, err },
		"le":       func(a, b any) (bool, error) { c, err := order(a, b); return c <= 0, err },
		"gt":       func(a, b any) (bool, error) { c, err := order(a, b); return c > 0, err },
		"ge":       func(a, b any) (bool, error) { c, err := order(a, b); return c >= 0, err },
	}
}

// allFunctions are Go's own and the scripts' functions.
func allFunctions() map[string]any {
	all := builtins()
	maps.Copy(all, functions())
	return all
}

var errKinds = errors.New("incompatible types for comparison")

// equal is whether a equals any of the others.
func equal(a any, others ...any) (bool, error) {
	if len(others) == 0 {
		return false, errors.New("missing argument for comparison")
	}
	for _, b := range others {
		x, isBool := a.(bool)
		if y, ok := b.(bool); ok && isBool {
			if x == y {
				return true, nil
			}
			continue
		}
		if a == nil || b == nil {
			if a == nil && b == nil {
				return true, nil
			}
			continue
		}
		c, err := order(a, b)
		if err != nil {
			return false, err
		}
		if c == 0 {
			return true, nil
		}
	}
	return false, nil
}

// order compares two texts or two numbers.
func order(a, b any) (int, error) {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	switch {
	case x.Kind() == reflect.String && y.Kind() == reflect.String:
		return cmp.Compare(x.String(), y.String()), nil
	case x.IsValid() && y.IsValid() && x.CanInt() && y.CanInt():
		return cmp.Compare(x.Int(), y.Int()), nil
	case x.IsValid() && y.IsValid() && x.CanFloat() && y.CanFloat():
		return cmp.Compare(x.Float(), y.Float()), nil
	}
	return 0, errKinds
}
