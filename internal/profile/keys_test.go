package profile

import "testing"

func TestKeysOfGeminiAndOllama(t *testing.T) {
	gemini, ollama := Model{Provider: "gemini", Model: "g"}, Model{Provider: "ollama", Model: "o"}
	named := Model{Provider: "gemini", Model: "g", APIKeyEnv: "MINE"}
	for _, tt := range []struct {
		name   string
		m      Model
		env    func(string) (string, bool)
		key    string
		usable bool
	}{
		{"no key", gemini, env(), "", false},
		{"its own variable", gemini, env("GEMINI_API_KEY", "a", "GOOGLE_API_KEY", "b"), "a", true},
		{"the other one", gemini, env("GEMINI_API_KEY", "", "GOOGLE_API_KEY", "b"), "b", true},
		{"only the one that is named", named, env("GOOGLE_API_KEY", "b"), "", false},
		{"Ollama needs none", ollama, env(), "", true},
		{"Ollama with one", ollama, env("OLLAMA_API_KEY", "k"), "k", true},
		{"Ollama with one that is named", Model{Provider: "ollama", APIKeyEnv: "MINE"}, env("OLLAMA_API_KEY", "k"), "", false},
	} {
		key, err := tt.m.APIKey(tt.env)
		if key != tt.key || (err == nil) != tt.usable || tt.m.Usable(tt.env) != tt.usable {
			t.Errorf("%s: %q, %v", tt.name, key, err)
		}
	}
}
