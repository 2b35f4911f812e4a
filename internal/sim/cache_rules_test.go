package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"agentd/model/script"
)

// wall is a clock that moves when it is told to.
type wall struct{ t time.Time }

func newWall() *wall { return &wall{time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

func (w *wall) now() time.Time        { return w.t }
func (w *wall) after(d time.Duration) { w.t = w.t.Add(d) }

// antAsk sends a whole body but for max_tokens and returns input, read and written.
func antAsk(t *testing.T, s *Server, body string) [3]int64 {
	t.Helper()
	w := post(s, "/v1/messages", `{"max_tokens":9,`+body+`}`)
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	u := gjson.Get(w.Body.String(), "usage")
	return [3]int64{u.Get("input_tokens").Int(), u.Get("cache_read_input_tokens").Int(), u.Get("cache_creation_input_tokens").Int()}
}

func TestAnthropicCacheExpires(t *testing.T) {
	clock := newWall()
	s := New(Options{Now: clock.now})
	ask := func(mark string) [3]int64 {
		return antAsk(t, s, `"model":"m","messages":[`+says("user", block(filler("a", 1500), mark))+`]`)
	}
	ask(five)
	for range 3 { // each use keeps it for another five minutes
		clock.after(5*time.Minute - time.Second)
		if got := ask(five); got[1] == 0 {
			t.Fatalf("not read before five minutes were over: %v", got)
		}
	}
	clock.after(5 * time.Minute)
	if got := ask(hour); got[1] != 0 || got[2] == 0 {
		t.Fatalf("after five minutes: %v, want it written again", got)
	}
	for range 2 {
		clock.after(time.Hour - time.Second)
		if got := ask(hour); got[1] == 0 {
			t.Fatalf("not read before the hour was over: %v", got)
		}
	}
	clock.after(time.Hour)
	if got := ask(hour); got[1] != 0 {
		t.Fatalf("after an hour: %v", got)
	}
}

func TestAnthropicCacheMinimum(t *testing.T) {
	for model, least := range map[string]int{"claude-opus-5": 512, "claude-fable-5-1": 512, "claude-opus-5-5": 512, "claude-sonnet-5-5": 512,
		"claude-sonnet-5": 1024, "claude-sonnet-4-5-20250929": 1024, "claude-opus-4-1": 1024, "claude-opus-4-8": 1024, "m": 1024,
		"claude-opus-4-7": 2048, "claude-3-5-haiku-latest": 2048, "claude-opus-4-6": 4096, "claude-haiku-4-5": 4096} {
		for _, tokens := range []int{least - 2, least} {
			s := New(Options{})
			body := fmt.Sprintf(`"model":%q,"messages":[%s]`, model, says("user", block(filler("a", tokens), five)))
			antAsk(t, s, body)
			if got := antAsk(t, s, body); (got[1] > 0) != (tokens == least) {
				t.Errorf("%s, %d tokens: %v", model, tokens, got)
			}
		}
	}
}

// What changes beside the text makes messages others, and not what is ahead of them.
func TestAnthropicCacheInvalidation(t *testing.T) {
	tool := `"tools":[{"name":"t","input_schema":{"type":"object"}}],`
	system := `"system":[` + block(filler("s", 1500), five) + `],`
	messages := `"messages":[` + says("user", block(filler("a", 1200), five)) + `]`
	base := `"model":"m",` + tool + system + messages
	image := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}`
	for _, tt := range []struct {
		name, body string
		system     bool // still read
		messages   bool
	}{
		{"nothing", base, true, true},
		{"a choice that is the default", base + `,"tool_choice":{"type":"auto"}`, true, true},
		{"thinking that is off", base + `,"thinking":{"type":"disabled"}`, true, true},
		{"tool choice", base + `,"tool_choice":{"type":"none"}`, true, false},
		{"thinking", base + `,"thinking":{"type":"adaptive"}`, true, false},
		{"effort", base + `,"output_config":{"effort":"low"}`, true, false},
		{"an image", strings.Replace(base, `]}]`, `,`+image+`]}]`, 1), true, false},
		{"system", strings.Replace(base, "sss", "ssx", 1), false, false},
		{"tools", strings.Replace(base, `"name":"t"`, `"name":"u"`, 1), false, false},
		{"model", strings.Replace(base, `"model":"m"`, `"model":"n"`, 1), false, false},
	} {
		s := New(Options{})
		antAsk(t, s, base)
		got := antAsk(t, s, tt.body)
		if sys, msg := got[1] >= 1500, got[1] >= 2700; sys != tt.system || msg != tt.messages {
			t.Errorf("%s: %v, system read %v, messages read %v", tt.name, got, sys, msg)
		}
	}
}

// Calls in a row are one position for the look-back, and so are results in a row.
func TestAnthropicCacheLookBackJoinsCalls(t *testing.T) {
	turn := func(n int, mark string) string {
		var uses, results []string
		for i := range n {
			uses = append(uses, fmt.Sprintf(`{"type":"tool_use","id":"c%d","name":"t","input":{}}`, i))
			m := ""
			if i == n-1 {
				m = mark
			}
			results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":"c%d","content":"r"%s}`, i, m))
		}
		return says("assistant", uses...) + "," + says("user", results...)
	}
	first := func(mark string) string { return says("user", block(filler("a", 1500), mark)) }
	body := func(messages string) string {
		return `"model":"m","tools":[{"name":"t","input_schema":{"type":"object"}}],"messages":[` + messages + `]`
	}
	s := New(Options{})
	antAsk(t, s, body(first(five)))
	if got := antAsk(t, s, body(first("")+","+turn(40, five))); got[1] < 1500 {
		t.Errorf("a batch of 40 calls: %v, want the message before it read", got)
	}
}

