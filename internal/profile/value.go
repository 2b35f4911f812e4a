package profile

import (
	"log/slog"
	"time"
)

// Secret is a text that must not be seen. It prints, logs and marshals as a mask.
type Secret string

const mask = "[redacted]"

// Reveal gives the text.
func (s Secret) Reveal() string { return string(s) }

// String masks the text.
func (s Secret) String() string { return mask }

// GoString masks the text under %#v.
func (s Secret) GoString() string { return mask }

// MarshalText masks the text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(mask), nil }

// LogValue masks the text.
func (s Secret) LogValue() slog.Value { return slog.StringValue(mask) }

// Duration is a time span, written as in Go: 500ms, 1s, 2m30s.
type Duration time.Duration

// Std gives the duration as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String writes the duration as it is read.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes the duration as it is read.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}
