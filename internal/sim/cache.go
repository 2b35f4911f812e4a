package sim

import (
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"agentd/message"
	"agentd/model/script"
)

// The rules of both services, in tokens and blocks.
const (
	cacheMinimum = 1024
	cacheStep    = 128 // OpenAI
	lookBack     = 20  // Anthropic: blocks before a mark
	stepBytes    = cacheStep * 4
)

// mark is a cache_control of Anthropic.
type mark int

const (
	markShort mark = 1 // 5m
	markHour  mark = 2 // 1h
)

// prefixes are what a cache can look up: for OpenAI a hash at every 128 tokens,
// for Anthropic one at the end of every block.
type prefixes struct {
	hash   uint64
	size   int           // bytes so far
	steps  []uint64      // OpenAI
	blocks []prefixBlock // Anthropic
}

type prefixBlock struct {
	hash  uint64 // of everything up to the end of the block
	end   int    // bytes up to there
	mark  mark
	marks int // cache_control entries in the block
}

// FNV-1a.
const (
	fnvSeed  = 14695981039346656037
	fnvPrime = 1099511628211
)

func mix(h uint64, s string) uint64 {
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

// begin starts a prompt; prompts of different models never share a prefix.
func (p *prefixes) begin(model string) { p.hash = mix(fnvSeed, model+"\x00") }

// stream adds a piece of an OpenAI prompt.
func (p *prefixes) stream(s string) {
	for s != "" {
		n := min(stepBytes-p.size%stepBytes, len(s))
		p.hash = mix(p.hash, s[:n])
		p.size += n
		s = s[n:]
		if p.size%stepBytes == 0 {
			p.steps = append(p.steps, p.hash)
		}
	}
}

// text adds content that was given as a string: the same as one text block.
func (p *prefixes) text(role string, s gjson.Result) { p.add(role, "text", s.Raw, 0, 0) }

// block adds a block of an Anthropic prompt. A cache_control is a mark on it and no
// part of what is compared, because marks move from request to request.
func (p *prefixes) block(role string, b gjson.Result) {
	raw, m, n := stripMarks(b.Raw)
	if role != "tool" && b.Get("type").String() == "text" {
		p.add(role, "text", b.Get("text").Raw, m, n)
		return
	}
	p.add(role, "block", raw, m, n)
}

func (p *prefixes) add(role, kind, raw string, m mark, marks int) {
	p.hash = mix(mix(mix(p.hash, role), kind), raw)
	p.size += len(raw)
	p.blocks = append(p.blocks, prefixBlock{p.hash, p.size, m, marks})
}

// markLast marks the last block, for a cache_control at the top of a request.
func (p *prefixes) markLast() {
	if n := len(p.blocks); n > 0 && p.blocks[n-1].mark == 0 {
		p.blocks[n-1].mark, p.blocks[n-1].marks = markShort, 1
	}
}

// stripMarks cuts every cache_control out of a raw JSON object. Inside a JSON
// string the quotes of its name would be escaped, so a plain search is right.
func stripMarks(raw string) (plain string, m mark, n int) {
	const key = `"cache_control"`
	from := 0
	for {
		i := strings.Index(raw[from:], key)
		if i < 0 {
			return raw, m, n
		}
		i += from
		tail := raw[i+len(key):]
		val := strings.TrimLeft(tail, " \t\r\n")
		if !strings.HasPrefix(val, ":") { // a string, not a key
			from = i + len(key)
			continue
		}
		val = strings.TrimLeft(val[1:], " \t\r\n")
		rest := len(val)
		val = val[:valueEnd(val)]
		if v := gjson.Parse(val); v.IsObject() {
			n++
			m = max(m, markShort)
			if v.Get("ttl").String() == "1h" {
				m = markHour
			}
		}
		pre, post := raw[:i], raw[len(raw)-rest+len(val):]
		if after := strings.TrimLeft(post, " \t\r\n"); strings.HasPrefix(after, ",") {
			post = strings.TrimLeft(after[1:], " \t\r\n")
		} else if before := strings.TrimRight(pre, " \t\r\n"); strings.HasSuffix(before, ",") {
			pre = before[:len(before)-1]
		}
		raw, from = pre+post, len(pre)
	}
}

// valueEnd is the length of the JSON value that s begins with. s is a part of a
// valid document.
func valueEnd(s string) int {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
			if !quoted && depth == 0 {
				return i + 1
			}
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth <= 0 {
				return i + 1 + min(depth, 0)
			}
		case c == ',' && depth == 0:
			return i
		}
	}
	return len(s)
}

// prefixCache remembers prompt prefixes. When one generation is full the older one
// is dropped, which bounds it at 16 MB or so.
type prefixCache struct {
	mu       sync.Mutex
	cur, old map[uint64]struct{}
}

const generation = 200_000

func newPrefixCache() *prefixCache {
	c := &prefixCache{}
	c.reset()
	return c
}

func (c *prefixCache) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cur, c.old = map[uint64]struct{}{}, nil
}

func (c *prefixCache) has(h uint64) bool {
	if _, ok := c.cur[h]; ok {
		return true
	}
	_, ok := c.old[h]
	return ok
}

func (c *prefixCache) put(h uint64) {
	if len(c.cur) >= generation {
		c.old, c.cur = c.cur, make(map[uint64]struct{}, generation/4)
	}
	c.cur[h] = struct{}{}
}

// account splits the prompt's tokens into read, written and new ones, and remembers
// the prompt. It keeps their sum.
func (c *prefixCache) account(req *request, u *message.Usage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if req.CallPrefix == "toolu_" {
		c.marked(&req.prefix, u)
	} else {
		c.automatic(&req.prefix, u)
	}
}

// automatic is OpenAI's rule.
func (c *prefixCache) automatic(p *prefixes, u *message.Usage) {
	const first = cacheMinimum/cacheStep - 1
	for i := len(p.steps) - 1; i >= first; i-- {
		if c.has(p.steps[i]) {
			u.CacheRead = int64(i+1) * cacheStep
			break
		}
	}
	for i := len(p.steps) - 1; i >= first; i-- {
		if _, ok := c.cur[p.steps[i]]; ok {
			break // what is shorter is there too
		}
		c.put(p.steps[i])
	}
	u.Input -= u.CacheRead
}

// marked is Anthropic's rule.
func (c *prefixCache) marked(p *prefixes, u *message.Usage) {
	read, last := -1, -1
	for i, b := range p.blocks {
		if b.mark == 0 {
			continue
		}
		last = i
		for j := i; j >= max(0, i-lookBack) && j > read; j-- {
			if c.has(p.blocks[j].hash) {
				read = j
				break
			}
		}
	}
	if read >= 0 {
		u.CacheRead = script.Tokens(p.blocks[read].end)
	}
	if last > read {
		if end := script.Tokens(p.blocks[last].end); end >= cacheMinimum {
			u.CacheWrite = end - u.CacheRead
		}
	}
	u.Input -= u.CacheRead + u.CacheWrite
	for _, b := range p.blocks {
		if b.mark != 0 && script.Tokens(b.end) >= cacheMinimum {
			c.put(b.hash)
		}
	}
}

// writtenForHour is the part of the written tokens that marks of one hour wrote.
func (p *prefixes) writtenForHour(u *message.Usage) int64 {
	end := int64(0)
	for _, b := range p.blocks {
		if b.mark == markHour {
			end = script.Tokens(b.end)
		}
	}
	return max(0, min(end-u.CacheRead, u.CacheWrite))
}
