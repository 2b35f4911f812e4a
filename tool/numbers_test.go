package tool

import (
	"encoding/json"
	"math/big"
	"testing"
)

func TestPlainNumbers(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1e3}`: `{"a":1000}`, `{"a":1000.0}`: `{"a":1000}`, `{"a":-0.5E+4}`: `{"a":-5000}`, `{"a":1.25e1}`: `{"a":12.5}`,
		`{"a":125e-4}`: `{"a":0.0125}`, `{"a":-0.0}`: `{"a":0}`, `{"a":0e9}`: `{"a":0}`, `{"a":[{"b":1E2}]}`: `{"a":[{"b":100}]}`,
		`{"a":1e999999999}`: `{"a":1e999999999}`, `{"a":"1e3","b":1}`: `{"a":"1e3","b":1}`, `{"b":1, "a":2}`: `{"b":1, "a":2}`, `{`: `{`, ``: ``,
	} {
		if got := string(PlainNumbers(json.RawMessage(in))); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func FuzzPlainNumber(f *testing.F) {
	for _, s := range []string{"1e3", "-0.50E-3", "12.5e1", "0", "-0e0", "100"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var n json.Number
		if _, huge := hugeNumber(json.Number(s)); huge || json.Unmarshal([]byte(s), &n) != nil || string(n) != s {
			return
		}
		plain := plainNumber(s)
		a, _ := new(big.Rat).SetString(s)
		b, ok := new(big.Rat).SetString(plain)
		if !ok || a == nil || a.Cmp(b) != 0 || !json.Valid([]byte(plain)) {
			t.Fatalf("%s became %s", s, plain)
		}
		if again := plainNumber(plain); again != plain {
			t.Fatalf("%s became %s, then %s", s, plain, again)
		}
	})
}
