package sim

import (
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"agentd/message"
	"agentd/model/script"
)

// The rules of the services, in tokens and blocks. What depends on the model is in
// cache_models.go.
const (
	cacheMinimum = 1024
	cacheStep    = 128 // OpenAI
	lookBack     = 20  // Anthropic: positions that a mark looks at, its own is the first
	endings      = 20  // OpenAI since GPT-5.6: earlier ends of messages that are looked at
	stepBytes    = cacheStep * 4
)

// prefixes are what a cache can look up: for OpenAI and Gemini a hash at every 128
// tokens and at the end of messages, for Anthropic one at the end of every block.
type prefixes struct {
	hash   uint64
	size   int           // bytes so far
	steps  []uint64      // OpenAI, Gemini
	ends   []prefixEnd   // OpenAI since GPT-5.6: of messages that may end a cached prefix
	blocks []prefixBlock // Anthropic
	keep   time.Duration // OpenAI: prompt_cache_retention, 0 if not given
	none   bool          // OpenAI: only explicit breakpoints, which are not simulated; Ollama: always
}

type prefixEnd struct {
	hash uint64
	end  int
}

type prefixBlock struct {
	hash  uint64 // of everything up to the end of the block
	end   int    // bytes up to there
	mark  mark
	marks int // cache_control entries in the block
	// joined: it is one position with the block before it, as calls in a row are, and
	// results in a row.
	joined bool
	run    string
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

// setting takes in what is no part of the prompt's text, and still makes what follows
// another one.
func (p *prefixes) setting(s string) { p.hash = mix(p.hash, s+"\x00") }

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

// ending notes the end of a message that a cached prefix may end with.
func (p *prefixes) ending() { p.ends = append(p.ends, prefixEnd{p.hash, p.size}) }

// text adds content that was given as a string: the same as one text block.
func (p *prefixes) text(role string, s gjson.Result) { p.add(role, "text", s.Raw, "", 0, 0) }

// block adds a block of an Anthropic prompt. A cache_control is a mark on it and no
// part of what is compared, because marks move from request to request.
func (p *prefixes) block(role string, b gjson.Result) {
	raw, m, n := stripMarks(b.Raw)
	typ := b.Get("type").String()
	switch {
	case role == "tool":
		p.add(role, "block", raw, "", m, n)
	case typ == "text":
		p.add(role, "text", b.Get("text").Raw, "", m, n)
	case typ == "tool_use" || typ == "tool_result":
		p.add(role, "block", raw, typ, m, n)
	default:
		p.add(role, "block", raw, "", m, n)
	}
}

func (p *prefixes) add(role, kind, raw, run string, m mark, marks int) {
	p.hash = mix(mix(mix(p.hash, role), kind), raw)
	p.size += len(raw)
	n := len(p.blocks)
	joined := run != "" && n > 0 && p.blocks[n-1].run == run
	p.blocks = append(p.blocks, prefixBlock{hash: p.hash, end: p.size, mark: m, marks: marks, joined: joined, run: run})
}

// markLast marks the last block, for a cache_control at the top of a request.
func (p *prefixes) markLast(m mark) {
	if n := len(p.blocks); n > 0 && p.blocks[n-1].mark == 0 {
		p.blocks[n-1].mark, p.blocks[n-1].marks = m, 1
	}
}

// cached is a prefix that a cache has.
type cached struct {
	until int64 // Unix nanoseconds; a use moves it on
	last  int64 // and never beyond this, if it is not 0
	keep  time.Duration
}

// prefixCache remembers prompt prefixes. When one generation is full the older one
// is dropped, which bounds it at 40 MB or so.
type prefixCache struct {
	mu       sync.Mutex
	now      func() time.Time
	cur, old map[uint64]cached
}

const generation = 200_000

func newPrefixCache(now func() time.Time) *prefixCache {
	if now == nil {
		now = time.Now
	}
	c := &prefixCache{now: now}
	c.reset()
	return c
}

func (c *prefixCache) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cur, c.old = map[uint64]cached{}, nil
}

// has is whether a prefix is there and has not expired.
func (c *prefixCache) has(h uint64, at int64) (cached, bool) {
	e, ok := c.cur[h]
	if !ok {
		e, ok = c.old[h]
	}
	return e, ok && at < e.until
}

func (c *prefixCache) put(h uint64, e cached) {
	if _, ok := c.cur[h]; !ok && len(c.cur) >= generation {
		c.old, c.cur = c.cur, make(map[uint64]cached, generation/4)
	}
	c.cur[h] = e
}

