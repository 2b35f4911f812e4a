package tool

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func spec(schema string) Spec { return Spec{Name: "probe", Schema: json.RawMessage(schema)} }

// object wraps the schema of one property.
func object(property string) string {
	return `{"type":"object","properties":{"v":` + property + `}}`
}

func TestPrepareAccepts(t *testing.T) {
	tests := []struct{ name, schema, raw, want string }{
		{"empty arguments", `{"type":"object"}`, ``, `{}`},
		{"null arguments", `{"type":"object"}`, `null`, `{}`},
		{"no schema", ``, `{"a":1}`, `{"a":1}`},
		{"boolean schema", `true`, `{"a":1}`, `{"a":1}`},
		{"object in a text", `{"type":"object"}`, `"{\"a\":1}"`, `{"a":1}`},
		{"untouched", object(`{"type":"string"}`), `{"v":"5"}`, `{"v":"5"}`},
		{"unknown keys stay", object(`{"type":"string"}`), `{"w":1}`, `{"w":1}`},
		{"no html escapes", object(`{"type":"string"}`), `{"v":"<&>"}`, `{"v":"<&>"}`},
		{"large number keeps its digits", object(`{"type":"integer"}`), `{"v":9007199254740993}`, `{"v":9007199254740993}`},
		{"decimal keeps its digits", object(`{"type":"number"}`), `{"v":0.10000000000000000001}`, `{"v":0.10000000000000000001}`},
		{"whole decimal is an integer", object(`{"type":"integer"}`), `{"v":5.0}`, `{"v":5.0}`},
		{"text to number", object(`{"type":"number"}`), `{"v":"1.5"}`, `{"v":1.5}`},
		{"text to integer", object(`{"type":"integer"}`), `{"v":" 123 "}`, `{"v":123}`},
		{"large text to integer keeps its digits", object(`{"type":"integer"}`), `{"v":"9007199254740993"}`, `{"v":9007199254740993}`},
		{"text to boolean", object(`{"type":"boolean"}`), `{"v":"True"}`, `{"v":true}`},
		{"one to boolean", object(`{"type":"boolean"}`), `{"v":1}`, `{"v":true}`},
		{"number to text", object(`{"type":"string"}`), `{"v":1}`, `{"v":"1"}`},
		{"boolean to text", object(`{"type":"string"}`), `{"v":false}`, `{"v":"false"}`},
		{"boolean to number", object(`{"type":"number"}`), `{"v":true}`, `{"v":1}`},
		{"list in a text", object(`{"type":"array"}`), `{"v":"[1,2]"}`, `{"v":[1,2]}`},
		{"nested object in a text", object(`{"type":"object"}`), `{"v":"{\"a\":1}"}`, `{"v":{"a":1}}`},
		{"one value to a list", object(`{"type":"array","items":{"type":"integer"}}`), `{"v":"7"}`, `{"v":[7]}`},
		{"elements", object(`{"type":"array","items":{"type":"integer"}}`), `{"v":["1",2]}`, `{"v":[1,2]}`},
		{"elements by position", object(`{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}]}`), `{"v":["1",2]}`, `{"v":[1,"2"]}`},
		{"null for optional is dropped", object(`{"type":"string"}`), `{"v":null}`, `{}`},
		{"null that is allowed stays", object(`{"type":["string","null"]}`), `{"v":null}`, `{"v":null}`},
		{"several types prefer what is there", object(`{"type":["integer","string"]}`), `{"v":"5"}`, `{"v":"5"}`},
		{"union prefers the untouched value", object(`{"anyOf":[{"type":"integer"},{"type":"string"}]}`), `{"v":"5"}`, `{"v":"5"}`},
		{"union takes the first that fits", object(`{"anyOf":[{"type":"integer"},{"type":"boolean"}]}`), `{"v":"true"}`, `{"v":true}`},
		{"oneOf", object(`{"oneOf":[{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}},{"type":"boolean"}]}`), `{"v":{"n":"4"}}`, `{"v":{"n":4}}`},
		{"allOf", object(`{"allOf":[{"type":"integer"},{"minimum":3}]}`), `{"v":"4"}`, `{"v":4}`},
		{"reference", `{"type":"object","properties":{"v":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`, `{"v":"4"}`, `{"v":4}`},
		{"reference, null for optional", `{"type":"object","properties":{"v":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`, `{"v":null}`, `{}`},
		{"recursive", `{"type":"object","properties":{"n":{"type":"integer"},"next":{"$ref":"#"}}}`, `{"n":"1","next":{"n":"2"}}`, `{"n":1,"next":{"n":2}}`},
		{"additional properties", `{"type":"object","additionalProperties":{"type":"integer"}}`, `{"a":"1"}`, `{"a":1}`},
		{"constant without a type", object(`{"enum":[1,2]}`), `{"v":"2"}`, `{"v":2}`},
		{"defaults are not filled in", object(`{"type":"integer","default":3}`), `{}`, `{}`},
		{"twice the same key", object(`{"type":"integer"}`), `{"v":1,"v":2}`, `{"v":2}`},
		{"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"v":{"type":"array","items":[{"type":"integer"}]}}}`, `{"v":["1"]}`, `{"v":[1]}`},
		{"format", object(`{"type":"string","format":"email"}`), `{"v":"a@b.org"}`, `{"v":"a@b.org"}`},
	}
	v := NewValidator()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			raw := json.RawMessage(tt.raw)
			got, err := v.Prepare(spec(tt.schema), raw)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if string(raw) != tt.raw {
				t.Errorf("the arguments given were changed to %s", raw)
			}
			again, err := v.Prepare(spec(tt.schema), got)
			if err != nil || string(again) != string(got) {
				t.Errorf("preparing twice gives %s, %v", again, err)
			}
		})
	}
}

