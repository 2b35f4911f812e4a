package model

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"agentd/message"
)

// What real tokenizers make of longer texts is checked in test/interop/tokens.
func TestEstimate(t *testing.T) {
	text := strings.Repeat("The file was read, and nothing in it was changed. ", 10) // 110 tokens and some
	req := &Request{Model: "gpt-5.4", System: []SystemPart{{Text: text}}, Messages: []message.Message{message.User(text), {Role: message.RoleAssistant, Content: []message.Block{message.Call("c", "look", []byte(`{"at":"here"}`))}}}}
	plain := PromptTokens(req)
	if plain < 225 || plain > 280 {
		t.Errorf("%d", plain)
	}
	req.Tools = []ToolSpec{{Name: "look", Description: text, Schema: []byte(`{"type":"object"}`)}}
	if more := PromptTokens(req) - plain; more < 60 || more > 130 {
		t.Errorf("a tool has %d", more)
	}
	u := Estimate(req, &message.Message{Content: []message.Block{message.Text("five!")}})
	if u.Input != PromptTokens(req) || u.Output < 1 || u.Output > 3 || u.TotalTokens != u.Input+u.Output || !u.Estimated || u.Cost != (message.Cost{}) {
		t.Errorf("%+v", u)
	}
	var sum message.Usage
	sum.Add(&message.Usage{Input: 1, TotalTokens: 1})
	if sum.Add(u); !sum.Estimated || sum.TotalTokens != u.TotalTokens+1 {
		t.Errorf("%+v", sum)
	}
	if u := Estimate(&Request{}, &message.Message{}); u.TotalTokens != 0 {
		t.Errorf("%+v", u)
	}
	req.Model, req.Tools[0].Description = "claude-sonnet-4-5", ""
	auto := PromptTokens(req)
	if req.ToolChoice = ToolChoiceRequired; PromptTokens(req) <= auto {
		t.Error("a call that must be made costs nothing more")
	}
}

func TestEncodingOf(t *testing.T) {
	for id, want := range map[string]Encoding{
		"claude-sonnet-4-5-20250929": {vocabularyClaude, imageClaude}, "anthropic/claude-3-7-sonnet-latest": {vocabularyClaude, imageClaude},
		"claude-opus-4-20250514": {vocabularyClaude, imageClaude}, "claude-opus-4-6": {vocabularyClaude, imageClaude}, "claude-haiku-4-5": {vocabularyClaude, imageClaude},
		"claude-opus-4-7": {vocabularyClaude47, imageClaude47}, "anthropic.claude-opus-4-8-v1:0": {vocabularyClaude47, imageClaude47},
		"claude-sonnet-5": {vocabularyClaude47, imageClaude47}, "claude-haiku-5-5": {vocabularyClaude47, imageClaude47}, "anthropic/else": {vocabularyClaude47, imageClaude47},
		"openai/gpt-4o": {vocabularyO200K, imageTiles}, "gpt-5": {vocabularyO200K, imageTiles}, "gpt-5-mini": {vocabularyO200K, imagePatches}, "gpt-6.1-sol": {vocabularyO200K, imagePatches},
		"o3-mini": {vocabularyO200K, imagePatches}, "o1": {vocabularyO200K, imageTiles}, "azure/chat": {vocabularyO200K, imagePatches},
		"gpt-4": {vocabularyCL100K, imageTiles}, "gpt-3.5-turbo": {vocabularyCL100K, imageTiles}, "gpt-oss:20b": {text: vocabularyO200K},
		"gemini/gemini-2.5-pro": {vocabularyGemma, imageGemini2}, "gemini-3.5-flash": {vocabularyGemma, imageGemini}, "gemma3:4b": {vocabularyGemma, imageGemini2},
		"ollama/llama3.3": {}, "qwen3": {}, "demo1": {}, "": {},
		"gpt-proxy/llama3.3": {}, "claude-gateway/qwen3": {}, "gemini-proxy/mistral-large": {}, "my-openai/chat": {}, "gemma-box/meta/llama4": {},
		"gpt-proxy/claude-opus-4-8": {vocabularyClaude47, imageClaude47}, "claude-3-gateway/claude-opus-4-8": {vocabularyClaude47, imageClaude47}, "mini-proxy/gpt-5": {vocabularyO200K, imageTiles},
		"openrouter/anthropic/claude-sonnet-4-5": {vocabularyClaude, imageClaude}, "gemini/learned": {vocabularyGemma, imageGemini}, "gemini": {vocabularyGemma, imageGemini}, "azure": {},
	} {
		if got := EncodingOf(id); got != want {
			t.Errorf("%q: %+v, want %+v", id, got, want)
		}
	}
}