func TestOldThoughtsAreNotRead(t *testing.T) {
	thought := strings.Repeat("think ", 400)
	think := `{"type":"thinking","thinking":"` + thought + `","signature":"` + script.Sign(thought) + `"}`
	body := func(model string) string {
		return `"model":"` + model + `","thinking":{"type":"adaptive"},"messages":[` + says("user", block("q", "")) + "," + says("assistant", think, block("answer", "")) +
			"," + says("user", block("and", "")) + `]`
	}
	sum := func(u [3]int64) int64 { return u[0] + u[1] + u[2] }
	s := New(Options{})
	if kept, dropped := sum(antAsk(t, s, body("claude-opus-5"))), sum(antAsk(t, s, body("claude-haiku-4-5"))); kept < dropped+500 {
		t.Errorf("%d tokens with the thoughts, %d without", kept, dropped)
	}
}

func TestCacheMarksAreChecked(t *testing.T) {
	thought := `{"type":"thinking","thinking":"a","signature":"` + script.Sign("a") + `"` + five + `}`
	for _, tt := range []struct{ messages, want string }{
		{says("user", block("a", `,"cache_control":{"type":"forever"}`)), "messages.0.content.0.cache_control.type: Input should be 'ephemeral'"},
		{says("user", block("a", `,"cache_control":{"type":"ephemeral","ttl":"2h"}`)), "messages.0.content.0.cache_control.ephemeral.ttl: Input should be '5m' or '1h'"},
		{says("user", block("a", `,"cache_control":true`)), "messages.0.content.0.cache_control: Input should be a valid dictionary"},
		{says("user", block("a", "")) + "," + says("assistant", thought, block("b", "")) + "," + says("user", block("c", "")), "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted"},
		{says("user", block("1", five), block("2", five), block("3", five), block("4", five), block("5", five)), "A maximum of 4 blocks with cache_control may be provided. Found 5."},
	} {
		w := post(New(Options{}), "/v1/messages", `{"model":"m","max_tokens":9,"messages":[`+tt.messages+`]}`)
		if got := gjson.Get(w.Body.String(), "error.message").String(); w.Code != 400 || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%d %s, want %s", w.Code, got, tt.want)
		}
	}
}

// oaiAsk returns the prompt's tokens, those read and those written.
func oaiAsk(t *testing.T, s *Server, model, extra string, texts ...string) [3]int64 {
	t.Helper()
	var msgs []string
	for i, x := range texts {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		msgs = append(msgs, `{"role":"`+role+`","content":"`+x+`"}`)
	}
	w := post(s, "/v1/chat/completions", `{"model":"`+model+`"`+extra+`,"messages":[`+strings.Join(msgs, ",")+`]}`)
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	u := gjson.Get(w.Body.String(), "usage")
	return [3]int64{u.Get("prompt_tokens").Int(), u.Get("prompt_tokens_details.cached_tokens").Int(), u.Get("prompt_tokens_details.cache_write_tokens").Int()}
}

