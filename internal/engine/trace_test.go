package engine

import (
	"encoding/json"
	"reflect"
	"testing"

	"agentd/internal/run"
)

// What comes in every step is written by hand; a field that is added to one of
// these must not be forgotten.
func TestTraceHasEveryField(t *testing.T) {
	for _, v := range []any{&run.ModelDone{}, &run.ToolDone{}, &run.Verdict{}, &run.CallModel{}, &run.Judge{}, &run.CallTool{}} {
		e := reflect.ValueOf(v).Elem()
		for _, full := range []bool{false, true} {
			if full {
				fill(e)
			}
			var got []byte
			var err error
			if in, ok := e.Interface().(run.Input); ok {
				got, err = appendInput(nil, in)
			} else {
				got, err = appendEffect(nil, e.Interface().(run.Effect))
			}
			if want, _ := json.Marshal(v); err != nil || string(got) != string(want) {
				t.Errorf("%T: %s (%v)\nwant %s", v, got, err, want)
			}
		}
	}
}

// fill gives every field a value that is not zero.
func fill(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.Type() == reflect.TypeFor[json.RawMessage]():
			f.SetBytes([]byte(`{"a":1}`))
		case f.Kind() == reflect.String:
			f.SetString("x")
		case f.Kind() == reflect.Int, f.Kind() == reflect.Int64:
			f.SetInt(7)
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		case f.Kind() == reflect.Struct:
			fill(f)
		}
	}
}

func TestStoredEventHasEveryField(t *testing.T) {
	var s stored
	fill(reflect.ValueOf(&s).Elem())
	want, err := json.Marshal(map[string]any{"$": &s})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.append(nil); err != nil || string(got) != string(want) {
		t.Errorf("%s (%v)\nwant %s", got, err, want)
	}
}
