package redact

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// samples are made up, in the shapes that the vendors give out. They are put
// together here so that scanners of the repository do not take them for real.
func samples() map[string]string {
	a := func(n int) string { return strings.Repeat("aB3dE6gH9j", n/10+1)[:n] }
	hex := func(n int) string { return strings.Repeat("0123456789abcdef", n/16+1)[:n] }
	return map[string]string{
		"openai": "sk-" + "proj-" + a(40), "anthropic": "sk-" + "ant-api03-" + a(80), "openrouter": "sk-" + "or-v1-" + hex(64),
		"google": "AI" + "za" + a(35), "google token": "ya" + "29." + a(40), "aws": "AK" + "IA" + "ABCDEFGHIJKLMNOP",
		"github": "gh" + "p_" + a(36), "github fine": "github" + "_pat_" + a(60), "gitlab": "gl" + "pat-" + a(20),
		"slack": "xo" + "xb-123456789012-" + a(24), "slack hook": "hooks.slack" + ".com/services/T000/B000/" + a(24),
		"stripe": "sk" + "_live_" + a(24), "sendgrid": "S" + "G." + a(22) + "." + a(43), "twilio": "S" + "K" + hex(32),
		"npm": "np" + "m_" + a(36), "pypi": "py" + "pi-" + a(60), "huggingface": "h" + "f_" + a(34), "groq": "gs" + "k_" + a(52),
		"xai": "xa" + "i-" + a(80), "digitalocean": "do" + "p_v1_" + hex(64), "databricks": "da" + "pi" + hex(32), "vault": "hv" + "s." + a(24),
		"telegram": "123456789:" + "AA" + a(33), "agentd": "agentd" + "_" + a(32),
		"jwt": "ey" + "J" + a(20) + ".ey" + "J" + a(30) + "." + a(43),
	}
}