func TestPrepareRefuses(t *testing.T) {
	tests := []struct {
		name, schema, raw string
		want              []string
	}{
		{"not json", `{}`, `{"a":`, []string{"is not JSON: unexpected EOF"}},
		{"more than one value", `{}`, `{} {}`, []string{"is not JSON: something follows the value"}},
		{"not an object", `{}`, `[1]`, []string{"must be a JSON object, not array"}},
		{"missing", `{"type":"object","required":["a","b"]}`, `{}`, []string{"a: is missing", "b: is missing"}},
		{"null for required", `{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}}}`, `{"a":null}`, []string{"a: must be integer, not null"}},
		{"all are listed", `{"type":"object","required":["a"],"properties":{"b":{"type":"integer"},"c":{"type":"object","properties":{"d":{"type":"array","items":{"maximum":5}}}}}}`,
			`{"b":"x","c":{"d":[1,9]}}`, []string{"a: is missing", "b: must be integer, not string", "c.d[1]: maximum: got 9, want 5"}},
		{"unknown key", `{"type":"object","properties":{"a":{}},"additionalProperties":false}`, `{"b":1,"c":2}`, []string{"b: is not known here", "c: is not known here"}},
		{"constants", object(`{"enum":["a","b"]}`), `{"v":"c"}`, []string{`v: must be one of "a", "b", not "c"`}},
		{"constant", object(`{"const":"a"}`), `{"v":"c"}`, []string{`v: must be "a", not "c"`}},
		{"format", object(`{"type":"string","format":"date-time"}`), `{"v":"yesterday"}`, []string{`v: must be a valid date-time, which "yesterday" is not`}},
		{"email", object(`{"type":"string","format":"email"}`), `{"v":"nobody"}`, []string{`v: must be a valid email, which "nobody" is not`}},
		{"uri", object(`{"type":"string","format":"uri"}`), `{"v":"no uri"}`, []string{`v: must be a valid uri, which "no uri" is not`}},
		{"alternatives", object(`{"anyOf":[{"type":"integer"},{"type":"object","required":["k"]}]}`), `{"v":"x"}`,
			[]string{"v: fits none of the alternatives: (1) must be integer, not string; (2) must be object, not string"}},
		{"text that is no number", object(`{"type":"number"}`), `{"v":"0x10"}`, []string{"v: must be number, not string"}},
		{"text that is a list, where a number is wanted", object(`{"type":"number"}`), `{"v":"[1]"}`, []string{"v: must be number, not string"}},
		{"fraction to integer", object(`{"type":"integer"}`), `{"v":"1.5"}`, []string{"v: must be integer, not string"}},
		{"two to boolean", object(`{"type":"boolean"}`), `{"v":2}`, []string{"v: must be boolean, not number"}},
		{"exponent", object(`{"type":"number"}`), `{"v":1e99999999}`, []string{"the number 1e99999999 is too large"}},
		{"exponent in a text", object(`{"type":"number"}`), `{"v":"1e99999999"}`, []string{"v: must be number, not string"}},
		{"pattern", object(`{"pattern":"^a+$"}`), `{"v":"b"}`, []string{"v: 'b' does not match pattern '^a+$'"}},
		{"a cycle of alternatives", object(`{"$ref":"#/$defs/a"},"x":{}},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}`),
			`{"v":"b"}`, []string{"v: fits none of the alternatives"}},
	}
	v := NewValidator()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := v.Prepare(spec(tt.schema), json.RawMessage(tt.raw))
			if err == nil {
				t.Fatalf("accepted as %s", got)
			}
			text := err.Error()
			for _, w := range tt.want {
				if !strings.Contains(text, "\n- "+w) {
					t.Errorf("%q is not in:\n%s", w, text)
				}
			}
			if len(err.Problems) != len(tt.want) {
				t.Errorf("%d problems, want %d:\n%s", len(err.Problems), len(tt.want), text)
			}
			if !strings.HasPrefix(text, "The arguments of probe are not valid:") {
				t.Errorf("the tool is not named: %s", text)
			}
			if !strings.HasSuffix(text, "\nReceived: "+tt.raw) {
				t.Errorf("the arguments are not echoed: %s", text)
			}
		})
	}
}

