package message

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
)

func TestCheckImage(t *testing.T) {
	of := func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
	for _, tt := range []struct{ name, data, mime, field string }{
		{"an image", "AAAA", "image/png", ""},
		{"the largest", of(MaxImageBytes), "image/jpeg", ""},
		{"too large by one byte", of(MaxImageBytes + 1), "image/webp", "data"},
		{"too large by far", of(2 * MaxImageBytes), "image/gif", "data"},
		{"not base64", "not base64!", "image/png", "data"},
		{"not padded", "AA", "image/png", "data"},
		{"of URLs", "-_-_", "image/png", "data"},
		{"lines", "AA\nAA", "image/png", "data"},
		{"nothing", "", "image/png", "data"},
		{"no provider's type", "AAAA", "image/svg+xml", "mimeType"},
		{"no type", "AAAA", "", "mimeType"},
	} {
		b := Image(tt.data, tt.mime)
		err := b.CheckImage()
		var at *ImageError
		if errors.As(err, &at) != (tt.field != "") || at != nil && at.Field != tt.field {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err != nil && len(err.Error()) > 200 {
			t.Errorf("%s: the error holds the image", tt.name)
		}
	}
	if b := Text(strings.Repeat("x", 10)); b.CheckImage() != nil {
		t.Error("a text is no image")
	}
}
