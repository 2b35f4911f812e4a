package run

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the transcripts of testdata anew")

// TestTranscripts plays the scripts of testdata/*.txtar and compares what the
// machine did. A file is a comment, then pairs of sections: NAME.in, a script in
// the form of [player], and NAME.out, the transcript. Every script also runs
// under the checker.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			a := parseTxtar(data)
			if strings.TrimSpace(a.comment) == "" || len(a.files) == 0 {
				t.Fatalf("%s has no comment or no scripts", file)
			}
			var fresh bytes.Buffer
			fresh.WriteString(a.comment)
			for _, f := range a.files {
				name, isScript := strings.CutSuffix(f.name, ".in")
				if !isScript {
					continue
				}
				t.Run(name, func(t *testing.T) {
					got := strings.TrimSuffix(play(t, f.data).out.String(), "\n")
					fmt.Fprintf(&fresh, "-- %s.in --\n%s-- %s.out --\n%s", name, f.data, name, got)
					if want := a.file(name + ".out"); got != want && !*update {
						t.Errorf("run with -update and look at the change.\ngot:\n%s\nwant:\n%s", got, want)
					}
				})
			}
			if *update && !t.Failed() {
				if err := os.WriteFile(file, fresh.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if !t.Failed() && fresh.String() != string(data) {
				t.Errorf("%s has sections that belong to no script", file)
			}
		})
	}
}

type archive struct {
	comment string
	files   []archiveFile
}

type archiveFile struct{ name, data string }

// parseTxtar reads the txtar form: a comment, then files, each headed by a line
// "-- NAME --".
func parseTxtar(data []byte) archive {
	var a archive
	at := &a.comment
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "-- "); ok {
			if name, ok := strings.CutSuffix(name, " --"); ok {
				a.files = append(a.files, archiveFile{name: name})
				at = &a.files[len(a.files)-1].data
				continue
			}
		}
		*at += line
	}
	return a
}

func (a *archive) file(name string) string {
	for _, f := range a.files {
		if f.name == name {
			return f.data
		}
	}
	return ""
}
