package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func filler(c string, tokens int) string { return strings.Repeat(c, tokens*4) }

func TestOpenAICache(t *testing.T) {
	ask := func(s *Server, model string, texts ...string) [2]int64 {
		var msgs []string
		for _, x := range texts {
			msgs = append(msgs, `{"role":"user","content":"`+x+`"}`)
		}
		w := post(s, "/v1/chat/completions", `{"model":"`+model+`","messages":[`+strings.Join(msgs, ",")+`]}`)
		u := gjson.Get(w.Body.String(), "usage")
		return [2]int64{u.Get("prompt_tokens").Int(), u.Get("prompt_tokens_details.cached_tokens").Int()}
	}
	s := New(Options{})
	long, other := filler("a", 2000), filler("b", 500)
	for i, step := range []struct {
		model string
		texts []string
		want  [2]int64
	}{
		{"m", []string{long}, [2]int64{2007, 0}},
		{"m", []string{long}, [2]int64{2007, 1920}},        // 15 steps of 128
		{"m", []string{long, other}, [2]int64{2514, 1920}}, // a longer one reads what it shares
		{"m", []string{long, other}, [2]int64{2514, 2432}}, // and is then cached itself
		{"m", []string{other, long}, [2]int64{2514, 0}},    // another order shares nothing
		{"n", []string{long}, [2]int64{2007, 0}},           // nor does another model
		{"m", []string{filler("c", 900)}, [2]int64{907, 0}},
		{"m", []string{filler("c", 900)}, [2]int64{907, 0}}, // too short
		{"m", []string{filler("a", 1100)}, [2]int64{1107, 1024}},
	} {
		if got := ask(s, step.model, step.texts...); got != step.want {
			t.Errorf("step %d: prompt and cached %v, want %v", i, got, step.want)
		}
	}
	s.Reset()
	if got := ask(s, "m", long); got[1] != 0 {
		t.Errorf("after reset %v", got)
	}
	off := New(Options{CacheRules: CacheOff})
	ask(off, "m", long)
	if got := ask(off, "m", long); got[1] != 0 {
		t.Errorf("off: %v", got)
	}
}

const (
	five = `,"cache_control":{"type":"ephemeral"}`
	hour = `,"cache_control":{"type":"ephemeral","ttl":"1h"}`
)

// antUse returns input, read, written (5 minutes) and written (an hour).
func antUse(s *Server, system, messages string) [4]int64 {
	w := post(s, "/v1/messages", `{"model":"m","max_tokens":9,"system":`+system+`,"messages":[`+messages+`]}`)
	u := gjson.Get(w.Body.String(), "usage")
	return [4]int64{u.Get("input_tokens").Int(), u.Get("cache_read_input_tokens").Int(),
		u.Get("cache_creation.ephemeral_5m_input_tokens").Int(), u.Get("cache_creation.ephemeral_1h_input_tokens").Int()}
}

func block(text, extra string) string { return `{"type":"text","text":"` + text + `"` + extra + `}` }

