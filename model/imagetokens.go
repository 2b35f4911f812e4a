package model

import "agentd/message"

// imageRule says what an image takes.
type imageRule uint8

const (
	imageByPatches28 imageRule = iota // a token for each square of 28 pixels: Qwen, Mistral, and a guess for others
	imageClaude                       // the same; larger ones are made smaller
	imageClaude47                     // the same, and larger ones are let be
	imageTiles                        // OpenAI up to GPT-5.3: squares of 512 pixels
	imagePatches                      // OpenAI's small models, and all from GPT-5.4 on: squares of 32 pixels
	imageGemini2                      // the same for every image
	imageGemini                       // the same for every image, from Gemini 3 on
)

// imageTokens is what an image takes whose size can not be read.
const imageTokens = 1000

// Image is about how many tokens an image takes, by its size and the provider's formula.
// Sizes are read from the first bytes of PNG, GIF, WebP and JPEG.
//
// The formulas are those of platform.claude.com (vision), developers.openai.com (images
// and vision) and ai.google.dev (tokens); what newer models take was checked against the
// table huggingface.co/datasets/JOHNISKING/image-token-cost, read 2026-11-22.
func (e Encoding) Image(b *message.Block) int64 {
	switch e.image {
	case imageGemini2:
		return 258
	case imageGemini:
		return 1100
	}
	w, h := imageSize(base64Bytes(b.Data))
	if w <= 0 || h <= 0 {
		return imageTokens
	}
	switch e.image {
	case imageClaude:
		return patches28(w, h, 1568, 1568)
	case imageClaude47:
		return patches28(w, h, 2000, 1<<30)
	case imageTiles:
		return tiles(w, h)
	case imagePatches:
		n := ceil(w, 32) * ceil(h, 32)
		return (min(n, 10_000)*12 + 9) / 10
	}
	return patches28(w, h, 1568, 1<<30)
}

// patches28 is how many squares of 28 pixels an image has when it is made so small that
// no side is longer than edge, and they are no more than most.
func patches28(w, h, edge, most int64) int64 {
	const side, note = 28, 40 // a note says what the size was
	added := int64(0)
	if long := max(w, h); long > edge {
		w, h, added = max(w*edge/long, 1), max(h*edge/long, 1), note
	}
	n := ceil(w, side) * ceil(h, side)
	if n > most {
		n = most
	}
	return n + added
}

// tiles is what OpenAI counts: made so small that it fits 2048 pixels square, then that
// the short side has 768, in squares of 512.
func tiles(w, h int64) int64 {
	if long := max(w, h); long > 2048 {
		w, h = max(w*2048/long, 1), max(h*2048/long, 1)
	}
	if short := min(w, h); short > 768 {
		w, h = w*768/short, h*768/short
	}
	return 85 + 170*ceil(w, 512)*ceil(h, 512)
}

func ceil(n, by int64) int64 { return (n + by - 1) / by }

// base64Bytes reads bytes out of base64 where they are wanted, without decoding all of it.
type base64Bytes string

// at is the byte at a place, -1 where there is none.
func (b base64Bytes) at(i int) int {
	if i < 0 || i/3*4+4 > len(b) {
		return -1
	}
	group, n := b[i/3*4:i/3*4+4], 0
	for k := range 4 {
		v := base64Value(group[k])
		if v < 0 {
			return -1
		}
		n = n<<6 | v
	}
	return n >> (16 - 8*(i%3)) & 0xff
}

func base64Value(c byte) int {
	switch {
	case c >= 'A' && c <= 'Z':
		return int(c - 'A')
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 26
	case c >= '0' && c <= '9':
		return int(c-'0') + 52
	case c == '+', c == '-':
		return 62
	case c == '/', c == '_':
		return 63
	}
	return -1
}

func (b base64Bytes) is(at int, text string) bool {
	for i := range len(text) {
		if b.at(at+i) != int(text[i]) {
			return false
		}
	}
	return true
}

// big and little are numbers of n bytes, -1 where there are none.
func (b base64Bytes) big(at, n int) int64 {
	v := int64(0)
	for i := range n {
		c := b.at(at + i)
		if c < 0 {
			return -1
		}
		v = v<<8 | int64(c)
	}
	return v
}

func (b base64Bytes) little(at, n int) int64 {
	v := int64(0)
	for i := n - 1; i >= 0; i-- {
		c := b.at(at + i)
		if c < 0 {
			return -1
		}
		v = v<<8 | int64(c)
	}
	return v
}

// largest is the longest side that is believed.
const largest = 1 << 16

// imageSize reads how many pixels an image has; 0, 0 if it does not say.
func imageSize(b base64Bytes) (w, h int64) {
	switch {
	case b.is(0, "\x89PNG"):
		w, h = b.big(16, 4), b.big(20, 4)
	case b.is(0, "GIF8"):
		w, h = b.little(6, 2), b.little(8, 2)
	case b.is(0, "RIFF") && b.is(8, "WEBP"):
		switch {
		case b.is(12, "VP8X"):
			w, h = b.little(24, 3)+1, b.little(27, 3)+1
		case b.is(12, "VP8L"):
			if v := b.little(21, 4); v >= 0 {
				w, h = v&0x3fff+1, v>>14&0x3fff+1
			}
		case b.is(12, "VP8 "):
			if x, y := b.little(26, 2), b.little(28, 2); x >= 0 && y >= 0 {
				w, h = x&0x3fff, y&0x3fff
			}
		}
	case b.is(0, "\xff\xd8"):
		w, h = jpegSize(b)
	}
	if w <= 0 || h <= 0 || w > largest || h > largest {
		return 0, 0
	}
	return w, h
}

// jpegSegments bounds how many parts ahead of the size are looked at.
const jpegSegments = 256

func jpegSize(b base64Bytes) (w, h int64) {
	at := 2
	for range jpegSegments {
		if b.at(at) != 0xff {
			return 0, 0
		}
		switch mark := b.at(at + 1); {
		case mark == 0xff:
			at++ // filling
		case mark >= 0xc0 && mark <= 0xcf && mark != 0xc4 && mark != 0xc8 && mark != 0xcc:
			return b.big(at+7, 2), b.big(at+5, 2)
		default:
			n := b.big(at+2, 2)
			if n < 2 {
				return 0, 0
			}
			at += 2 + int(n)
		}
	}
	return 0, 0
}
