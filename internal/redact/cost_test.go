package redact

import (
	"strings"
	"testing"
	"time"
)

// Whoever writes a text chooses what it costs to look through it: no more than a
// multiple of its length.
func TestCostOfHostileTexts(t *testing.T) {
	r := redactor(t, &Options{Personal: Kinds()})
	for name, unit := range map[string]string{
		"assignments": `password="`, "escaped": `password=\\\\\\\\`, "addresses": "a://b:", "keys": "-----BEGIN PRIVATE KEY-----", "cookies": "cookie: ", "parameters": "?key=", "flags": "--token ",
		"numbers": "4111 1111 1111 1111 ", "letters": "a.b@c", "bearer": "bearer aaaaaaaaa", "brackets": `[{"a":`, "AzSe": strings.Repeat("a", 31) + "AzSe", "web tokens": "eyJaaaaaaaaa.",
	} {
		cost := func(n int) time.Duration {
			text := strings.Repeat(unit, n/len(unit)+1)[:n]
			began := time.Now()
			_ = r.Text(text)
			return time.Since(began)
		}
		// A hundred times what it takes: what is quadratic takes minutes.
		if took := cost(64 << 10); took > 30*time.Second {
			t.Errorf("%s: 64 KiB take %v", name, took)
		}
	}
}
