package llmwire

import (
	"encoding/json"
	"math"
	"testing"

	"agentd/model"
)

// What one adapter kept of a conversation is nothing to another: their tools are written
// differently.
func TestScratchOf(t *testing.T) {
	type one struct{ Scratch }
	type other struct{ Scratch }
	req := &model.Request{Scratch: &model.Scratch{}}
	kept := ScratchOf[one](req)
	kept.Stream = []byte("kept")
	if again := ScratchOf[one](req); again != kept {
		t.Error("nothing was kept")
	}
	if s := ScratchOf[other](req); s.Stream != nil {
		t.Error("what another adapter kept was taken")
	}
	if again := ScratchOf[one](req); again == kept {
		t.Error("what was kept outlived another adapter")
	}
	req.Scratch = nil
	ScratchOf[one](req).Stream = []byte("kept")
	if s := ScratchOf[one](req); s.Stream != nil {
		t.Error("a request that keeps nothing kept something")
	}
}

func TestRequestPieces(t *testing.T) {
	half, one := 0.5, 1.0
	schema := func(b, s []byte) []byte { return append(b, s...) }
	for _, tt := range []struct {
		name, want string
		got        []byte
	}{
		{"no texts", `{`, AppendTexts([]byte(`{`), "stop", nil)},
		{"texts", `{"stop":["a","\"b\""]`, AppendTexts([]byte(`{`), "stop", []string{"a", `"b"`})},
		{"system", `[{"role":"system","content":"one\n\ntwo"},{}`, AppendSystemFirst([]byte(`[`), "system", JoinSystem([]model.SystemPart{{Text: "one"}, {Text: " \n"}, {Text: "two"}}), []byte(`,{}`))},
		{"no system", `[{}`, AppendSystemFirst([]byte(`[`), "system", JoinSystem([]model.SystemPart{{Text: " "}}), []byte(`,{}`))},
		{"functions", `{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{}}}},` +
			`{"type":"function","function":{"name":"b","description":"B","parameters":{"type":"object"}}}`,
			AppendFunctions(nil, []model.ToolSpec{{Name: "a"}, {Name: "b", Description: "B", Schema: json.RawMessage(`{"type":"object"}`)}}, schema)},
	} {
		if string(tt.got) != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, tt.got, tt.want)
		}
	}
	for _, tt := range []struct {
		req  model.Request
		want string
	}{
		{model.Request{}, `{`},
		{model.Request{Temperature: &half}, `{"t":0.5`},
		{model.Request{Temperature: &half, TopP: &one}, `{"t":0.5,"p":1`},
	} {
		if got, failed := AppendSampling([]byte(`{`), &tt.req, "t", "p"); failed != nil || string(got) != tt.want {
			t.Errorf("%s, %v, want %s", got, failed, tt.want)
		}
	}
	for _, f := range []float64{math.NaN(), math.Inf(1)} {
		if _, failed := AppendSampling(nil, &model.Request{TopP: &f}, "t", "p"); failed == nil || failed.Class != model.ClassInvalid {
			t.Errorf("%v: %v", f, failed)
		}
	}
}
