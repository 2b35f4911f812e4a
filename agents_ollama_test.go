package agentd

import (
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"agentd/internal/profile"
	"agentd/internal/sim"
	"agentd/model"
	"agentd/model/ollama"
	"agentd/model/script"
)

// What is known of a local model: it costs nothing, and its window is what it is loaded with.
func TestOllamaInfo(t *testing.T) {
	for _, tt := range []struct {
		name   string
		numCtx int
		priced bool
		window int
	}{{"qwen3", 0, true, 0}, {"qwen3", 32_768, true, 32_768}, {"qwen3", 1024, true, 1024}, {"gpt-oss:120b-cloud", 0, false, 0}, {"glm:cloud", 65_536, false, 65_536}} {
		m := &profile.Model{Provider: "ollama", Model: tt.name, Ollama: profile.Ollama{NumCtx: tt.numCtx}}
		info := model.NewCatalogue().Lookup("ollama", tt.name)
		if window := ollamaInfo(m, &info); window != tt.window || info.Priced() != tt.priced || !info.Images || info.MaxOutput < 1 || info.MaxOutput > info.ContextWindow {
			t.Errorf("%+v: window %d, %+v", tt, window, info)
		}
	}
}

// A reply may have half of the context that a model is loaded with; what is learned of it
// never widens what the profile says.
func TestOllamaWindow(t *testing.T) {
	m := &profile.Model{Provider: "ollama", Model: "qwen3", Ollama: profile.Ollama{NumCtx: 65_536}}
	info := model.NewCatalogue().Lookup("ollama", "qwen3")
	if ollamaInfo(m, &info); info.MaxOutput != 32_768 {
		t.Errorf("a reply of %d tokens", info.MaxOutput)
	}
	pr, err := ollama.New(ollama.Config{Options: &ollama.Options{NumCtx: 65_536}})
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int]int{0: 65_536, 1000: 1000, 100_000: 65_536} {
		if got := learnedWindow(&profile.Profile{Routing: profile.Routing{MaxContextTokens: limit}}, m, pr)(); got != want {
			t.Errorf("%d where the profile says %d, want %d", got, limit, want)
		}
	}
	if learnedWindow(&profile.Profile{}, m, nil) != nil {
		t.Error("another provider's window is learned")
	}
}

// The variables of the providers' own programs are enough: a key for Gemini, an address
// for Ollama.
func TestProvidersByTheEnvironment(t *testing.T) {
	s, err := script.Parse("test.yaml", []byte("fallthrough: '{{.Model}} says hello'\n"))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(sim.New(sim.Options{Scripts: []*script.Script{s}}))
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agents", "g.yaml"), fmt.Sprintf("profile_name: g\nprimary_model: {provider: gemini, model: gemini-3.8-flash, base_url: %q}\n", srv.URL))
	write(t, filepath.Join(dir, "agents", "o.yaml"), "profile_name: o\nprimary_model: {provider: ollama, model: qwen3, ollama: {num_ctx: 32768, keep_alive: 10m}}\n")
	for _, key := range []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"} {
		env := map[string]string{key: "k", "OLLAMA_HOST": strings.TrimPrefix(srv.URL, "http://")}
		rt, err := Open(t.Context(), Config{Configs: dir, Data: filepath.Join(t.TempDir(), "data"), Workspace: t.TempDir(), Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"g": "gemini-3.8-flash says hello", "o": "qwen3 says hello"} {
			r, err := rt.Start(t.Context(), StartRequest{Profile: name, Input: Text("hi")})
			if err == nil {
				r, err = rt.Wait(t.Context(), r.ID)
			}
			if err != nil || r.Output != want {
				t.Errorf("%s with %s: %+v, %v", name, key, r, err)
			}
		}
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	}
}
