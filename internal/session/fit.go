package session

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"unicode/utf8"

	"agentd/message"
)

// ImageLimits bound the images of one request, the newest of the conversation. 0
// means no limit.
type ImageLimits struct {
	// Count is how many, Bytes how many bytes they have together, decoded.
	Count int
	Bytes int64
}

// Limits are what a request may have.
type Limits struct {
	Images ImageLimits
	// NoImages is for models that take none.
	NoImages bool
	// Window is the model's, in tokens; 0 if nobody knows.
	Window int
}

// bytesPerToken makes tokens of bytes. It is far above the usual four, so that what
// is said to be too large surely is; what is not may be, and the provider says so.
const bytesPerToken = 6

// Tokens is how many tokens a message has at least.
func Tokens(m *message.Message) int {
	n := 0
	for i := range m.Content {
		n += len(m.Content[i].Text) + len(m.Content[i].Arguments)
	}
	return n / bytesPerToken
}

// Fit makes a conversation fit to be sent: images that are too many, or that the
// model does not take, are replaced by texts, a message that alone is larger than
// the window is cut, and ids of calls are made unique. The same conversation, and
// one that goes on from it, is changed in the same way, so that providers' prompt
// caches hold, but for the moment when images leave. What needs no change is given
// back as it is; msgs is never changed.
func Fit(msgs []message.Message, l *Limits) []message.Message {
	out := msgs
	change := func(i int) *message.Message {
		if len(out) > 0 && &out[0] == &msgs[0] {
			out = append([]message.Message(nil), msgs...)
		}
		return &out[i]
	}
	oldest := imagesFrom(msgs, l)
	images := 0
	ids := callIDs{}
	for i := range msgs {
		m := &msgs[i]
		for j := range m.Content {
			if m.Content[j].Type != message.BlockImage {
				continue
			}
			images++
			switch {
			case l.NoImages:
				setBlock(change(i), m, j, message.Text("[An image is left out: this model takes none.]"))
			case images <= oldest:
				setBlock(change(i), m, j, message.Text("[An older image is left out: there are too many for one request.]"))
			}
		}
		if l.Window > 0 && Tokens(m) > l.Window {
			c := change(i)
			*c = LeaveOut(*c, "text", fmt.Sprintf("with %d bytes the message alone is larger than the model's context window", size(m)))
		}
		switch m.Role {
		case message.RoleAssistant:
			for j, id := range ids.reply(m) {
				if id != m.Content[j].ID {
					b := change(i).Content[j]
					b.ID = id
					setBlock(change(i), m, j, b)
				}
			}
		case message.RoleToolResult:
			if id := ids.result(m.ToolCallID); id != m.ToolCallID {
				change(i).ToolCallID = id
			}
		}
	}
	return out
}

// callIDs makes ids of calls unique. Some servers count from 0 in every reply, and
// others refuse a conversation in which an id comes twice.
type callIDs struct {
	seen map[string]bool
	// next is the number from which on one may be free, by id: a server that counts
	// from 0 in every reply must not cost more with every reply.
	next map[string]int
	// given are the ids of the last reply's calls by what they were, in order, if
	// one was changed.
	given map[string][]string
}

// reply gives the ids of a reply's calls by the place of their blocks, if one of
// them must be another.
func (c *callIDs) reply(m *message.Message) map[int]string {
	c.given = nil
	var out map[int]string
	for j := range m.Content {
		if m.Content[j].Type != message.BlockToolCall {
			continue
		}
		id := m.Content[j].ID
		if c.seen == nil {
			c.seen = map[string]bool{}
		}
		if id == "" || c.seen[id] {
			id = c.unused(id)
			if out == nil {
				out = map[int]string{}
			}
			out[j] = id
		}
		c.seen[id] = true
	}
	if out == nil {
		return nil
	}
	c.given = map[string][]string{}
	for j := range m.Content {
		if b := &m.Content[j]; b.Type == message.BlockToolCall {
			id := b.ID
			if other := out[j]; other != "" {
				id = other
			}
			c.given[b.ID] = append(c.given[b.ID], id)
		}
	}
	return out
}

