package script

import (
	"os"
	"strings"
	"testing"
)

// The documentation names every key, fault, field and function, and its example
// is a script.
func TestDocumented(t *testing.T) {
	manual, err := os.ReadFile("../../docs/scripts.md")
	if err != nil {
		t.Fatal(err)
	}
	comment, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(manual)
	_, rest, _ := strings.Cut(doc, "```yaml\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/scripts.md has no example")
	}
	mustParse(t, example)
	for _, k := range keys() {
		if !strings.Contains(doc, k) || !strings.Contains(string(comment), k) {
			t.Errorf("the key %s is not described in docs/scripts.md and doc.go", k)
		}
	}
	for k := range strings.SplitSeq(faultKinds, ", ") {
		if !strings.Contains(doc, "`"+k+"`") {
			t.Errorf("docs/scripts.md does not describe the fault %s", k)
		}
		if f := (Fault{Kind: FaultKind(k)}); func() bool { key, _, _ := f.check(); return key != "" }() {
			t.Errorf("the fault %s is listed but not known", k)
		}
	}
	for _, f := range fields() {
		if !strings.Contains(doc, "`."+f) {
			t.Errorf("docs/scripts.md does not describe .%s", f)
		}
	}
	for name := range functions() {
		if !strings.Contains(doc, "`"+name+" ") || !strings.Contains(string(comment), name+" ") {
			t.Errorf("the function %s is not described in docs/scripts.md and doc.go", name)
		}
	}
}