// Images take what the providers' formulas say; the figures are those that providers
// reported for images of these sizes.
func TestImagesByTheirSize(t *testing.T) {
	for _, c := range []struct {
		id   string
		w, h int
		want int64
	}{
		{"claude-sonnet-4-5", 166, 282, 66}, {"claude-haiku-4-5", 540, 360, 260}, {"claude-haiku-4-5", 1920, 1080, 1608}, {"claude-opus-5-5", 1920, 1080, 2691},
		{"gpt-4o", 3008, 2000, 1105}, {"gpt-6-sol", 1024, 1024, 1229}, {"gpt-6-sol", 256, 256, 77}, {"gemini-2.5-flash", 597, 566, 258}, {"gemini-3.5-flash", 597, 566, 1100},
		{"qwen2.5-vl", 597, 566, 462},
	} {
		var buf bytes.Buffer
		if err := png.Encode(&buf, image.NewGray(image.Rect(0, 0, c.w, c.h))); err != nil {
			t.Fatal(err)
		}
		b := message.Image(base64.StdEncoding.EncodeToString(buf.Bytes()), "image/png")
		if got := EncodingOf(c.id).Image(&b); got != c.want {
			t.Errorf("%s, %d × %d: %d tokens, want %d", c.id, c.w, c.h, got, c.want)
		}
	}
	b := message.Image("AAAA", "image/png")
	if got := EncodingOf("gpt-4o").Image(&b); got != imageTokens {
		t.Errorf("of an image whose size nobody knows: %d", got)
	}
}

func TestSizesOfImages(t *testing.T) {
	const w, h = 301, 47
	img := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.Black, color.White})
	for name, write := range map[string]func(b *bytes.Buffer) error{
		"png":  func(b *bytes.Buffer) error { return png.Encode(b, img) },
		"gif":  func(b *bytes.Buffer) error { return gif.Encode(b, img, nil) },
		"jpeg": func(b *bytes.Buffer) error { return jpeg.Encode(b, img, nil) },
		"webp, lossy": func(b *bytes.Buffer) error {
			b.WriteString("RIFF\x00\x00\x00\x00WEBPVP8 \x00\x00\x00\x00\x30\x01\x00\x9d\x01\x2a\x2d\x01\x2f\x00\x00\x00\x00")
			return nil
		},
		"webp, extended": func(b *bytes.Buffer) error {
			b.WriteString("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x2c\x01\x00\x2e\x00\x00\x00\x00\x00")
			return nil
		},
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if x, y := imageSize(base64Bytes(base64.StdEncoding.EncodeToString(b.Bytes()))); x != w || y != h {
			t.Errorf("%s: %d × %d", name, x, y)
		}
	}
}

// Estimates take no memory: they are made of whole conversations ahead of each call.
func TestEstimatesTakeNoMemory(t *testing.T) {
	req := &Request{Model: "gpt-5.4", Messages: []message.Message{message.User(strings.Repeat("größe 12345 日本語 func() {}\n", 100))}, Tools: []ToolSpec{{Name: "a", Schema: []byte(`{"type":"object"}`)}}}
	if n := testing.AllocsPerRun(10, func() { PromptTokens(req) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Whatever a text is, it has no less than no token, about no more than one for each
// byte and a half, and two halves have about what the whole has.
func FuzzText(f *testing.F) {
	f.Add("The quick brown fox", 3)
	f.Add("größe 123456789012345678901234567890 日本語\xff\xe2", 5)
	f.Add(strings.Repeat(" ", 100)+strings.Repeat("A", 100)+"\xf0\x9f", 150)
	f.Fuzz(func(t *testing.T, s string, cut int) {
		for _, id := range []string{"", "gpt-5.4", "claude-sonnet-4-5", "claude-opus-5", "gemini-3.5-flash"} {
			e := EncodingOf(id)
			n := e.Text(s)
			if n < 0 || n > int64(len(s))*3/2+4 {
				t.Errorf("%s: %d tokens of %d bytes", id, n, len(s))
			}
			if cut >= 0 && cut <= len(s) {
				if parts := e.Text(s[:cut]) + e.Text(s[cut:]); parts < n-40 || parts > n+40 {
					t.Errorf("%s: %d tokens, cut at %d %d", id, n, cut, parts)
				}
			}
		}
	})
}

func FuzzImageSize(f *testing.F) {
	for _, s := range []string{"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00\x00\x00\x01\x00", "GIF89a\x10\x00\x10\x00", "RIFF\x00\x00\x00\x00WEBPVP8 ", "\xff\xd8\xff\xe0\x00\x02\xff\xc0\x00\x11\x08\x00\x10\x00\x10"} {
		f.Add(base64.StdEncoding.EncodeToString([]byte(s)))
	}
	f.Fuzz(func(t *testing.T, data string) {
		w, h := imageSize(base64Bytes(data))
		if w < 0 || h < 0 || w > largest || h > largest || (w == 0) != (h == 0) {
			t.Errorf("%d × %d", w, h)
		}
	})
}