// result gives the id of the call that a result answers.
func (c *callIDs) result(id string) string {
	given := c.given[id]
	if len(given) == 0 {
		return id
	}
	c.given[id] = given[1:]
	return given[0]
}

func (c *callIDs) unused(id string) string {
	if id == "" {
		id = "call"
	}
	if c.next == nil {
		c.next = map[string]int{}
	}
	for n := max(c.next[id], 2); ; n++ {
		if other := id + "_" + strconv.Itoa(n); !c.seen[other] {
			c.next[id] = n + 1
			return other
		}
	}
}

// setBlock replaces a block of a copied message without touching the original's.
func setBlock(c, original *message.Message, j int, b message.Block) {
	if &c.Content[0] == &original.Content[0] {
		c.Content = append([]message.Block(nil), c.Content...)
	}
	c.Content[j] = b
}

// imagesFrom is how many images, of the oldest, do not fit. When a limit is passed
// as many leave as make it half full again: a request then differs from the one
// before it once in a while, and not with each new image.
func imagesFrom(msgs []message.Message, l *Limits) (leave int) {
	if l.NoImages || l.Images.Count <= 0 && l.Images.Bytes <= 0 {
		return 0
	}
	var sizes []int64
	kept := int64(0)
	over := func(part int64) bool {
		return l.Images.Count > 0 && int64(len(sizes)-leave) > max(int64(l.Images.Count)/part, 1) || l.Images.Bytes > 0 && kept > l.Images.Bytes/part
	}
	for i := range msgs {
		for j := range msgs[i].Content {
			b := &msgs[i].Content[j]
			if b.Type != message.BlockImage {
				continue
			}
			n := int64(base64.StdEncoding.DecodedLen(len(b.Data)))
			sizes, kept = append(sizes, n), kept+n
			if !over(1) {
				continue
			}
			for over(2) && leave < len(sizes)-1 {
				kept -= sizes[leave]
				leave++
			}
			if over(1) { // it alone is larger than all may be
				kept -= sizes[leave]
				leave++
			}
		}
	}
	return leave
}

func size(m *message.Message) (n int) {
	for i := range m.Content {
		n += len(m.Content[i].Text) + len(m.Content[i].Arguments)
	}
	return n
}

// Marks of what requests leave out of a message; see [LeaveOut].
const (
	LeaveImages  = "images"
	LeaveText    = "text"
	LeaveMessage = "message"
)

// shownBytes is how much is shown of a text that is left out.
const shownBytes = 2 << 10

// LeaveOut is a message without a part, in whose place the reason stands: its images
// (LeaveImages), all but the beginning of its texts (LeaveText, with the images), or
// everything that it says (LeaveMessage). Calls stay, as their results need them. m
// is not changed.
func LeaveOut(m message.Message, what, reason string) message.Message {
	var out []message.Block
	for _, b := range m.Content {
		switch b.Type {
		case message.BlockImage:
			out = append(out, message.Text("[An image is left out: "+reason+".]"))
			continue
		case message.BlockThinking:
			if what != LeaveImages {
				continue // it is bound to what it was written with
			}
		case message.BlockText:
			if what == LeaveText && len(b.Text) > shownBytes {
				b = message.Block{Type: message.BlockText, Text: cutText(b.Text) + "\n[The rest is left out: " + reason + ".]", Context: b.Context}
			} else if what == LeaveMessage {
				continue
			}
		case message.BlockToolCall:
			if what == LeaveMessage || what == LeaveText && len(b.Arguments) > shownBytes {
				b.Arguments = []byte("{}")
			}
			if what != LeaveImages {
				b.Signature = ""
			}
		}
		out = append(out, b)
	}
	if what == LeaveMessage {
		out = append([]message.Block{message.Text("[What stood here is left out: " + reason + ".]")}, out...)
	}
	m.Content = out
	return m
}

func cutText(s string) string {
	n := shownBytes
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
