package llmwire

import (
	"strings"
	"testing"
)

func TestFinished(t *testing.T) {
	for _, tt := range []struct{ was, now, want string }{
		{"", "", ""}, {"", "stop", "stop"}, {"stop", "", "stop"}, {"stop", "length", "length"}, {"length", "stop", "length"},
		{"length", "content_filter", "content_filter"}, {"content_filter", "tool_calls", "content_filter"}, {"stop", "tool_calls", "tool_calls"},
	} {
		if got := Finished(tt.was, tt.now, "stop", "tool_calls"); got != tt.want {
			t.Errorf("%q, then %q: %q, want %q", tt.was, tt.now, got, tt.want)
		}
	}
}

func TestWebPage(t *testing.T) {
	for in, want := range map[string]string{
		"<html><head><title>502 Bad Gateway</title></head></html>": "502 Bad Gateway",
		"\n <!DOCTYPE HTML>\n<title> a\n &lt;b </title>":           "a <b",
		"<html>sorry</html>": "no title", "<HTML><title>unclosed": "unclosed",
	} {
		if got, ok := webPage(in); !ok || !strings.Contains(got, want) {
			t.Errorf("%q: %q, %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "<", "Bad Gateway", `{"error":"<html>"}`, "the <html> of it"} {
		if got, ok := webPage(in); ok {
			t.Errorf("%q is a web page: %q", in, got)
		}
	}
}

func FuzzWebPage(f *testing.F) {
	f.Add("<html><title>x</title>")
	f.Add("<!doctype html><title>&#xfffffffff;")
	f.Fuzz(func(t *testing.T, in string) {
		if title, ok := webPage(in); ok && (title == "" || strings.ContainsAny(title, "\n\r")) {
			t.Errorf("%q: %q", in, title)
		}
	})
}
