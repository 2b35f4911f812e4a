package message

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// MaxImageBytes is how large an image may be, decoded: what every provider takes
// (https://docs.anthropic.com/en/docs/build-with-claude/vision).
const MaxImageBytes = 5 << 20

// ImageError says which member of an image block is wrong.
type ImageError struct {
	// Field is "data" or "mimeType".
	Field string
	// Err is what is wrong with it.
	Err error
}

// Error is the message, without the field.
func (e *ImageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ImageError) Unwrap() error { return e.Err }

// CheckImage reports what would make providers refuse the image, or nil; other
// blocks are always fine. A refused image stays in its session and makes every
// later request fail, so it must be kept out. The type is what the block says: the
// image itself is not looked into. The error is an *[ImageError].
func (b *Block) CheckImage() error {
	if b.Type != BlockImage {
		return nil
	}
	wrong := func(field, format string, args ...any) error {
		return &ImageError{Field: field, Err: fmt.Errorf(format, args...)}
	}
	switch b.MimeType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		return wrong("mimeType", "must be an image type that models take: image/png, image/jpeg, image/gif or image/webp")
	}
	switch {
	case b.Data == "":
		return wrong("data", "is missing: give the image in base64")
	case base64.StdEncoding.DecodedLen(len(b.Data)) > MaxImageBytes+2: // the padding counts as bytes there
		return wrong("data", "is an image of more than %d MiB", MaxImageBytes>>20)
	case strings.ContainsAny(b.Data, "\r\n"):
		return wrong("data", "must be base64 without line breaks")
	}
	raw, err := base64.StdEncoding.DecodeString(b.Data)
	switch {
	case err != nil:
		return wrong("data", "must be base64 (with + and /, padded with =)")
	case len(raw) > MaxImageBytes:
		return wrong("data", "is an image of more than %d MiB", MaxImageBytes>>20)
	}
	return nil
}