func TestValue(t *testing.T) {
	form := `{"type":"object","properties":{"n":{"type":"integer","maximum":10},"to":{"type":"string"}},"required":["n","to"],"additionalProperties":false}`
	v := NewValidator()
	for _, tt := range []struct {
		schema, raw, want string
		problems          []string
	}{
		{`{"type":"string"}`, `"blue"`, `"blue"`, nil},
		{`{"type":"string"}`, `7`, `"7"`, nil},
		{`{"type":"string"}`, `"{\"a\":1}"`, `"{\"a\":1}"`, nil},
		{`{"type":"integer"}`, `"7"`, `7`, nil},
		{form, `{"n":12345678901234567890e-19,"to":"you"}`, ``, []string{"n: must be integer"}},
		{form, `"{\"n\":\"2\",\"to\":\"you\"}"`, `{"n":2,"to":"you"}`, nil},
		{form, `{"n":99,"x":1}`, ``, []string{"n: ", "to: is missing", "x: is not known here"}},
		{form, `"yes"`, ``, []string{"must be object, not string"}},
		{form, `{"n":`, ``, []string{"is not JSON"}},
		{`{"type":"boolean"}`, `null`, ``, []string{"must be boolean, not null"}},
		{`{"type":`, `[1]`, `[1]`, nil}, // a schema that says nothing is held against nobody
	} {
		got, err := v.Value(json.RawMessage(tt.schema), json.RawMessage(tt.raw))
		if tt.problems == nil {
			if err != nil || string(got) != tt.want {
				t.Errorf("%s by %s: got %s, %v; want %s", tt.raw, tt.schema, got, err, tt.want)
			}
			continue
		}
		if err == nil || len(err.Problems) != len(tt.problems) {
			t.Errorf("%s by %s: got %s, %v; want %d problems", tt.raw, tt.schema, got, err, len(tt.problems))
			continue
		}
		for _, w := range tt.problems {
			if !strings.Contains(err.Error(), "\n- "+w) {
				t.Errorf("%s by %s: %q is not in: %v", tt.raw, tt.schema, w, err)
			}
		}
	}
}

func TestArgumentErrorIsBounded(t *testing.T) {
	raw := `{"v":[` + strings.Repeat(`"x",`, 5000) + `"x"]}`
	_, err := NewValidator().Prepare(spec(object(`{"type":"array","items":{"type":"integer"}}`)), json.RawMessage(raw))
	if err == nil {
		t.Fatal("accepted")
	}
	if text := err.Error(); len(text) > 6000 || !strings.Contains(text, "and 4951 more") {
		t.Errorf("%d bytes: %.200s", len(text), text)
	}
}

