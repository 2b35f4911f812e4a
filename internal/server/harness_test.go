package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"agentd/internal/server"
)

// api is a server with an engine in memory. Every answer that goes through it is
// held against the OpenAPI document.
type api struct {
	t   *testing.T
	e   *fake
	srv *server.Server
	ts  *httptest.Server
	doc *document
}

func start(t *testing.T, o *server.Options) *api {
	t.Helper()
	e := newFake()
	srv := server.New(e, o)
	ts := httptest.NewServer(srv.Handler())
	t.Cleanup(ts.Close)
	return &api{t: t, e: e, srv: srv, ts: ts, doc: readDocument(t)}
}

// document is openapi.json with its schemas compiled on demand.
type document struct {
	root     map[string]any
	compiler *jsonschema.Compiler
}

func readDocument(t *testing.T) *document {
	t.Helper()
	raw, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("mem:///openapi.json", root); err != nil {
		t.Fatal(err)
	}
	return &document{root: root.(map[string]any), compiler: c}
}

func dig(v any, path ...string) any {
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}

// operation finds the operation of a request: method and path template.
func (d *document) operation(method, path string) (op map[string]any, pointer string) {
	paths, _ := d.root["paths"].(map[string]any)
	best := ""
	for template := range paths {
		if matches(template, path) && (best == "" || strings.Count(template, "{") < strings.Count(best, "{")) {
			best = template
		}
	}
	op, _ = dig(paths, best, strings.ToLower(method)).(map[string]any)
	return op, "/paths/" + strings.ReplaceAll(best, "/", "~1") + "/" + strings.ToLower(method)
}

func matches(template, path string) bool {
	a, b := strings.Split(template, "/"), strings.Split(path, "/")
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && (!strings.HasPrefix(a[i], "{") || b[i] == "") {
			return false
		}
	}
	return true
}

func (d *document) validate(t *testing.T, pointer string, raw []byte) error {
	t.Helper()
	// Pointers in fragments are escaped like addresses.
	s, err := d.compiler.Compile("mem:///openapi.json#" + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(pointer))
	if err != nil {
		t.Fatalf("%s: %v", pointer, err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// check holds an answer against the document.
func (d *document) check(t *testing.T, method, path string, resp *http.Response, body []byte) {
	t.Helper()
	if method == http.MethodOptions || method == http.MethodHead {
		return
	}
	op, pointer := d.operation(method, path)
	if op == nil {
		if resp.StatusCode != 404 && resp.StatusCode != 405 && resp.StatusCode != 403 {
			t.Errorf("%s %s is not in the document and was answered with %d", method, path, resp.StatusCode)
		}
		name := "Error"
		if strings.HasPrefix(path, "/v1/") {
			name = "ModelError"
		}
		if err := d.validate(t, "/components/schemas/"+name, body); err != nil {
			t.Errorf("%s %s: %v\n%s", method, path, err, body)
		}
		return
	}
	status := resp.Status[:3]
	if dig(op, "responses", status) == nil {
		if resp.StatusCode < 400 {
			t.Errorf("%s %s: %s is not documented", method, path, status)
			return
		}
		status = "default"
	}
	types, _ := dig(op, "responses", status, "content").(map[string]any)
	if len(types) == 0 {
		if len(body) > 0 {
			t.Errorf("%s %s: a body where none is documented: %s", method, path, body)
		}
		return
	}
	typ, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
		return
	}
	if types["*/*"] != nil {
		return
	}
	if types[typ] == nil {
		t.Errorf("%s %s: content type %q is not documented for %s", method, path, typ, status)
		return
	}
	pointer += "/responses/" + status + "/content/" + strings.ReplaceAll(typ, "/", "~1") + "/schema"
	if typ != "text/event-stream" {
		if err := d.validate(t, pointer, body); err != nil {
			t.Errorf("%s %s: %v\n%s", method, path, err, body)
		}
		return
	}
	for _, f := range parseSSE(t, body) {
		switch {
		case f.data == "" || f.data == "[DONE]":
		case strings.HasPrefix(f.data, `{"error"`):
			if err := d.validate(t, "/components/schemas/ModelError", []byte(f.data)); err != nil {
				t.Errorf("%s %s: %v\n%s", method, path, err, f.data)
			}
		default:
			if err := d.validate(t, pointer, []byte(f.data)); err != nil {
				t.Errorf("%s %s: %v\n%s", method, path, err, f.data)
			}
		}
	}
}

// frame is one block of an event stream.
type frame struct{ id, event, data, comment string }

func parseSSE(t *testing.T, body []byte) []frame {
	t.Helper()
	var out []frame
	r := bufio.NewReader(bytes.NewReader(body))
	for {
		f, err := readFrame(r)
		if err != nil {
			return out
		}
		out = append(out, f)
	}
}

// readFrame reads up to the next empty line.
func readFrame(r *bufio.Reader) (frame, error) {
	var f frame
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return f, err
		}
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			return f, nil
		}
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "id":
			f.id = value
		case "event":
			f.event = value
		case "data":
			f.data += value
		case "":
			f.comment = value
		}
	}
}

// reply is an answer, read to its end.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r *reply) json(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(r.body, &v); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
	return v
}

func (r *reply) error(t *testing.T) (kind, message, hint, field string) {
	t.Helper()
	var v struct {
		Error struct{ Kind, Message, Hint, Field string }
	}
	if err := json.Unmarshal(r.body, &v); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
	return v.Error.Kind, v.Error.Message, v.Error.Hint, v.Error.Field
}

// do sends a request and reads the whole answer. Headers are given as "Name: value".
func (a *api) do(method, path, body string, headers ...string) *reply {
	a.t.Helper()
	resp := a.send(method, path, body, headers...)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	p, _, _ := strings.Cut(path, "?")
	a.doc.check(a.t, method, p, resp, raw)
	if resp.StatusCode < 300 && body != "" {
		if err := a.request(method, p, body); err != nil {
			a.t.Errorf("%s %s was accepted, but its schema says %v", method, path, err)
		}
	}
	return &reply{resp.StatusCode, resp.Header, raw}
}

// send sends a request and leaves the answer to be read.
func (a *api) send(method, path, body string, headers ...string) *http.Response {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), method, a.ts.URL+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			req.Host = value
		} else {
			req.Header.Set(name, value)
		}
	}
	resp, err := a.ts.Client().Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	return resp
}

// request holds a body against the schema of its operation.
func (a *api) request(method, path, body string) error {
	a.t.Helper()
	op, pointer := a.doc.operation(method, path)
	if dig(op, "requestBody", "content", "application/json") == nil {
		return nil
	}
	return a.doc.validate(a.t, pointer+"/requestBody/content/application~1json/schema", []byte(body))
}
