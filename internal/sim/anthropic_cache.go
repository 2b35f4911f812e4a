package sim

import (
	"strings"

	"github.com/tidwall/gjson"
)

// settings takes in what makes the cached messages others, and leaves tools and system
// prompt as they are: tool_choice, thinking, effort, and whether there are images at
// all. What is said and what is the same by default are one.
func (p *antParser) settings() *apiError {
	choice := strings.ReplaceAll(p.choiceRaw, " ", "")
	if choice == `{"type":"auto"}` {
		choice = ""
	}
	think := strings.ReplaceAll(p.think, " ", "")
	if think == `{"type":"disabled"}` {
		think = ""
	}
	images := ""
	last := -1
	p.messages.ForEach(func(i, m gjson.Result) bool {
		last++
		asks := m.Get("content").Type == gjson.String
		m.Get("content").ForEach(func(_, b gjson.Result) bool {
			asks = asks || b.Get("type").String() != "tool_result"
			if b.Get("type").String() == "image" || b.Get(`content.#(type=="image")`).Exists() {
				images = "images"
			}
			return true
		})
		if m.Get("role").String() == "user" && asks {
			p.prompted = last
		}
		return true
	})
	p.req.prefix.setting(choice + "\x00" + think + "\x00" + p.effort + "\x00" + images)
	return nil
}

// dropped is whether the model reads a block no more: thoughts of an earlier turn.
func (p *antParser) dropped(message int, b gjson.Result) bool {
	typ := b.Get("type").String()
	return message < p.prompted && (typ == "thinking" || typ == "redacted_thinking") && dropsThinking(p.req.Model)
}

// marks checks the cache marks.
func (p *antParser) marks() *apiError {
	if p.auto != 0 {
		p.req.prefix.markLast(p.auto)
	}
	n, short := 0, false
	for _, b := range p.req.prefix.blocks {
		if b.mark == 0 {
			continue
		}
		n += b.marks
		if b.mark == markHour && short {
			return antBad("messages: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.")
		}
		short = short || b.mark == markShort
	}
	if n > 4 {
		return antBad("A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
	}
	return nil
}
