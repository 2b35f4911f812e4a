package profile

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"agentd/internal/mcp"
)

var update = flag.Bool("update", false, "write schemas and documentation instead of comparing them")

const schemaDir = "../../configs/schema"

func TestSchemasAreUpToDate(t *testing.T) {
	s := newShape(t, ".", "../mcp")
	golden(t, schemaDir+"/agent.schema.json", s.document("agentd: agent profile (agents/*.yaml)", s.structSchema(reflect.TypeFor[Profile]())))
	golden(t, schemaDir+"/agentd.schema.json", s.document("agentd: settings of the server (agentd.yaml)", s.structSchema(reflect.TypeFor[Settings]())))
	server := s.structSchema(reflect.TypeFor[mcp.ServerConfig]())
	golden(t, schemaDir+"/servers.schema.json", s.document("agentd: MCP servers (mcp/servers.yaml)", object{
		"type": "object", "additionalProperties": false, "required": []string{"servers"},
		"properties": object{"servers": object{
			"type": []string{"object", "null"}, "description": "MCP servers by name.",
			"propertyNames":        object{"pattern": serverNameRE.String()},
			"additionalProperties": server,
		}},
	}))
}

func TestSchemas(t *testing.T) {
	schemas := Schemas()
	for _, name := range []string{"agent.schema.json", "servers.schema.json", "agentd.schema.json"} {
		if !json.Valid(schemas[name]) {
			t.Errorf("%s is missing or no JSON", name)
		}
	}
}

// schemaFor compiles a committed schema.
func schemaFor(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(schemaDir, name))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, v); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func asJSON(t *testing.T, text []byte) any {
	t.Helper()
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

var schemaLine = regexp.MustCompile(`^# yaml-language-server: \$schema=(\S+)\n`)

// Every shipped file names its schema and follows it.
func TestShippedFilesFollowTheirSchemas(t *testing.T) {
	seen := 0
	err := fs.WalkDir(os.DirFS("../../configs"), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".yaml" {
			return err
		}
		seen++
		data, err := os.ReadFile(filepath.Join("../../configs", name))
		if err != nil {
			return err
		}
		m := schemaLine.FindSubmatch(data)
		if m == nil {
			t.Errorf("%s does not begin with its schema", name)
			return nil
		}
		if _, err := os.Stat(filepath.Join("../../configs", filepath.Dir(name), string(m[1]))); err != nil {
			t.Errorf("%s: %v", name, err)
			return nil
		}
		if err := schemaFor(t, filepath.Base(string(m[1]))).Validate(asJSON(t, data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 4 {
		t.Errorf("%d files", seen)
	}
}

// The schema and the decoder agree: what an editor underlines is an error here,
// and what it accepts is none.
func TestSchemaAgreesWithDecoder(t *testing.T) {
	s := schemaFor(t, "agent.schema.json")
	for text, want := range map[string]bool{
		"":                          true,
		"max_steps: 3":              true,
		"labels:":                   true,
		"thinking: ${T:-high}":      true,
		"retry: {max_delay: 1m30s}": true,
		"max_cost_usd: 0.25":        true,
		"tools: {deny: [\"x_*\"]}":  true,
		"few_shot_examples: [{user: a, assistant: b}]": true,
		"max_steps: -1":                              false,
		"max_step: 1":                                false,
		"thinking: hard":                             false,
		"retry: {base_delay: soon}":                  false,
		"few_shot_examples: [{user: a}]":             false,
		"temperature: 2.5":                           false,
		"fallback_models: [{model: m}]":              false,
		"fallback_models: [{provider: x, model: m}]": false,
		"labels: x":                                  false,
		"description: 3":                             false,
		"auto_approve_in_daemon: \"true\"":           false,
	} {
		file := minimal + text + "\n"
		_, problems := load(map[string]string{"agents/a.yaml": file}, nil)
		bySchema := s.Validate(asJSON(t, []byte(file))) == nil
		if byUs := problems.Err() == nil; byUs != want || bySchema != want {
			t.Errorf("%q: decoder %v, schema %v, want %v\n%s", text, byUs, bySchema, want, lines(problems))
		}
	}
}

// The tables of docs/configuration.md come from the structs.
func TestDocumentationIsUpToDate(t *testing.T) {
	const file = "../../docs/configuration.md"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := newShape(t, ".", "../mcp")
	text := string(data)
	part := func(name, body string) {
		begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
		i, j := strings.Index(text, begin), strings.Index(text, end)
		if i < 0 || j < i {
			t.Fatalf("%s has no part %s", file, name)
		}
		text = text[:i+len(begin)] + "\n" + body + "\n" + text[j:]
	}
	once := map[reflect.Type]bool{}
	groups := reflect.TypeFor[Profile]()
	for i := range groups.NumField() {
		if g := groups.Field(i); g.Anonymous {
			part("keys:"+g.Name, s.table(s.rows("", g.Type, once)))
		}
	}
	part("keys:Settings", s.table(s.rows("", reflect.TypeFor[Settings](), once)))
	part("keys:ServerConfig", s.table(s.rows("", reflect.TypeFor[mcp.ServerConfig](), once)))
	var inertKeys []string
	for _, f := range s.rows("", reflect.TypeFor[Profile](), map[reflect.Type]bool{}) {
		if inert()[f.key] {
			inertKeys = append(inertKeys, "`"+f.key+"`")
		}
	}
	part("inert", strings.Join(inertKeys, ", ")+"\n")
	golden(t, file, []byte(text))
}
