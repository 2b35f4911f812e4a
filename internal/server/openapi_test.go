package server

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"agentd/internal/keys"
)

// TestDocumentHasTheRoutes holds that the document has every route, and no other.
func TestDocumentHasTheRoutes(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Summary     string
			Parameters  []struct{ Name, In string }
			RequestBody any `json:"requestBody"`
			Responses   map[string]any
			Security    []map[string][]keys.Scope
		}
	}
	if err := json.Unmarshal(openapi, &doc); err != nil {
		t.Fatal(err)
	}
	var want, got []string
	ids := map[string]bool{}
	routes := map[string]route{}
	for _, r := range New(nil, nil).routes() {
		want = append(want, r.method+" "+r.path)
		routes[r.method+" "+r.path] = r
	}
	for path, ops := range doc.Paths {
		for method, op := range ops {
			name := strings.ToUpper(method) + " " + path
			got = append(got, name)
			if op.OperationID == "" || ids[op.OperationID] || op.Summary == "" || op.Responses["default"] == nil {
				t.Errorf("%s: needs an operationId of its own, a summary and a default response", name)
			}
			ids[op.OperationID] = true
			rt := routes[name]
			security := []map[string][]keys.Scope{}
			if !rt.open {
				for _, s := range rt.scopes() {
					security = append(security, map[string][]keys.Scope{"key": {s}})
				}
				security = append(security, map[string][]keys.Scope{}) // while there are no keys
			}
			if !reflect.DeepEqual(op.Security, security) {
				t.Errorf("%s: security %v in the document, %v in the server", name, op.Security, security)
			}
			hasID := slices.ContainsFunc(op.Parameters, func(p struct{ Name, In string }) bool { return p.Name == "id" && p.In == "path" })
			if hasID != strings.Contains(path, "{id}") {
				t.Errorf("%s: the path's parameter", name)
			}
			if method == "get" && op.RequestBody != nil {
				t.Errorf("%s: a body", name)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("routes\n%s\ndocument\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}

// FuzzDecodeStart holds that any body is either understood or refused with a
// reason.
func FuzzDecodeStart(f *testing.F) {
	for _, s := range []string{``, `{}`, `{"input":"x"}`, `{"input":[{"type":"text","text":"x"},{"type":"image","data":"AA","mimeType":"image/png"}],"budget":{"max_steps":1}}`,
		`{"input":"x","input":"y"}`, `{"input":{"type":"text"}}`, `[1]`, `{"input":"x"}}`, "{\"input\":\"\xff\"}", `{"mode":"autonomous","input":"é","context":null,"metadata":{"a":[1,2]}}`,
		`{"input":"x","page":null,"references":null}`, `{"input":"x","page":{"a":1},"references":["y",{"kind":"k","id":"1"},7,null]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		req, err := decodeStart(raw)
		if err != nil {
			if err.Error() == "" {
				t.Error("refused without a reason")
			}
			return
		}
		if len(req.Input) == 0 {
			t.Errorf("accepted without input: %s", raw)
		}
		for i := range req.Input {
			if err := req.Input[i].Validate(); err != nil {
				t.Error(err)
			}
		}
		if len(req.Context) > 0 && !json.Valid(req.Context) || len(req.Metadata) > 0 && !json.Valid(req.Metadata) {
			t.Errorf("%s %s", req.Context, req.Metadata)
		}
	})
}
