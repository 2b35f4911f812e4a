package tool

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxSchemas bounds the compiled schemas that a validator keeps. Agents have
// tens of tools; a server that invents a new schema for every list must not
// fill the memory.
const maxSchemas = 1024

// Validator prepares the arguments of calls. It keeps the schemas that it
// compiled, at most 1,024, and is safe for concurrent use.
type Validator struct {
	mu      sync.Mutex
	schemas map[[sha256.Size]byte]*compiled
}

// NewValidator returns a validator without any schema yet.
func NewValidator() *Validator {
	return &Validator{schemas: make(map[[sha256.Size]byte]*compiled)}
}

// ArgumentError says everything that is wrong with the arguments of a call, in
// words that the model can act on.
type ArgumentError struct {
	// Tool is the name of the tool.
	Tool string
	// Problems has at least one entry.
	Problems []ArgumentProblem
	// Received are the arguments as they came, shortened.
	Received string
}

// ArgumentProblem is one thing that is wrong.
type ArgumentProblem struct {
	// Path leads to the value: filter.tags[2].name. It is empty for the
	// arguments as a whole.
	Path    string
	Message string
}

const (
	maxListed   = 50
	maxReceived = 1000
)

// Error lists the problems, one a line.
func (e *ArgumentError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "The arguments of %s are not valid:", e.Tool)
	list(&b, e.Problems)
	fmt.Fprintf(&b, "\nReceived: %s", e.Received)
	return b.String()
}

// list writes problems, one a line, and how many there are beyond maxListed.
func list(b *strings.Builder, problems []ArgumentProblem) {
	for i, p := range problems {
		if i == maxListed {
			fmt.Fprintf(b, "\n- and %d more", len(problems)-i)
			return
		}
		b.WriteString("\n- ")
		if p.Path != "" {
			b.WriteString(p.Path)
			b.WriteString(": ")
		}
		b.WriteString(p.Message)
	}
}

// ValueError says everything that is wrong with a value, such as a person's
// answer.
type ValueError struct {
	// Problems has at least one entry.
	Problems []ArgumentProblem
}

// Error lists the problems, one a line.
func (e *ValueError) Error() string {
	var b strings.Builder
	b.WriteString("it does not fit its schema:")
	list(&b, e.Problems)
	return b.String()
}

// Prepare decodes, coerces and validates the arguments of a call and returns
// the arguments to run with. raw is never changed. Empty arguments are {}.
//
// Numbers keep every digit. A null for an optional property that may not be
// null is dropped. A value of the wrong type is converted where one reading is
// plain: "123" to 123, "true" to true, 1 to "1", a JSON text to the list or
// object that it holds, one value to a list of it. Where a schema gives
// alternatives, a value that fits one is left alone; else the first alternative
// that fits after conversion is taken. Defaults are not filled in. What the
// schema gets wrong is not held against the arguments (see [Validator.Check]).
func (v *Validator) Prepare(spec Spec, raw json.RawMessage) (json.RawMessage, *ArgumentError) {
	fail := func(problems ...ArgumentProblem) (json.RawMessage, *ArgumentError) {
		return nil, &ArgumentError{Tool: spec.Name, Problems: problems, Received: shorten(string(raw), maxReceived)}
	}
	value, err := decode(raw)
	if err != nil {
		return fail(ArgumentProblem{Message: err.Error()})
	}
	if s, ok := value.(string); ok {
		if inner, ok := decodeText(s); ok {
			value = inner
		}
	}
	if value == nil {
		value = map[string]any{}
	}
	args, ok := value.(map[string]any)
	if !ok {
		return fail(ArgumentProblem{Message: "must be a JSON object, not " + typeName(value)})
	}
	out, problems := v.hold(spec.Schema, args)
	if problems != nil {
		return fail(problems...)
	}
	return out, nil
}