func says(role string, blocks ...string) string {
	return `{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + `]}`
}

func TestAnthropicCache(t *testing.T) {
	sys, a, b := filler("s", 1500), filler("a", 200), filler("b", 300)
	s := New(Options{})
	sum := func(u [4]int64) int64 { return u[0] + u[1] + u[2] + u[3] }
	check := func(name string, got, want [4]int64, total int64) {
		t.Helper()
		if got != want || sum(got) != total {
			t.Errorf("%s: input, read, written, for an hour %v (sum %d), want %v (sum %d)", name, got, sum(got), want, total)
		}
	}
	sysBlock := "[" + block(sys, hour) + "]"
	check("first", antUse(s, sysBlock, says("user", block(a, five))), [4]int64{0, 0, 200, 1501}, 1701)
	check("again", antUse(s, sysBlock, says("user", block(a, five))), [4]int64{0, 1701, 0, 0}, 1701)
	check("the mark moved on, content as a string", antUse(s, sysBlock, `{"role":"user","content":"`+a+`"},`+says("assistant", block("k", ""))+","+says("user", block(b, five))),
		[4]int64{0, 1701, 302, 0}, 2003)
	check("another message", antUse(s, sysBlock, says("user", block(b, five))), [4]int64{0, 1501, 300, 0}, 1801)
	check("no mark reads nothing", antUse(s, "["+block(sys, "")+"]", says("user", block(a, ""))), [4]int64{1701, 0, 0, 0}, 1701)
	check("too short", antUse(s, "["+block(a, five)+"]", says("user", block("x", ""))), [4]int64{202, 0, 0, 0}, 202)
	check("the key anywhere in the block", antUse(s, `[{"cache_control" : {"type":"ephemeral"} , "type":"text","text":"`+sys+`"}]`, says("user", block("q", ""))),
		[4]int64{1, 1501, 0, 0}, 1502)

	// A mark finds what was written at most 20 blocks before it.
	many := func(n int, last string) string {
		var bs []string
		for i := range n {
			bs = append(bs, block(fmt.Sprintf("%04d", i), ""))
		}
		return says("user", append(bs, block("last", last))...)
	}
	s.Reset()
	antUse(s, "["+block(sys, five)+"]", many(1, ""))
	if got := antUse(s, "["+block(sys, "")+"]", many(18, five)); got[1] != 1501 {
		t.Errorf("the 20th position: %v", got)
	}
	s.Reset()
	antUse(s, "["+block(sys, five)+"]", many(1, ""))
	if got := antUse(s, "["+block(sys, "")+"]", many(19, five)); got[1] != 0 {
		t.Errorf("the 21st position: %v", got)
	}
	s.Reset()
	auto := func() int64 {
		w := post(s, "/v1/messages", `{"model":"m","max_tokens":9,"cache_control":{"type":"ephemeral"},"messages":[`+says("user", block(sys, ""))+`]}`)
		return gjson.Get(w.Body.String(), "usage.cache_read_input_tokens").Int()
	}
	if first, second := auto(), auto(); first != 0 || second != 1501 {
		t.Errorf("cache_control at the top: %d, then %d", first, second)
	}
}

func TestStripMarks(t *testing.T) {
	for _, tt := range []struct {
		raw, rest string
		m         mark
		n         int
	}{
		{`{"a":1}`, `{"a":1}`, 0, 0},
		{`{"a":1,"cache_control":{"type":"ephemeral"}}`, `{"a":1}`, markShort, 1},
		{`{"cache_control":{"type":"ephemeral","ttl":"1h"},"a":1}`, `{"a":1}`, markHour, 1},
		{`{"a":1, "cache_control" : {} ,"b":2}`, `{"a":1, "b":2}`, markShort, 1},
		{`{"cache_control":{}}`, `{}`, markShort, 1},
		{`{"a":"cache_control","b":"\"cache_control\":{}"}`, `{"a":"cache_control","b":"\"cache_control\":{}"}`, 0, 0},
		{`{"c":[{"t":1,"cache_control":{}},{"t":2,"cache_control":{}}]}`, `{"c":[{"t":1},{"t":2}]}`, markShort, 2},
		{`{"cache_control":null,"a":1}`, `{"a":1}`, 0, 0},
		{`{"a":1,"cache_control":null}`, `{"a":1}`, 0, 0},
		{`{"a":{"cache_control":"}\\\"]"},"b":[1]}`, `{"a":{},"b":[1]}`, 0, 0},
		{`{"cache_control":{"type":"ephemeral","x":["}",{}]},"b":1}`, `{"b":1}`, markShort, 1},
	} {
		rest, m, n := stripMarks(tt.raw)
		if rest != tt.rest || m != tt.m || n != tt.n {
			t.Errorf("%s\ngot  %s %d %d\nwant %s %d %d", tt.raw, rest, m, n, tt.rest, tt.m, tt.n)
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	c := newPrefixCache(nil)
	for i := range uint64(3*generation + 5) {
		c.put(i, cached{until: 2})
	}
	_, newest := c.has(3*generation+4, 1)
	_, oldest := c.has(0, 1)
	if n := len(c.cur) + len(c.old); n > 2*generation || !newest || oldest {
		t.Errorf("%d entries", n)
	}
}

func FuzzStripMarks(f *testing.F) {
	f.Add(`{"a":1,"cache_control":{"type":"ephemeral"}}`)
	f.Add(`{"cache_control":null,"b":[{"cache_control":{}}]}`)
	f.Fuzz(func(t *testing.T, raw string) {
		if !gjson.Valid(raw) || !gjson.Parse(raw).IsObject() {
			return
		}
		if plain, _, _ := stripMarks(raw); !gjson.Valid(plain) {
			t.Errorf("%s became %s", raw, plain)
		}
	})
}
