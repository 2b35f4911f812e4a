package sim

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentd/fault"
	"agentd/model/script"
)

var update = flag.Bool("update", false, "write the golden files anew")

// section is a file of a txtar archive.
type section struct{ name, data string }

// parseTxtar reads an archive: a comment, then files that begin with "-- name --".
func parseTxtar(s string) (comment string, files []section) {
	for line := range strings.Lines(s) {
		if name, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(line, " --\n") {
			files = append(files, section{name: strings.TrimSuffix(name, " --\n")})
		} else if len(files) == 0 {
			comment += line
		} else {
			files[len(files)-1].data += line
		}
	}
	return comment, files
}

func mustScript(t testing.TB, src string) *script.Script {
	t.Helper()
	s, err := script.Parse("test.yaml", []byte(src))
	if err != nil {
		t.Fatalf("%v (%s)", err, fault.HintOf(err))
	}
	return s
}

// do performs a request written as text: method and path, headers, an empty line,
// the body. The answer is text as well. A dropped connection is said so.
func do(h http.Handler, text string) (answer string) {
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	method, path, _ := strings.Cut(lines[0], " ")
	r := httptest.NewRequest(method, path, strings.NewReader(strings.TrimSuffix(body, "\n")))
	for _, l := range lines[1:] {
		k, v, _ := strings.Cut(l, ": ")
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	defer func() {
		dropped := ""
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler {
				panic(p)
			}
			dropped = "(the connection drops)\n"
		}
		var b bytes.Buffer
		fmt.Fprintf(&b, "%d\n", w.Code)
		_ = w.Header().Write(&b)
		out := strings.ReplaceAll(b.String(), "\r", "") + "\n" + w.Body.String()
		if !strings.HasSuffix(out, "\n") {
			out += "\n"
		}
		answer = out + dropped
	}()
	h.ServeHTTP(w, r)
	return
}

// TestGolden compares whole exchanges with testdata/*.txtar: every script.yaml
// begins a new server, every response belongs to the request before it.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			comment, sections := parseTxtar(string(data))
			var h http.Handler
			var out strings.Builder
			out.WriteString(comment)
			answer := ""
			for _, s := range sections {
				switch s.name {
				case "script.yaml":
					h = New(Options{Scripts: []*script.Script{mustScript(t, s.data)}, Record: 10})
				case "request":
					answer = do(h, s.data)
				case "response":
					if s.data != answer && !*update {
						t.Errorf("got\n%s\nwant\n%s", answer, s.data)
					}
					s.data = answer
				}
				out.WriteString("-- " + s.name + " --\n" + s.data)
			}
			if *update {
				if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
