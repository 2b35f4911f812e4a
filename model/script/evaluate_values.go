package script

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
)

// truth is whether a value is not the zero of its type, and not empty.
func truth(v any) bool {
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Invalid:
		return false
	case reflect.Slice, reflect.Array, reflect.String, reflect.Map:
		return r.Len() > 0
	case reflect.Struct:
		return true
	}
	return !r.IsZero()
}

var errNoIndex = errors.New("index of untyped nil")

// item is the built-in function index.
func item(v any, at ...int) (any, error) {
	for _, i := range at {
		r := reflect.ValueOf(v)
		switch r.Kind() {
		case reflect.Invalid:
			return nil, errNoIndex
		case reflect.Slice, reflect.Array, reflect.String:
		default:
			return nil, fmt.Errorf("can't index item of type %T", v)
		}
		if i < 0 || i >= r.Len() {
			return nil, errors.New("index out of range: " + strconv.Itoa(i))
		}
		v = r.Index(i).Interface()
	}
	return v, nil
}

// piece is the built-in function slice.
func piece(v any, at ...int) (any, error) {
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice && r.Kind() != reflect.String {
		return nil, fmt.Errorf("can't slice item of type %T", v)
	}
	from, to := 0, r.Len()
	switch len(at) {
	case 2:
		from, to = at[0], at[1]
	case 1:
		from = at[0]
	case 0:
	default:
		return nil, fmt.Errorf("too many slice indexes: %d", len(at))
	}
	if from < 0 || to > r.Len() || from > to {
		return nil, fmt.Errorf("index out of range: %d to %d of %d", from, to, r.Len())
	}
	return r.Slice(from, to).Interface(), nil
}

// length is the built-in function len.
func length(v any) (int, error) {
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Slice, reflect.Array, reflect.String, reflect.Map:
		return r.Len(), nil
	}
	return 0, fmt.Errorf("len of type %T", v)
}
