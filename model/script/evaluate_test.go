package script

import (
	"strings"
	"testing"
	"text/template"
	"text/template/parse"
)

// evaluated are templates that must do what text/template does with them.
var evaluated = []string{
	"plain", "{{.User}}", "a {{.Step}} b {{.Last.Text}}{{.Last.Found}}", `{{.Result "grep"}}`, `{{(.Result "grep").Text}}`, `{{$r := .Result "grep"}}{{$r.Name}}`,
	`{{"grep" | .Result}}`, `{{with .Result "none"}}{{.Found}}{{end}}`, "{{if .User}}yes{{else}}no{{end}}", "{{if not .User}}yes{{else if .Step}}step{{else}}no{{end}}",
	"{{range .Results}}{{.Name}};{{end}}", "{{range $i, $r := .Results}}{{$i}}={{$r.Text}} {{$.User}}{{end}}", "{{range $r := .Results}}{{$r.Step}}{{end}}",
	"{{range 3}}{{.}}{{end}}", "{{range $i := 3}}{{$i}}{{end}}", "{{range lines \"\"}}x{{else}}none{{end}}", "{{range .Results}}{{if .IsError}}{{continue}}{{end}}{{.Name}}{{break}}{{end}}",
	"{{$x := 1}}{{$x = 2}}{{$x}}", "{{$x := 1}}{{if true}}{{$x := 3}}{{$x}}{{end}}{{$x}}", "{{$n := 0}}{{range $i, $n = .Results}}{{$i}}{{end}}{{$n}}",
	"{{len .Results}} {{len .User}} {{index .Results 1}} {{index .User 0}} {{slice .User 1}} {{slice .User 1 2}} {{slice .Results 1}}",
	`{{and .User 0 1}} {{or "" .Step "x"}} {{and}}`, `{{or "" "a"}} {{and 1 2}} {{0 | or 3}} {{1 | and 0}} {{not 0}}`,
	`{{eq 1 1}} {{eq .Step 2 3 1}} {{eq "a" "b"}} {{ne "a" "b"}} {{lt 1 2}} {{le 2 2}} {{gt 2 1}} {{ge 1 2}} {{eq true false}} {{lt "a" "b"}} {{eq 1.5 1.5}} {{eq 'a' 97}}`,
	`{{eq 1 "a"}}`, `{{lt true false}}`, `{{eq 1}}`, `{{print 1 2 "x"}} {{printf "%d-%s" 3 "y"}} {{println "z"}}`, `{{html "<&>"}} {{urlquery "a b&c"}}`,
	`{{count .Last.Text}} {{head 1 .Last.Text}} {{join "," (lines .Last.Text)}} {{.Last.Text | lines | join "-"}} {{upper (clip 3 .User)}}`,
	`{{with tally (lines "a\na\nb")}}{{range .}}{{.Key}}{{.Count}}{{end}}{{end}}`, `{{find "(" .User}}`, `{{head "x" .User}}`, `{{head 1}}`, `{{head 1 2 3 4}}`, `{{count 7}}`,
	"{{index .Results 9}}", "{{slice .User 3 1}}", "{{len 3}}", "{{.Last.Nothing}}", "{{.User.Nothing}}", "{{.Step 1}}", "{{$.Last.Text 1}}", "{{1 | .User}}", `{{"a" 1}}`,
	`{{define "t"}}<{{.}}|{{$}}>{{end}}{{template "t" .User}}{{template "t"}}`, `{{block "b" .Step}}[{{.}}]{{end}}`, `{{define "r"}}{{template "r"}}{{end}}{{template "r"}}`,
	`{{template "missing"}}`, "{{/* nothing */}}{{- .User -}}  x", "{{range .User}}{{end}}", "{{true}} {{1.5}} {{'x'}} {{0x10}} {{\"s\"}}", "{{with $x := .User}}{{$x}}{{else with .Step}}{{.}}{{end}}",
	`{{printf "%v" nil}}`, `{{nil}}`, `{{99999999999999999999}}`, `{{head 9999999999 .User}}`, `{{.Results}} {{.Last}}`, `{{lower nil}}`, `{{join "," nil}}`,
}

func evaluationData() *Data {
	d := &Data{User: "Übung", System: "sys", Model: "m", Step: 1, Results: []Result{{"glob", "a\nb", false, true, 0}, {"grep", "x: 1\ny: 2\n\nz", true, true, 1}}}
	d.Last = d.Results[1]
	return d
}

// evaluateBoth renders a template by text/template and by execute.
func evaluateBoth(src string) (want string, wantErr error, got string, gotErr error) {
	var w, g strings.Builder
	t, err := template.New(templateName).Option("missingkey=error").Funcs(functions()).Parse(src)
	if err == nil {
		err = t.Execute(&w, evaluationData())
	}
	funcs := allFunctions()
	trees, err2 := parse.Parse(templateName, src, "", "", funcs)
	if err2 == nil {
		err2 = execute(&g, trees, templateName, funcs, evaluationData())
	}
	return w.String(), err, g.String(), err2
}

func TestTemplatesDoWhatGosDo(t *testing.T) {
	for _, src := range evaluated {
		want, wantErr, got, gotErr := evaluateBoth(src)
		if (wantErr == nil) != (gotErr == nil) {
			t.Errorf("%s\n got error %v\nwant error %v", src, gotErr, wantErr)
		} else if wantErr == nil && got != want {
			t.Errorf("%s\n got %q\nwant %q", src, got, want)
		}
	}
}

// An error says where in the template it is, as Go's do.
func TestTemplateErrorsSayWhere(t *testing.T) {
	for src, part := range map[string]string{
		"a\n{{.Last.Nothing}}":  `template:2:7: executing "template" at <.Last.Nothing>: can't evaluate field Nothing in type script.Result`,
		`{{head 1 (count 7)}}`:  `error calling count: int is neither a text nor a list of texts`,
		`{{range 3}}{{head 1}}`: `unexpected EOF`,
	} {
		if _, _, _, err := evaluateBoth(src); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: got %v, want it to contain %q", src, err, part)
		}
	}
}

// FuzzTemplates: what both can do, both do alike, and nothing panics. What
// only Go's can do is `js`, `call`, and errors that ours does not see as such.
func FuzzTemplates(f *testing.F) {
	for _, src := range evaluated {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		want, wantErr, got, gotErr := evaluateBoth(src)
		if wantErr == nil && gotErr == nil && got != want {
			t.Errorf("%q\n got %q\nwant %q", src, got, want)
		}
	})
}
