package agentd

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentd/fault"
)

// Nobody's profile is guessed: agentd.yaml says which is the default, or one is
// named default; requests over HTTP go by agentd.yaml alone.
func TestNoProfileIsGuessed(t *testing.T) {
	needsKey := "primary_model: {provider: anthropic, model: claude-sonnet-5}\n"
	none := func(string) (string, bool) { return "", false }
	for name, c := range map[string]struct {
		dir      string
		want     string
		scripted bool
	}{
		"embedded, without a key": {"", "demo", true},
		"default":                 {profiles(t, map[string]string{"apple": "", "default": ""}), "default", false},
		"none is the default":     {profiles(t, map[string]string{"apple": "", "demo": ""}), "", false},
		"one alone":               {profiles(t, map[string]string{"apple": ""}), "", false},
		// Its error says which key is missing.
		"no key, no demo": {profiles(t, map[string]string{"apple": "", "default": needsKey}), "default", false},
		"no key":          {profiles(t, map[string]string{"apple": "", "default": needsKey, "demo": ""}), "demo", true},
	} {
		rt, err := Open(t.Context(), Config{Configs: c.dir, Workspace: t.TempDir(), Env: none})
		if err != nil {
			t.Fatal(err)
		}
		got, scripted := rt.DefaultProfile()
		if got != c.want || scripted != c.scripted {
			t.Errorf("%s: %q (scripted %t), want %q", name, got, scripted, c.want)
		}
		if got == "" {
			_, err := rt.Start(t.Context(), StartRequest{Input: Text("x")})
			var f *fault.Error
			if !errors.As(err, &f) || f.Kind != fault.Invalid || f.Field != "profile" || !strings.Contains(f.Hint, "apple") {
				t.Errorf("%s: %v", name, err)
			}
		}
		h, err := rt.Handler()
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(h)
		r, err := http.Post(s.URL+"/runs", "application/json", strings.NewReader(`{"input":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != 400 || !strings.Contains(string(body), `"field":"profile"`) || !strings.Contains(string(body), "default_profile") {
			t.Errorf("%s: POST /runs without a profile: %d %s", name, r.StatusCode, body)
		}
		s.Close()
		rt.Close()
	}
}