func redactor(t testing.TB, o *Options) *Redactor {
	t.Helper()
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSecretsAreTakenOut(t *testing.T) {
	r := redactor(t, nil)
	for name, secret := range samples() {
		for _, around := range []string{"%", "the key is % and more", "key:%", `{"text":"see %"}`, "X=%;", "https://h/?k=%&x=1", "(%)", "\"%\""} {
			s := strings.ReplaceAll(around, "%", secret)
			if got := r.Text(s); strings.Contains(got, secret[len(secret)-12:]) {
				t.Errorf("%s: %q became %q", name, s, got)
			}
		}
	}
}

func TestTexts(t *testing.T) {
	r := redactor(t, &Options{Personal: Kinds(), Fields: []string{"customer-iban"}, Patterns: []string{`PROJ-[0-9]+`}})
	for in, want := range map[string]string{
		"Authorization: Bearer abc":                                     "Authorization: " + Mask,
		"authorization=Basic dXNlcjpwYXNz":                              "authorization=" + Mask,
		`-H "Authorization: token abcdef" x`:                            `-H "Authorization: ` + Mask + `" x`,
		"a bearer abcdefghijk.lmn= b":                                   "a bearer " + Mask + " b",
		"bearer of news":                                                "bearer of news",
		"postgres://bob:hunter2@db/x":                                   "postgres://bob:" + Mask + "@db/x",
		"https://example.org/a:b@c":                                     "https://example.org/a:b@c",
		"password=hunter2 next":                                         "password=" + Mask + " next",
		"DB_PASSWORD: 'hunter2'":                                        "DB_PASSWORD: '" + Mask + "'",
		"export AWS_SECRET_ACCESS_KEY=abcdefgh":                         "export AWS_SECRET_ACCESS_KEY=" + Mask,
		"max_tokens: 15000, tokens=12345":                               "max_tokens: 15000, tokens=12345",
		"a secret is a thing: it has no value":                          "a secret is a thing: it has no value",
		"-----BEGIN RSA PRIVATE KEY-----\nMII\n":                        Mask,
		"x -----BEGIN PRIVATE KEY-----\nM\n-----END PRIVATE KEY----- y": "x " + Mask + " y",
		"write to jane.doe+x@example.co.uk now":                         "write to " + Mask + " now",
		"call +49 30 1234567 or (555) 123-4567":                         "call " + Mask + " or " + Mask,
		"card 4111 1111 1111 1111, order 4111111111111112":              "card " + Mask + ", order 4111111111111112",
		"2026-01-02T03:04:05 run_01jd4x8v2c0q5m7t9w1y3z5a7b 10 ms":      "2026-01-02T03:04:05 run_01jd4x8v2c0q5m7t9w1y3z5a7b 10 ms",
		"postgres://bob:hunt@er2@db/x":                                  "postgres://bob:" + Mask + "@db/x",
		`result {"password": "correct horse", "n": 1}`:                  `result {"password": "` + Mask + `", "n": 1}`,
		`said "{\"password\": \"correct horse\", \"n\": 1}"`:            `said "{\"password\": \"` + Mask + `\", \"n\": 1}"`,
		"api_key = 'a b c d e'":                                         "api_key = '" + Mask + "'",
		"deploy --token abcdefgh --force":                               "deploy --token " + Mask + " --force",
		"deploy --password --force":                                     "deploy --password --force",
		"GET /x?token=abcdefgh&page=2":                                  "GET /x?token=" + Mask + "&page=2",
		"Set-Cookie: sid=abcdefgh; Path=/":                              "Set-Cookie: " + Mask,
		"see PROJ-123":                                                  "see " + Mask,
		"task-force sk-eleton desk-top":                                 "task-force sk-eleton desk-top",
	} {
		if got := r.Text(in); got != want {
			t.Errorf("%q\nbecame %q\nnot    %q", in, got, want)
		}
	}
}

func TestJSON(t *testing.T) {
	r := redactor(t, &Options{Personal: Kinds(), Fields: []string{"iban"}})
	for in, want := range map[string]string{
		`{"api_key":"x","n":1.50,"nested":{"X-Api-Key":["a"],"customer_iban":"DE"}}`: `{"api_key":"` + Mask + `","n":1.50,"nested":{"X-Api-Key":"` + Mask + `","customer_iban":"` + Mask + `"}}`,
		`{"password":"","token":null,"has_secret":true,"max_tokens":5}`:              `{"has_secret":true,"max_tokens":5,"password":"","token":null}`,
		`["<a>","{\"password\":\"x\"}"]`:                                             `["<a>","{\"password\":\"` + Mask + `\"}"]`,
		`4111111111111111`:                                                           `"` + Mask + `"`,
		`{"broken`:                                                                   `"` + Mask + `"`,
		`{} {}`:                                                                      `"` + Mask + `"`,
		``:                                                                           ``,
	} {
		if got := string(r.JSON(json.RawMessage(in))); got != want {
			t.Errorf("%s\nbecame %s\nnot    %s", in, got, want)
		}
	}
}

func TestWrongOptions(t *testing.T) {
	for _, o := range []Options{{Personal: []string{"shoe"}}, {Patterns: []string{"("}}, {Patterns: []string{"a*"}}, {Fields: []string{"-"}}} {
		if _, err := New(&o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// Whatever stands around a secret, it is not in the output; what was redacted
// once stays as it is; JSON stays JSON and UTF-8 stays UTF-8.
func FuzzText(f *testing.F) {
	known := samples()
	var all []string
	for _, s := range known {
		all = append(all, s)
	}
	for i, s := range all {
		f.Add("before "+s, " after", uint8(i))
	}
	f.Add(`{"password":"`, `"}`, uint8(0))
	f.Add("Authorization: Bearer ", "\n", uint8(3))
	f.Add("-----BEGIN PRIVATE KEY-----", "", uint8(1))
	f.Add("a@b.c +49 30 1234567 4111 1111 1111 1111", "://u:p@", uint8(7))
	r := redactor(f, &Options{Personal: Kinds()})
	f.Fuzz(func(t *testing.T, before, after string, n uint8) {
		secret := all[int(n)%len(all)]
		// Between words, as secrets stand: glued to letters nothing tells where one begins.
		in := before + " " + secret + " " + after
		out := r.Text(in)
		if strings.Contains(out, secret) {
			t.Fatalf("%q is in %q", secret, out)
		}
		if utf8.ValidString(in) && !utf8.ValidString(out) {
			t.Fatalf("%q became %q", in, out)
		}
		if again := r.Text(out); again != out {
			t.Fatalf("%q became %q and then %q", in, out, again)
		}
		if json.Valid([]byte(before)) && !json.Valid(r.JSON(json.RawMessage(before))) {
			t.Fatalf("%q is no longer JSON", before)
		}
	})
}

func BenchmarkPlainLine(b *testing.B) {
	r := redactor(b, nil)
	const line = "the store refuses a commit; the run goes on from the last one later run_01jd4x8v2c0q5m7t9w1y3z5a7b"
	for b.Loop() {
		_ = r.Text(line)
	}
}
