package server_test

import (
	"strings"
	"testing"
)

// What answers are is held by the document; here is what they say, and what is refused.
func TestTreesOfSessions(t *testing.T) {
	a := start(t, nil)
	id, _ := a.do("POST", "/sessions", `{}`).json(t)["session_id"].(string)
	at := "/sessions/" + id
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", at + "/tree", "", 200, `"preview":"hello"`},
		{"POST", at + "/entries", `{"kind":"message","message":{"role":"user","content":"x"}}`, 201, `"text":"x"`},
		{"POST", at + "/entries", `{"kind":"label","data":{"target":"e1","label":"x"}}`, 201, `"label":"x"`},
		{"POST", at + "/entries", `{"kind":"message","message":{"role":"user"}}`, 400, "message.content"},
		{"POST", at + "/entries", `{"kind":"message","message":{"role":"user","content":"x","usage":{}}}`, 400, "usage"},
		{"POST", at + "/navigate", `{"entry_id":"e1"}`, 200, `"kind":"branch"`},
		{"POST", at + "/navigate", `{"entry_id":"e1","if_leaf":"e9"}`, 409, "elsewhere"},
		{"POST", at + "/navigate", `{"entry":"e1"}`, 400, "entry"},
		{"POST", at + "/navigate", `{"entry_id":"e1","summarize":1}`, 400, "summarize"},
		{"POST", at + "/navigate", `{"entry_id":"e1","summarize":true,"instructions":"dwell","profile":"helper"}`, 200, `"run_id":"run_1"`},
		{"POST", at + "/fork", `{"title":"f"}`, 201, `"title":"f"`},
		{"POST", at + "/fork", `{"metadata":[1]}`, 400, "metadata"},
		{"GET", at + "/export", "", 200, `{"type":"artifact"}`},
		{"GET", at + "/export?artifacts=false", "", 200, `{"type":"session"}`},
		{"GET", at + "/export?artifacts=0", "", 400, "is not true or false"},
		{"POST", "/sessions/import?title=in", "{}\n{}\n", 201, `"entries":1`},
		{"POST", "/sessions/import", "nonsense", 400, "line 1"},
		{"POST", "/sessions/import?name=x", "{}", 400, "name"},
		{"GET", "/sessions/ses_no/tree", "", 404, ""}, {"GET", "/sessions/ses_no/export", "", 404, ""},
		{"POST", "/sessions/ses_no/entries", `{"kind":"label"}`, 404, ""}, {"POST", "/sessions/ses_no/navigate", `{"entry_id":"root"}`, 404, ""}, {"POST", "/sessions/ses_no/fork", `{}`, 404, ""},
	} {
		if r := a.do(c.method, c.path, c.body); r.status != c.status || !strings.Contains(string(r.body), c.says) {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, r.status, r.body)
		}
	}
}