// Value is [Validator.Prepare] for any JSON value: it decodes, coerces and
// validates raw by the same rules and returns the value to go on with. A text
// that holds JSON becomes a list or an object only where the schema wants one.
func (v *Validator) Value(schema, raw json.RawMessage) (json.RawMessage, *ValueError) {
	value, err := decode(raw)
	if err != nil {
		return nil, &ValueError{[]ArgumentProblem{{Message: err.Error()}}}
	}
	out, problems := v.hold(schema, value)
	if problems != nil {
		return nil, &ValueError{problems}
	}
	return out, nil
}

// hold coerces a value, which is the caller's own copy, and holds it against a
// schema.
func (v *Validator) hold(schema json.RawMessage, value any) (json.RawMessage, []ArgumentProblem) {
	if c := v.compile(schema); c.schema != nil {
		value = new(coercer).coerce(c.schema, value, 0)
		if err := c.schema.Validate(value); err != nil {
			return nil, explain(err)
		}
	}
	out, err := EncodeJSON(value)
	if err != nil {
		return nil, []ArgumentProblem{{Message: err.Error()}}
	}
	return out, nil
}

// Check reports what is wrong with the tool's schema, or nil. [Validator.Prepare]
// ignores the parts that are named here and holds calls to the rest.
func (v *Validator) Check(spec Spec) error {
	c := v.compile(spec.Schema)
	if len(c.ignored) == 0 {
		return nil
	}
	return fmt.Errorf("the schema of tool %s has mistakes that are ignored: %s", spec.Name, strings.Join(c.ignored, "; "))
}

func (v *Validator) compile(schema json.RawMessage) *compiled {
	key := sha256.Sum256(schema)
	v.mu.Lock()
	c, ok := v.schemas[key]
	if !ok {
		if len(v.schemas) >= maxSchemas {
			clear(v.schemas)
		}
		c = &compiled{}
		v.schemas[key] = c
	}
	v.mu.Unlock()
	c.once.Do(func() { c.schema, c.ignored = compileSchema(schema) })
	return c
}

// compiled is a schema that is compiled once, outside the validator's lock.
type compiled struct {
	once sync.Once
	// schema is nil where nothing could be made of it: every object is right.
	schema  *jsonschema.Schema
	ignored []string
}

// decode reads one JSON value and keeps its numbers as they are written.
func decode(raw json.RawMessage) (any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("is not JSON: something follows the value")
	}
	if n, ok := hugeNumber(value); ok {
		return nil, fmt.Errorf("the number %s is too large", shorten(n, 40))
	}
	return value, nil
}

// decodeText reads a JSON object or list that is wrapped in a text, as models
// sometimes write it.
func decodeText(s string) (any, bool) {
	s = strings.TrimSpace(s)
	if s == "" || s[0] != '{' && s[0] != '[' {
		return nil, false
	}
	value, err := decode(json.RawMessage(s))
	return value, err == nil
}

// EncodeJSON writes a value as arguments are written for rules, logs and models:
// keys are sorted and no character is escaped without need.
func EncodeJSON(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// hugeNumber finds a number whose exact value would need an unreasonable amount
// of memory to compare: validation is exact, and 1e1000000 is seven bytes to send.
func hugeNumber(value any) (string, bool) {
	switch x := value.(type) {
	case json.Number:
		s := string(x)
		if i := strings.IndexAny(s, "eE"); i >= 0 {
			exp, err := strconv.Atoi(s[i+1:])
			return s, err != nil || exp > 400 || exp < -400 || len(s) > 1000
		}
		return s, len(s) > 1000
	case []any:
		for _, item := range x {
			if n, ok := hugeNumber(item); ok {
				return n, true
			}
		}
	case map[string]any:
		for _, item := range x {
			if n, ok := hugeNumber(item); ok {
				return n, true
			}
		}
	}
	return "", false
}

// shorten cuts s to about n bytes, at a character's edge, and says so.
func shorten(s string, n int) string {
	if len(s) <= n {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(s[:n], ""), len(s))
}