func TestCheckNamesMistakesAndPrepareLivesWithThem(t *testing.T) {
	tests := []struct{ name, schema, raw, want, check string }{
		{"required in the old way", object(`{"type":"integer","required":true}`), `{"v":"1"}`, `{"v":1}`, "properties.v.required"},
		{"type that does not exist", object(`{"type":"int"}`), `{"v":"1"}`, `{"v":"1"}`, "properties.v.type"},
		{"one bad property, one good", `{"type":"object","properties":{"a":{"type":"int"},"b":{"type":"integer"}}}`, `{"a":1,"b":"2"}`, `{"a":1,"b":2}`, "properties.a.type"},
		{"pattern of another language", object(`{"type":"integer"},"w":{"pattern":"^(?=a)b"}`), `{"v":"1","w":"x"}`, `{"v":1,"w":"x"}`, `the pattern "^(?=a)b" is not understood`},
		{"reference to nothing", object(`{"$ref":"#/$defs/none"},"w":{"type":"integer"}`), `{"v":"1","w":"2"}`, `{"v":"1","w":2}`, "leads to nothing"},
		{"reference to the network", object(`{"$ref":"http://127.0.0.1:1/x.json"},"w":{"type":"integer"}`), `{"v":"1","w":"2"}`, `{"v":"1","w":2}`, "leads to nothing"},
		{"draft that does not exist", `{"$schema":"http://example.com/none","type":"object","properties":{"v":{"type":"integer"}}}`, `{"v":"1"}`, `{"v":1}`, "$schema http://example.com/none"},
		{"not json", `{"type":`, `{"v":"1"}`, `{"v":"1"}`, "the schema is not JSON"},
		{"not an object", `7`, `{"v":"1"}`, `{"v":"1"}`, "the schema must be an object, not number"},
		{"properties are a list", `{"type":"object","properties":[]}`, `{"v":"1"}`, `{"v":"1"}`, "properties"},
	}
	v := NewValidator()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := v.Prepare(spec(tt.schema), json.RawMessage(tt.raw))
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v; want %s", got, err, tt.want)
			}
			if err := v.Check(spec(tt.schema)); err == nil || !strings.Contains(err.Error(), tt.check) || !strings.Contains(err.Error(), "probe") {
				t.Errorf("Check says %v, want %q", err, tt.check)
			}
		})
	}
	if err := v.Check(spec(object(`{"type":"integer"}`))); err != nil {
		t.Errorf("a good schema: %v", err)
	}
}

func TestReferencesAreNotFetched(t *testing.T) {
	file := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(file, []byte(`{"type":"integer"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	v := NewValidator()
	s := spec(object(fmt.Sprintf(`{"$ref":"file://%s"}`, filepath.ToSlash(file))))
	got, err := v.Prepare(s, json.RawMessage(`{"v":"1"}`))
	if err != nil || string(got) != `{"v":"1"}` {
		t.Errorf("got %s, %v: the file was read", got, err)
	}
}

func TestValidatorIsBoundedAndConcurrent(t *testing.T) {
	v := NewValidator()
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 400 {
				got, err := v.Prepare(spec(object(fmt.Sprintf(`{"type":"integer","maximum":%d}`, w*i))), json.RawMessage(`{"v":"0"}`))
				if err != nil || string(got) != `{"v":0}` {
					t.Errorf("got %s, %v", got, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if len(v.schemas) > maxSchemas {
		t.Errorf("%d schemas are kept", len(v.schemas))
	}
}

func FuzzPrepare(f *testing.F) {
	f.Add(object(`{"type":"integer"}`), `{"v":"1"}`)
	f.Add(object(`{"anyOf":[{"type":"integer"},{"$ref":"#"}]}`), `{"v":{"v":"1"}}`)
	f.Add(object(`{"type":"array","items":{"type":"string","format":"date"},"uniqueItems":true}`), `{"v":[1,"2",null]}`)
	f.Add(`{"$ref":"#/properties","properties":{"$ref":"#"}}`, `{}`)
	f.Add(`{"type":"object","properties":{"v":{"type":"int","required":true,"pattern":"(?<a"}}}`, `"{}"`)
	f.Add(`{"multipleOf":0,"minimum":1e400}`, `{"v":1e400}`)
	f.Add(`{"$id":"http://example.com/%zz","$schema":"x:"}`, `{"a":null}`)
	v := NewValidator()
	f.Fuzz(func(t *testing.T, schema, raw string) {
		got, err := v.Prepare(spec(schema), json.RawMessage(raw))
		if err != nil {
			if len(err.Problems) == 0 || err.Error() == "" {
				t.Error("an error without a reason")
			}
			return
		}
		if !json.Valid(got) || got[0] != '{' {
			t.Errorf("the prepared arguments are not an object: %s", got)
		}
		if same, err := v.Value(json.RawMessage(schema), got); err != nil || !json.Valid(same) {
			t.Errorf("prepared arguments %s are not valid as a value: %s, %v", got, same, err)
		}
		_ = v.Check(spec(schema))
	})
}
