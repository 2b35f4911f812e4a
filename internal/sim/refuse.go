package sim

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// What real services refuse a whole request for, and sessions were lost to.

// badText is where the text of a request is invalid UTF-8 or has half of a surrogate
// pair, or -1.
func badText(body string) int {
	if !utf8.ValidString(body) {
		return len(strings.ToValidUTF8(body, "")) // near enough
	}
	for at := 0; ; {
		i := strings.Index(body[at:], `\`)
		if i < 0 || at+i+1 >= len(body) {
			return -1
		}
		at += i
		switch unit := escaped(body[at:]); {
		case unit < 0:
			at += 2
		case unit >= 0xd800 && unit < 0xdc00:
			if low := escaped(body[at+6:]); low < 0xdc00 || low > 0xdfff {
				return at
			}
			at += 12
		case unit >= 0xdc00 && unit <= 0xdfff:
			return at
		default:
			at += 6
		}
	}
}

// escaped is the unit of a \u escape at the beginning of s, or -1.
func escaped(s string) int {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	unit := 0
	for _, c := range s[2:6] {
		n := strings.IndexRune("0123456789abcdef", c|0x20)
		if c >= '0' && c <= '9' {
			n = int(c - '0')
		}
		if n < 0 {
			return -1
		}
		unit = unit<<4 | n
	}
	return unit
}

const (
	antImageBytes = 5 << 20
	antImages     = 100
)

// image checks an image as Anthropic does.
func (m *antMessage) image(b gjson.Result, at func() string) *apiError {
	src := b.Get("source")
	if src.Get("type").String() != "base64" {
		return nil
	}
	switch src.Get("media_type").String() {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		return antBad("%s.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'", at())
	}
	raw, err := base64.StdEncoding.DecodeString(src.Get("data").String())
	m.p.images++
	switch {
	case err != nil:
		return antBad("%s.image.source.base64: invalid base64 data", at())
	case len(raw) > antImageBytes:
		return antBad("%s.image.source.base64: image exceeds 5 MB maximum: %d bytes > %d bytes", at(), len(raw), antImageBytes)
	case strings.HasPrefix(string(raw), "BROKEN"):
		return antBad("Could not process image")
	case m.p.images > antImages:
		return antBad("%s: too many images and documents: %d > %d", at(), m.p.images, antImages)
	}
	return nil
}

// oaiImages checks the images of a message as OpenAI does.
func oaiImages(at string, content gjson.Result) (fail *apiError) {
	content.ForEach(func(_, part gjson.Result) bool {
		if part.Get("type").String() != "image_url" {
			return true
		}
		_, data, inline := strings.Cut(part.Get("image_url.url").String(), ";base64,")
		if !inline {
			return true
		}
		raw, err := base64.StdEncoding.DecodeString(data)
		if err != nil || strings.HasPrefix(string(raw), "BROKEN") {
			fail = oaiBad(at, "invalid_image_format", "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].")
		}
		return fail == nil
	})
	return fail
}
