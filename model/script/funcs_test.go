package script

import "testing"

func TestFunctions(t *testing.T) {
	c := talk("u  b\n\n a \r\nb\n", "a! g f", `r g {"n":{"v":[1,2]}}`, "e f one\ntwo")
	tests := []struct{ tmpl, want string }{
		{`{{join "|" (lines .User)}}`, " b| a |b"},
		{`{{head 2 .User}}`, " b\n a "},
		{`{{join "," (tail 1 (lines .User))}}`, "b"},
		{`{{head -1 .User}}{{tail 99 "x"}}`, "x"},
		{`{{count .User}} {{count .Results}} {{count (split "," "a,b,c")}}`, "3 2 3"},
		{`{{trim .User | upper | lower | clip 1}}`, "b…"},
		{`{{default "none" ""}}{{default "none" "x"}}`, "nonex"},
		{`{{find "[a-z]" .User}}{{find "o(.)e" "one"}}{{find "q" "x"}}`, "bn"},
		{`{{join "" (findAll "[ab]" .User)}}`, "bab"},
		{`{{matches "^o" (.Result "f").Text}} {{(.Result "f").IsError}} {{(.Result "nope").Found}}`, "true true false"},
		{`{{replace "o" "0" "foo"}} {{join "," (replace "b" "c" (lines .User))}}`, "f00  c, a ,c"},
		{`{{join "" (keep "a" .User)}}{{join "" (drop "a" .User)}}`, " a  bb"},
		{`{{join "" (sort (split "," "c,a,b"))}}{{join "" (uniq (split "," "c,a,c"))}}`, "abcca"},
		{`{{range tally (split "," "c,a,c,b")}}{{.Key}}{{.Count}}{{end}}{{range head 1 (tally "x\nx")}}{{.Count}}{{end}}`, "c2a1b12"},
		{`{{join "," (relative "/a/b/c.go\n/a/b/d/e.go")}}`, "c.go,d/e.go"},
		{`{{join "," (relative "/a/b\n/c/d")}} {{join "," (relative "./a\nb/c")}} {{count (relative "")}}`, "a/b,c/d a,b/c 0"},
		{`{{json "n.v.1" (.Result "g").Text}}{{json "x" "not json"}}`, "2"},
		{`{{quote "a\"b\x01\xff€"}}`, `"a\"b\u0001\ufffd€"`},
		{`{{.Last.Name}} {{.Last.Step}} {{.Step}} {{.Model}}`, "f 0 1 m"},
	}
	for _, tt := range tests {
		s := mustParse(t, "fallthrough: "+string(AppendQuote(nil, tt.tmpl))+"\n")
		r, err := NewPlayer(s).Reply(c)
		if err != nil {
			t.Errorf("%s: %v", tt.tmpl, err)
			continue
		}
		if got := r.Blocks[0].Text; got != tt.want {
			t.Errorf("%s\ngot  %q\nwant %q", tt.tmpl, got, tt.want)
		}
	}
	for _, bad := range []string{`{{find "(" "x"}}`, `{{findAll "(" "x"}}`, `{{findAll "x" 1}}`, `{{replace "(" "" "x"}}`, `{{replace "x" "" 1}}`,
		`{{keep "(" "x"}}`, `{{keep "x" 1}}`, `{{count 1}}`, `{{head 1 2}}`, `{{matches "(" ""}}`, `{{range 9000}}{{printf "%1000d" .}}{{end}}`} {
		if _, err := NewPlayer(mustParse(t, "fallthrough: '"+bad+"'")).Reply(c); err == nil {
			t.Errorf("%s did not fail", bad)
		}
	}
}