func TestOpenAICacheKeysAndRetention(t *testing.T) {
	clock := newWall()
	s := New(Options{Now: clock.now})
	long := filler("a", 2000)
	read := func(model, extra string) int64 { return oaiAsk(t, s, model, extra, long)[1] }
	one, two := `,"prompt_cache_key":"one"`, `,"prompt_cache_key":"two"`
	read("gpt-5.4", one)
	if a, b := read("gpt-5.4", one), read("gpt-5.4", two); a == 0 || b != 0 {
		t.Errorf("the same key reads %d, another one %d", a, b)
	}
	clock.after(4 * time.Minute)
	if read("gpt-5.4", one) == 0 {
		t.Error("nothing read after four minutes")
	}
	clock.after(5 * time.Minute)
	if n := read("gpt-5.4", one); n != 0 {
		t.Errorf("%d read after five minutes without a use", n)
	}
	for range 14 { // used all the time, but never longer than an hour
		clock.after(4 * time.Minute)
		if read("gpt-5.4", one) == 0 {
			t.Error("nothing read within the hour")
		}
	}
	clock.after(4 * time.Minute)
	if n := read("gpt-5.4", one); n != 0 {
		t.Errorf("%d read after an hour in memory", n)
	}
	day := `,"prompt_cache_key":"day","prompt_cache_retention":"24h"`
	read("gpt-5.4", day)
	read("gpt-5.5", "")
	clock.after(23 * time.Hour)
	if a, b := read("gpt-5.4", day), read("gpt-5.5", ""); a == 0 || b == 0 {
		t.Errorf("after 23 hours %d and %d are read", a, b)
	}
	for _, bad := range []string{`"prompt_cache_retention":"1h"`, `"prompt_cache_options":{"mode":"implicit"}`} {
		if w := post(s, "/v1/chat/completions", `{"model":"gpt-5.4",`+bad+`,"messages":[{"role":"user","content":"a"}]}`); w.Code != 400 {
			t.Errorf("%s: %d", bad, w.Code)
		}
	}
	if w := post(s, "/v1/chat/completions", `{"model":"gpt-5.5","prompt_cache_retention":"in_memory","messages":[{"role":"user","content":"a"}]}`); w.Code != 400 {
		t.Errorf("in_memory with gpt-5.5: %d", w.Code)
	}
}

// Since GPT-5.6 what ends with the newest message is written, at a price, and read
// where it ends.
func TestOpenAIImplicitBreakpoints(t *testing.T) {
	clock := newWall()
	s := New(Options{Now: clock.now})
	long, short := filler("a", 2000), filler("b", 100)
	check := func(name string, got, want [3]int64) {
		t.Helper()
		if got != want {
			t.Errorf("%s: prompt, read and written %v, want %v", name, got, want)
		}
	}
	const m = "gpt-6-sol"
	check("first", oaiAsk(t, s, m, "", long), [3]int64{2007, 0, 2007})
	check("again", oaiAsk(t, s, m, "", long), [3]int64{2007, 2007, 0})
	check("grown", oaiAsk(t, s, m, "", long, "ok", short), [3]int64{2123, 2007, 116})
	check("another end", oaiAsk(t, s, m, "", long, "ok", filler("c", 200)), [3]int64{2223, 2007, 216})
	check("a prefix that ends where none was written", oaiAsk(t, s, m, "", filler("a", 1990)), [3]int64{1997, 0, 1997})
	check("too short", oaiAsk(t, s, m, "", short), [3]int64{107, 0, 0})
	check("switched off", oaiAsk(t, s, m, `,"prompt_cache_options":{"mode":"explicit"}`, long), [3]int64{2007, 0, 0})
	clock.after(30 * time.Minute)
	check("after 30 minutes", oaiAsk(t, s, m, "", long), [3]int64{2007, 0, 2007})
}

func TestGeminiCacheMinimum(t *testing.T) {
	s := New(Options{})
	for model, least := range map[string]int{"gemini-2.5-flash": 2048, "gemini-2.5-pro": 2048, "gemini-3.1-pro-preview": 4096, "gemini-4-argon": 4096} {
		small, large := filler("a", least-20), filler("b", least+20)
		oaiAsk(t, s, model, "", small)
		oaiAsk(t, s, model, "", large)
		if a, b := oaiAsk(t, s, model, "", small), oaiAsk(t, s, model, "", large); a[1] != 0 || b[1] != int64(least) {
			t.Errorf("%s: %v and %v", model, a, b)
		}
	}
}

func TestGPTVersion(t *testing.T) {
	for model, want := range map[string]float64{"gpt-5": 5, "gpt-5.6-sol": 5.6, "gpt-6.1-terra": 6.1, "gpt-4o": 4, "o3": 0, "gpt-": 0, "gpt-5.": 5, "gpt-1.2.3": 0} {
		if got := gptVersion(model); got != want {
			t.Errorf("%s: %v, want %v", model, got, want)
		}
	}
}
