package logs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentd/internal/redact"
)

func TestHandler(t *testing.T) {
	clean, err := redact.New(&redact.Options{Personal: []string{"email"}, Fields: []string{"iban"}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	// The level of what is behind does not count.
	h, err := New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelError}), Options{Level: slog.LevelInfo, Redact: clean})
	if err != nil {
		t.Fatal(err)
	}
	key := "sk-" + strings.Repeat("x", 30)
	log := slog.New(h).With("api_key", "abc", "at", "with").WithGroup("g")
	log.Debug("not seen")
	log.Info("to jane@example.org with "+key, "n", 5, "password", "p", "err", errors.New("refused "+key), "raw", json.RawMessage(`{"token":"t","n":1}`),
		"bytes", []byte(key), slog.Group("h", "iban", "DE", "ok", true), "any", struct{ Key string }{key}, "none", nil, "payload", Payload("write to jane@example.org"))
	line := b.String()
	if strings.Contains(line, key) || strings.Contains(line, "jane") || strings.Contains(line, `"abc"`) || strings.Contains(line, `"p"`) || strings.Contains(line, "DE") || strings.Contains(line, "not seen") {
		t.Error(line)
	}
	for _, want := range []string{`"n":5`, `"at":"with"`, `"ok":true`, `refused [redacted]`, `\"n\":1`, `"payload":"write to [redacted]"`} {
		if !strings.Contains(line, want) {
			t.Errorf("%s is not in %s", want, line)
		}
	}
	if h.Enabled(context.Background(), slog.LevelDebug) || !h.Enabled(context.Background(), slog.LevelInfo) {
		t.Error("the level")
	}
}

// What others report is never shown with its secrets, and not at all where payloads are
// not; nor are groups that are secret as a whole.
func TestReports(t *testing.T) {
	key := "sk-" + strings.Repeat("x", 30)
	for policy, want := range map[Policy]string{Full: "you said [redacted]", Redacted: "you said [redacted]", Hashes: "sha256:"} {
		var b bytes.Buffer
		h, err := New(slog.NewTextHandler(&b, nil), Options{Policy: policy})
		if err != nil {
			t.Fatal(err)
		}
		slog.New(h).Info("x", "error", Report("you said "+key), slog.Group("credentials", "user", "jane"))
		if text := b.String(); !strings.Contains(text, want) || strings.Contains(text, key) || strings.Contains(text, "jane") {
			t.Errorf("%s: %s", policy, text)
		}
	}
	var bare bytes.Buffer
	slog.New(slog.NewTextHandler(&bare, nil)).Info("x", "error", Report(key))
	if strings.Contains(bare.String(), key) {
		t.Error(bare.String())
	}
}

func TestPayloads(t *testing.T) {
	key := "sk-" + strings.Repeat("x", 30)
	for policy, want := range map[Policy]string{Full: key, Redacted: redact.Mask, "": redact.Mask, Hashes: "sha256:"} {
		var b bytes.Buffer
		h, err := New(slog.NewTextHandler(&b, nil), Options{Policy: policy})
		if err != nil {
			t.Fatal(err)
		}
		slog.New(h).Info("x", "p", Payload(key), "long", Payload(strings.Repeat("é", maxPayload)))
		if !strings.Contains(b.String(), want) || b.Len() > 2*maxPayload {
			t.Errorf("%s: %.200s", policy, b.String())
		}
		if policy != Full && strings.Contains(b.String(), key) {
			t.Errorf("%s: %.200s", policy, b.String())
		}
	}
	// Without this package's handler nothing is shown.
	var b bytes.Buffer
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "p", Payload(key))
	if strings.Contains(b.String(), key) {
		t.Error(b.String())
	}
}

func TestOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b.log")
	for range 2 {
		f, err := OpenFile(path, FileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "xx" {
		t.Error(string(b), err)
	}
}