// use keeps a prefix for as long again as it was written for.
func (c *prefixCache) use(h uint64, e cached, at int64) {
	e.until = at + int64(e.keep)
	if e.last != 0 {
		e.until = min(e.until, e.last)
	}
	c.put(h, e)
}

// account splits the prompt's tokens into read, written and new ones, and remembers
// the prompt. It keeps their sum. Lifetimes begin with the request.
func (c *prefixCache) account(req *request, u *message.Usage) {
	at := c.now().UnixNano()
	c.mu.Lock()
	defer c.mu.Unlock()
	r := rulesOf(req.Model, req.CallPrefix == "toolu_")
	if req.google {
		r = geminiRules(req.Model)
	}
	switch {
	case r.marks:
		c.marked(&req.prefix, u, &r, at)
	case req.prefix.none:
	case r.writes && len(req.prefix.ends) > 0:
		c.implicit(&req.prefix, u, &r, mix(fnvSeed, req.Session), at)
	default:
		if req.prefix.keep > 0 {
			r.keep, r.atMost = req.prefix.keep, 0
		}
		c.automatic(&req.prefix, u, &r, mix(fnvSeed, req.Session), at)
	}
}

// automatic is the rule of Gemini, and of OpenAI's models before GPT-5.6: the longest
// prefix in steps of 128 tokens. Requests with different keys go to different machines.
func (c *prefixCache) automatic(p *prefixes, u *message.Usage, r *cacheRules, key uint64, at int64) {
	first := int(r.least)/cacheStep - 1
	read := -1
	for i := len(p.steps) - 1; i >= first; i-- {
		if _, ok := c.has(p.steps[i]^key, at); ok {
			read = i
			break
		}
	}
	if read >= 0 {
		u.CacheRead = int64(read+1) * cacheStep
	}
	for i := first; i < len(p.steps); i++ {
		h := p.steps[i] ^ key
		if e, ok := c.has(h, at); ok {
			c.use(h, e, at)
			continue
		}
		e := cached{until: at + int64(r.keep), keep: r.keep}
		if r.atMost > 0 {
			e.last = at + int64(r.atMost)
		}
		c.put(h, e)
	}
	u.Input -= u.CacheRead
}

// implicit is OpenAI's rule since GPT-5.6: a prefix that ends with the newest message is
// written, and is read where it ends, not at any shorter place; up to 20 earlier ends of
// messages are looked at.
func (c *prefixCache) implicit(p *prefixes, u *message.Usage, r *cacheRules, key uint64, at int64) {
	last := len(p.ends) - 1
	read := -1
	for i := last; i >= max(0, last-endings); i-- {
		if e, ok := c.has(p.ends[i].hash^key, at); ok {
			c.use(p.ends[i].hash^key, e, at)
			read = i
			break
		}
	}
	if read >= 0 {
		u.CacheRead = script.Tokens(p.ends[read].end)
	}
	if end := script.Tokens(p.ends[last].end); last > read && end >= r.least {
		u.CacheWrite = end - u.CacheRead
		c.put(p.ends[last].hash^key, cached{until: at + int64(r.keep), keep: r.keep})
	}
	u.Input -= u.CacheRead + u.CacheWrite
}

// marked is Anthropic's rule.
func (c *prefixCache) marked(p *prefixes, u *message.Usage, r *cacheRules, at int64) {
	read, last := -1, -1
	for i := range p.blocks {
		if p.blocks[i].mark == 0 {
			continue
		}
		last = i
		for j, seen := i, 1; j >= 0; j-- {
			if e, ok := c.has(p.blocks[j].hash, at); ok {
				c.use(p.blocks[j].hash, e, at)
				read = max(read, j)
				break
			}
			if !p.blocks[j].joined {
				if seen++; seen > lookBack {
					break
				}
			}
		}
	}
	if read >= 0 {
		u.CacheRead = script.Tokens(p.blocks[read].end)
	}
	if last > read {
		if end := script.Tokens(p.blocks[last].end); end >= r.least {
			u.CacheWrite = end - u.CacheRead
		}
	}
	u.Input -= u.CacheRead + u.CacheWrite
	for _, b := range p.blocks {
		if b.mark == 0 || script.Tokens(b.end) < r.least {
			continue
		}
		if _, ok := c.has(b.hash, at); ok {
			continue
		}
		keep := r.keep
		if b.mark == markHour {
			keep = time.Hour
		}
		c.put(b.hash, cached{until: at + int64(keep), keep: keep})
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
