package llmwire

import (
	"encoding/json"
	"testing"
)

func TestAppendSchema(t *testing.T) {
	for in, want := range map[string]string{
		``:                   `{}`,
		`{"type": "object"}`: `{"type": "object"}`,
		`{"properties":{"any":true,"none":false,"b":{"type":"boolean","default":true,"enum":[true,false]}},"additionalProperties":false}`: `{"properties":{"any":{},"none":{"not":{}},"b":{"type":"boolean","default":true,"enum":[true,false]}},"additionalProperties":false}`,
		`{"properties":{"properties":{"properties":{"true":true}}}}`:                                                                      `{"properties":{"properties":{"properties":{"true":{}}}}}`,
		`{"anyOf": [true, {"items": true}, {"items":[true]}], "not": false, "$defs": {"a\"b": true}}`:                                     `{"anyOf":[{},{"items":{}},{"items":[{}]}],"not":{"not":{}},"$defs":{"a\"b":{}}}`,
		`{"additionalProperties":{"items":true},"const":{"items":true},"required":["true"]}`:                                              `{"additionalProperties":{"items":{}},"const":{"items":true},"required":["true"]}`,
		`{"properties":true,"anyOf":true}`: `{"properties":true,"anyOf":true}`, // is no schema
	} {
		if got := string(AppendSchema(nil, json.RawMessage(in))); got != want {
			t.Errorf("%s\ngave %s\nwant %s", in, got, want)
		}
	}
}

func FuzzAppendSchema(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":true,"b":{"items":[false]}},"anyOf":[true]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		out := AppendSchema(nil, in)
		if !json.Valid(out) {
			t.Fatalf("%q gave %q", in, out)
		}
		if again := AppendSchema(nil, out); string(again) != string(out) {
			t.Fatalf("%q became %q", out, again)
		}
	})
}
