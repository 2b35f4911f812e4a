package profile

import (
	"fmt"
	"net"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"agentd/message"
)

// field is a key of a configuration struct. Its tag says:
//
//	required  the key must be there
//	default   what it is when it is not
//	enum      the values it may have, by commas
//	min, max  the numbers it must lie between
//	format    url, env, regex, addr, origin, pool or pools
//	example   for documentation
type field struct {
	name  string
	index []int
	tag   reflect.StructTag
	typ   reflect.Type
	// owner is the struct that declares it, goName its name there.
	owner  reflect.Type
	goName string
}

// fieldsOf lists the keys of a struct in order, those of embedded structs
// among them. The key is in the json tag, or in the yaml tag where there is one.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			for _, sub := range fieldsOf(f.Type) {
				sub.index = append([]int{i}, sub.index...)
				out = append(out, sub)
			}
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if y, ok := f.Tag.Lookup("yaml"); ok {
			name, _, _ = strings.Cut(y, ",")
		}
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		out = append(out, field{name: name, index: []int{i}, tag: f.Tag, typ: f.Type, owner: t, goName: f.Name})
	}
	return out
}

// setDefaults fills v, if it is a struct, from the default tags.
func setDefaults(v reflect.Value) {
	if v.Kind() != reflect.Struct {
		return
	}
	for _, f := range fieldsOf(v.Type()) {
		dst := v.FieldByIndex(f.index)
		if dst.Kind() == reflect.Struct {
			setDefaults(dst)
			continue
		}
		def := f.tag.Get("default")
		if def == "" {
			continue
		}
		var err error
		switch p := dst.Addr().Interface().(type) {
		case *Duration:
			err = p.UnmarshalText([]byte(def))
		case *string:
			*p = def
		case *bool:
			*p, err = strconv.ParseBool(def)
		case *int:
			*p, err = strconv.Atoi(def)
		case *int64:
			*p, err = strconv.ParseInt(def, 10, 64)
		case *float64:
			*p, err = strconv.ParseFloat(def, 64)
		default:
			err = fmt.Errorf("no defaults for %s", dst.Type())
		}
		if err != nil {
			panic("profile: default of " + f.name + ": " + err.Error())
		}
	}
}

func (d *decoder) number(n ast.Node, path string, pos place, dst reflect.Value) {
	text := strings.ReplaceAll(n.GetToken().Value, "_", "")
	if dst.Kind() == reflect.Float64 {
		switch x := n.(type) {
		case *ast.FloatNode:
			dst.SetFloat(x.Value)
			return
		case *ast.IntegerNode:
			if v, err := strconv.ParseFloat(text, 64); err == nil {
				dst.SetFloat(v)
				return
			}
		}
		d.wrongType(n, path, pos, "a number")
		return
	}
	if x, ok := n.(*ast.IntegerNode); ok {
		switch v := x.Value.(type) {
		case int64:
			if !dst.OverflowInt(v) {
				dst.SetInt(v)
				return
			}
		case uint64:
			if v <= 1<<63-1 && !dst.OverflowInt(int64(v)) {
				dst.SetInt(int64(v))
				return
			}
		}
		d.fail(pos, path, "is too large", "write a smaller number")
		return
	}
	if t := n.GetToken(); t.Type == token.StringType && strings.Trim(text, "0123456789") == "" {
		d.fail(pos, path, "is too large", "write a smaller number")
		return
	}
	d.wrongType(n, path, pos, "an integer")
}

// limits checks min and max.
func (d *decoder) limits(pos place, path string, v reflect.Value, tag reflect.StructTag) {
	lo, hi := tag.Get("min"), tag.Get("max")
	if lo == "" && hi == "" {
		return
	}
	var below, above bool
	switch x := v.Interface().(type) {
	case Duration:
		a, _ := time.ParseDuration(lo)
		below = lo != "" && x.Std() < a
	case message.Money:
		a, _ := message.ParseMoney(lo)
		below = lo != "" && x < a
	default:
		var f float64
		switch v.Kind() {
		case reflect.Float64:
			f = v.Float()
		case reflect.Int, reflect.Int32, reflect.Int64:
			f = float64(v.Int())
		default:
			return
		}
		a, _ := strconv.ParseFloat(lo, 64)
		b, _ := strconv.ParseFloat(hi, 64)
		below = lo != "" && !(f >= a)
		above = hi != "" && !(f <= b)
	}
	switch {
	case !below && !above:
	case lo != "" && hi != "":
		d.fail(pos, path, "is out of range", "write a value from "+lo+" to "+hi)
	default:
		d.fail(pos, path, "is out of range", "write "+lo+" or more")
	}
}

// format checks a text against the enum and format tags.
func (d *decoder) format(pos place, path, s string, tag reflect.StructTag) {
	if enum := tag.Get("enum"); enum != "" {
		words := strings.Split(enum, ",")
		if !slices.Contains(words, s) {
			hint := "one of: " + strings.Join(words, ", ")
			if near := didYouMean(s, words); near != "" && !d.fromEnv[path] {
				hint = near + " " + hint
			}
			d.fail(pos, path, "does not know the value "+d.quote(path, s), hint)
		}
	}
	switch tag.Get("format") {
	case "url":
		if u, err := url.Parse(s); s != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
			d.fail(pos, path, "is not an address", "write http://host/path or https://host/path")
		}
	case "origin":
		if strings.Contains(s, "*") {
			d.fail(pos, path, "is a pattern, which matches no origin", "write each origin out: scheme://host[:port], such as http://127.0.0.1:3000")
		} else if u, err := url.Parse(s); err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.RawQuery != "" {
			d.fail(pos, path, "is not an origin", "write scheme://host[:port] without a path, such as http://127.0.0.1:3000")
		}
	case "addr":
		if _, port, err := net.SplitHostPort(s); err != nil || port == "" {
			d.fail(pos, path, "is not host:port", "such as 127.0.0.1:7070")
		} else if n, err := strconv.ParseUint(port, 10, 16); err != nil || n > 65535 {
			d.fail(pos, path, "has a port that is no number from 0 to 65535", "such as 127.0.0.1:7070")
		}
	case "env":
		if s != "" && !envName(s) {
			// It may be the key itself: it is not shown.
			d.fail(pos, path, "is not the name of an environment variable", "write the variable's name, not the key itself")
		}
	case "pool":
		if s != "" && !poolRE.MatchString(s) {
			d.fail(pos, path, "is not the name of a pool", "use 1 to 32 small letters, digits, _ or -, without model. or tool. ahead of it")
		}
	case "pools":
		if !servedPool(s) {
			d.fail(pos, path, "is not a pool that a node can serve", poolHint)
		}
	case "regex":
		if _, err := regexp.Compile(s); err != nil {
			d.fail(pos, path, "is not a regular expression", "see https://golang.org/s/re2syntax")
		}
	}
}
