package llmwire

import (
	"html"
	"strings"
)

// webPage reports whether a text is a web page, as proxies and wrong addresses answer with,
// and gives its title, or what to look at if it has none.
func webPage(text string) (title string, ok bool) {
	lower := strings.ToLower(strings.TrimSpace(text[:min(len(text), 4096)]))
	if !strings.HasPrefix(lower, "<!doctype html") && !strings.HasPrefix(lower, "<html") {
		return "", false
	}
	// Not by an index into the lower text: lowering changes lengths.
	text = text[:min(len(text), 4096)]
	if _, rest, found := strings.Cut(text, "<title>"); found {
		title, _, _ = strings.Cut(rest, "</title>")
		title = strings.Join(strings.Fields(html.UnescapeString(title)), " ")
	}
	if title == "" {
		title = "it has no title; look at the base URL and at what is between"
	}
	return title, true
}
