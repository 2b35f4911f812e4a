package session

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"agentd/message"
	"agentd/model"
)

// drawing is an image of that size.
func drawing(t *testing.T, side int) message.Block {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, side, side))); err != nil {
		t.Fatal(err)
	}
	return message.Image(base64.StdEncoding.EncodeToString(b.Bytes()), "image/png")
}

// shrinkSlowly is what shrink has to find, by counting everything again for each image.
func (c *Cut) shrinkSlowly(msgs []message.Message, room int, count Count) {
	stays := msgs[c.To:]
	c.Short = shortest(stays, room, count)
	short := c.Stays(stays)
	for i := range short {
		for images(&short[i]) > 0 && count.Tokens(short) > room {
			short[i], _ = dropImages(short[i], 1)
			c.Images++
		}
	}
	switch {
	case count.Tokens(short) > room && count.Tokens(stays) <= leastSummary:
		c.Short, c.Images = 0, 0
	case count.Tokens(short) > room:
		*c = Cut{From: c.From, To: len(msgs), All: true}
	case c.Images > 0:
		rest := (&Cut{Images: c.Images}).Stays(stays)
		if c.Short = 0; count.Tokens(rest) > room {
			c.Short = shortest(rest, room, count)
		}
	}
}

// Images are dropped one by one, whatever a conversation is made of: some are smaller than
// the note in their place.
func TestImagesAreDroppedAsIfAllWasCountedEachTime(t *testing.T) {
	pictures := []message.Block{drawing(t, 1), drawing(t, 40), drawing(t, 300), drawing(t, 900), message.Image("AAAA", "image/jpeg")}
	kinds := map[string]int{}
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 5))
		var msgs []message.Message
		for i := range 1 + r.IntN(12) {
			m := message.Message{Role: message.RoleUser}
			switch r.IntN(4) {
			case 0:
				m = message.Message{Role: message.RoleAssistant, Content: []message.Block{{Type: message.BlockThinking, Text: strings.Repeat("hm ", r.IntN(400))}}}
			case 1:
				m = message.Message{Role: message.RoleToolResult, ToolCallID: fmt.Sprint(i)}
			}
			for range r.IntN(6) {
				if r.IntN(3) == 0 {
					m.Content = append(m.Content, message.Text(strings.Repeat("größe 12 ", r.IntN(1+r.IntN(500)))))
				} else {
					m.Content = append(m.Content, pictures[r.IntN(len(pictures))])
				}
			}
			msgs = append(msgs, m)
		}
		count := Count{model.EncodingOf([]string{"", "claude-opus-5", "gpt-5", "gpt-5-mini", "gemini-3.5-flash"}[r.IntN(5)]), []int{0, 50, 137, 200}[r.IntN(4)]}
		room := 1 + r.IntN(count.Tokens(msgs)+1)
		want := Cut{To: r.IntN(len(msgs))}
		got := want
		want.shrinkSlowly(msgs, room, count)
		if got.shrink(msgs, room, count); got != want {
			t.Fatalf("seed %d: %+v, want %+v", seed, got, want)
		}
		switch {
		case got.All:
			kinds["all"]++
		case got.Images > 0:
			kinds["images"]++
		default:
			kinds["texts"]++
		}
	}
	if len(kinds) != 3 || kinds["images"] < 50 {
		t.Errorf("%v", kinds)
	}
}

// What it takes to drop images grows with how many there are, and not with the square: it
// copied the message for each.
func TestDroppingManyImages(t *testing.T) {
	const many = 2000
	m := message.User("look")
	for range many {
		m.Content = append(m.Content, message.Image("AAAA", "image/png"))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var c Cut
	c.shrink([]message.Message{m}, 100*many, Count{})
	runtime.ReadMemStats(&after)
	if c.Images == 0 || c.All {
		t.Fatalf("%+v", c)
	}
	if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 50 {
		t.Errorf("%d MB for %d images", n, many)
	}
}
