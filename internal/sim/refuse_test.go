package sim_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentd/internal/sim"
)

// ask posts a body as both services' clients do.
func ask(h http.Handler, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer k")
	r.Header.Set("X-Api-Key", "k")
	r.Header.Set("Anthropic-Version", "2023-06-01")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Each of these cost users of real services their sessions.
func TestRefusedHistories(t *testing.T) {
	h := sim.New(sim.Options{})
	image := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	ant := func(content string) string {
		return `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[` + content + `]}]}`
	}
	antImage := func(data string) string {
		return `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + data + `"}}`
	}
	oai := func(content string) string {
		return `{"model":"m","messages":[{"role":"user","content":[` + content + `]}]}`
	}
	text := func(s string) string { return `{"type":"text","text":"` + s + `"}` }
	call := func(name string) string {
		return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":%q,"arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"x"}]}`, name)
	}
	use := func(name, result string) string {
		return fmt.Sprintf(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":%q,"input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[%s]}]}]}`, name, result)
	}
	const messages, chat = "/v1/messages", "/v1/chat/completions"
	for _, tt := range []struct{ name, path, body, want string }{
		{"half a pair", messages, ant(text(`\ud83d`)), "no low surrogate"},
		{"the other half", messages, ant(text(`\ude00 x`)), "no low surrogate"},
		{"half a pair and more", messages, ant(text(`\ud83d\u0041`)), "no low surrogate"},
		{"half a pair", chat, oai(text(`\ud83d`)), "could not parse"},
		{"no text", messages, ant(text("\xff")), "not valid JSON"},
		{"no text", chat, oai(text("\xff")), "could not parse"},
		{"a pair", messages, ant(text(`\ud83d\ude00 \\ud83d \u00e9`)), ""},
		{"a pair", chat, oai(text(`\ud83d\ude00 \\ud83d`)), ""},
		{"an image", messages, ant(antImage(image("fine"))), ""},
		{"an image that can not be read", messages, ant(antImage(image("BROKEN"))), "Could not process image"},
		{"a large image", messages, ant(antImage(image(strings.Repeat("x", 5<<20+1)))), "image exceeds 5 MB maximum: 5242881 bytes"},
		{"many images", messages, ant(strings.TrimSuffix(strings.Repeat(antImage("AAAA")+",", 101), ",")), "too many images"},
		{"no image", messages, ant(strings.Replace(antImage("AAAA"), "png", "bmp", 1)), "media_type"},
		{"an image of a result", messages, use("x", antImage(image("BROKEN"))), "Could not process image"},
		{"an image that can not be read", chat, oai(`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + image("BROKEN") + `"}}`), "unsupported image"},
		{"an image", chat, oai(`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`), ""},
		{"a name of a call", messages, use("do it", text("x")), "tool_use.name"},
		{"a name of a call", chat, call("do it"), "does not match pattern"},
		{"a call", messages, use("x", text("x")), ""},
		{"a call", chat, call("x"), ""},
	} {
		w := ask(h, tt.path, tt.body)
		if tt.want == "" && w.Code != 200 || tt.want != "" && (w.Code != 400 || !strings.Contains(w.Body.String(), tt.want)) {
			t.Errorf("%s %s: %d %s", tt.path, tt.name, w.Code, w.Body)
		}
	}
}

// FuzzRefuse looks for a request that the simulator panics at.
func FuzzRefuse(f *testing.F) {
	f.Add(`\ud83d\`, "AAAA")
	f.Add(`\u12`, "?")
	h := sim.New(sim.Options{})
	f.Fuzz(func(_ *testing.T, text, data string) {
		for _, path := range []string{"/v1/messages", "/v1/chat/completions"} {
			ask(h, path, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"`+text+`"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+data+`"}}]}]}`)
		}
	})
}
