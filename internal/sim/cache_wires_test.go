package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// resAsk asks over Responses, turn by turn, and returns input, read and written.
func resAsk(t *testing.T, s *Server, model, extra string, items ...string) [3]int64 {
	t.Helper()
	w := post(s, "/v1/responses", `{"model":"`+model+`"`+extra+`,"input":[`+strings.Join(items, ",")+`]}`)
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	u := gjson.Get(w.Body.String(), "usage")
	return [3]int64{u.Get("input_tokens").Int(), u.Get("input_tokens_details.cached_tokens").Int(), u.Get("input_tokens_details.cache_write_tokens").Int()}
}

// Responses has the same cache as Chat: since GPT-5.6 what ends with the newest message
// or output of a tool is written, and read where it ends.
func TestResponsesCache(t *testing.T) {
	clock := newWall()
	s := New(Options{Now: clock.now})
	const m = "gpt-6-sol"
	user := `{"role":"user","content":"` + filler("a", 2000) + `"}`
	call := `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`
	out := `{"type":"function_call_output","call_id":"c1","output":"` + filler("b", 200) + `"}`
	first := resAsk(t, s, m, "", user)
	if first[1] != 0 || first[2] != first[0] {
		t.Errorf("first: %v, want all of it written", first)
	}
	again := resAsk(t, s, m, "", user)
	if again[1] != first[0] || again[2] != 0 {
		t.Errorf("again: %v, want all of it read", again)
	}
	grown := resAsk(t, s, m, "", user, call, out)
	if grown[1] != first[0] || grown[2] != grown[0]-first[0] {
		t.Errorf("grown: %v, want %d read and the rest written", grown, first[0])
	}
	if got := resAsk(t, s, m, `,"prompt_cache_key":"k"`, user); got[1] != 0 {
		t.Errorf("another key: %v", got)
	}
	if got := resAsk(t, s, m, `,"prompt_cache_options":{"mode":"explicit"}`, user); got[1] != 0 || got[2] != 0 {
		t.Errorf("switched off: %v", got)
	}
	clock.after(30 * time.Minute)
	if got := resAsk(t, s, m, "", user); got[1] != 0 || got[2] == 0 {
		t.Errorf("after 30 minutes: %v", got)
	}

	day := `,"prompt_cache_retention":"24h"`
	resAsk(t, s, "gpt-5.4", day, user)
	clock.after(23 * time.Hour)
	if got := resAsk(t, s, "gpt-5.4", day, user); got[1] == 0 {
		t.Errorf("kept for a day: %v", got)
	}
	if w := post(s, "/v1/responses", `{"model":"gpt-5.4","prompt_cache_retention":"1h","input":"a"}`); w.Code != 400 {
		t.Errorf("kept for an hour: %d", w.Code)
	}
}

// What is spoken over Gemini's wire is cached by Gemini's rule, whatever the model is
// called; Ollama tells nothing of what it keeps.
func TestGeminiCacheByWire(t *testing.T) {
	for model, least := range map[string]int{"gemini-2.5-flash": 2048, "gemini-4-argon": 4096, "flash": 4096, "gpt-6-sol": 4096} {
		clock := newWall()
		s := New(Options{Now: clock.now})
		ask := func(tokens int) int64 {
			w := post(s, "/v1beta/models/"+model+":generateContent", `{"contents":[{"role":"user","parts":[{"text":"`+filler("a", tokens)+`"}]}]}`)
			if w.Code != 200 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			return gjson.Get(w.Body.String(), "usageMetadata.cachedContentTokenCount").Int()
		}
		ask(least - 100)
		if n := ask(least - 100); n != 0 {
			t.Errorf("%s: %d read of too little", model, n)
		}
		ask(least + 20)
		if n := ask(least + 20); n != int64(least) {
			t.Errorf("%s: %d read, want %d", model, n, least)
		}
		for range 14 { // nothing says that it ends while it is used
			clock.after(4*time.Minute + 50*time.Second)
			if n := ask(least + 20); n != int64(least) {
				t.Fatalf("%s: %d read of what is in use", model, n)
			}
		}
	}
	s := New(Options{})
	for range 2 {
		w := post(s, "/api/chat", `{"model":"gpt-6-sol","stream":false,"messages":[{"role":"user","content":"`+filler("a", 2000)+`"}]}`)
		if n := gjson.Get(w.Body.String(), "prompt_eval_count").Int(); n < 2000 {
			t.Errorf("Ollama read %d tokens", n)
		}
	}
	if len(s.cache.cur) != 0 {
		t.Error("the simulator keeps prefixes that nobody is told of")
	}
}
