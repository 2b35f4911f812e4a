package server_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// openaiSchemas compiles the schemas that answers of the face are held against:
// those of testdata always, those of OpenAI's own document where it lies beside
// the repository.
var openaiSchemas = sync.OnceValues(func() ([]map[string]*jsonschema.Schema, error) {
	var out []map[string]*jsonschema.Schema
	for _, file := range []string{"testdata/openai-chat.schema.json", "../../../shared/data/openapi/openai.json"} {
		raw, err := os.ReadFile(file)
		if os.IsNotExist(err) && !strings.HasPrefix(file, "testdata") {
			continue
		}
		if err != nil {
			return nil, err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			return nil, err
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("mem:///doc.json", modern(doc)); err != nil {
			return nil, err
		}
		set := map[string]*jsonschema.Schema{}
		for _, name := range []string{"CreateChatCompletionResponse", "CreateChatCompletionStreamResponse", "ErrorResponse", "ListModelsResponse", "Model"} {
			if set[name], err = c.Compile("mem:///doc.json#/components/schemas/" + name); err != nil {
				return nil, err
			}
		}
		out = append(out, set)
	}
	return out, nil
})

// modern rewrites what is not JSON Schema 2020-12 in OpenAI's document: nullable,
// and recursive references.
func modern(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = modern(v[i])
		}
	case map[string]any:
		delete(v, "$recursiveAnchor")
		if _, ok := v["$recursiveRef"]; ok {
			return map[string]any{"$ref": "#/components/schemas/CompoundFilter"}
		}
		for k := range v {
			v[k] = modern(v[k])
		}
		if typ, ok := v["type"].(string); ok && v["nullable"] == true {
			v["type"] = []any{typ, "null"}
			if enum, ok := v["enum"].([]any); ok {
				v["enum"] = append(enum, nil)
			}
		}
	}
	return v
}

// openai holds an answer of the face against OpenAI's schemas.
func (d *document) openai(t *testing.T, r *reply) {
	t.Helper()
	sets, err := openaiSchemas()
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, raw []byte) {
		t.Helper()
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		for _, set := range sets {
			if err := set[name].Validate(v); err != nil {
				t.Errorf("%v\n%s", err, raw)
			}
		}
	}
	if r.status >= 400 {
		check("ErrorResponse", r.body)
		return
	}
	if r.header.Get("Content-Type") == "text/event-stream" {
		finishes, done := 0, false
		for i, f := range parseSSE(t, r.body) {
			var chunk struct {
				Choices []struct {
					Delta        struct{ Role string }
					FinishReason *string `json:"finish_reason"`
				}
			}
			switch {
			case f.event != "" || f.id != "":
				t.Errorf("only data is part of the protocol: %+v", f)
			case done:
				t.Errorf("after [DONE]: %+v", f)
			case f.data == "[DONE]":
				done = true
			case strings.HasPrefix(f.data, `{"error"`):
				check("ErrorResponse", []byte(f.data))
				finishes++ // an error is an end, too
			case f.data != "":
				check("CreateChatCompletionStreamResponse", []byte(f.data))
				if err := json.Unmarshal([]byte(f.data), &chunk); err != nil {
					t.Fatal(err)
				}
				if i == 0 && chunk.Choices[0].Delta.Role != "assistant" {
					t.Errorf("the first chunk has no role: %s", f.data)
				}
				for _, c := range chunk.Choices {
					if c.FinishReason != nil {
						finishes++
					}
				}
			}
		}
		if finishes != 1 || !done {
			t.Errorf("%d ends, [DONE] %v: %s", finishes, done, r.body)
		}
		return
	}
	switch object := r.json(t)["object"]; object {
	case "chat.completion":
		check("CreateChatCompletionResponse", r.body)
	case "list":
		check("ListModelsResponse", r.body)
	case "model":
		check("Model", r.body)
	default:
		t.Errorf("object %v", object)
	}
}
