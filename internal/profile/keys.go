package profile

import (
	"errors"
	"os"

	"agentd/fault"
)

// KeyEnv is the name of the environment variable that holds the model's API
// key; empty if it has none.
func (m *Model) KeyEnv() string {
	if m.Provider == "azure" && (m.Azure.Auth == "entra_id" || m.Azure.Auth == "managed_identity" || m.Azure.KeyVault != "") {
		return ""
	}
	if m.APIKeyEnv != "" {
		return m.APIKeyEnv
	}
	// The names are those of the providers' own SDKs.
	switch m.Provider {
	case "anthropic":
		return "ANTHROPIC_API_KEY"
	case "openai":
		return "OPENAI_API_KEY"
	case "azure":
		return "AZURE_OPENAI_API_KEY"
	case "gemini":
		return "GEMINI_API_KEY"
	case "ollama":
		return "OLLAMA_API_KEY"
	}
	return ""
}

// otherKeyEnv is a second name under which a provider's SDKs look for the key; empty if
// there is none, or the profile names the variable.
func (m *Model) otherKeyEnv() string {
	if m.Provider == "gemini" && m.APIKeyEnv == "" {
		return "GOOGLE_API_KEY"
	}
	return ""
}

// keyOptional: a server of one's own often asks for no key.
func (m *Model) keyOptional() bool {
	return m.KeyEnv() == "" || (m.BaseURL != "" || m.Provider == "ollama") && m.APIKeyEnv == "" && m.Provider != "azure"
}

// Usable reports whether the model is Ready. env may be nil for the process's
// environment.
func (m *Model) Usable(env func(string) (string, bool)) bool { return m.Ready(env) == nil }

// Ready says what a model lacks to be used: its key, or the address of its resource at
// Azure. The error is a *fault.Error. env may be nil for the process's environment.
func (m *Model) Ready(env func(string) (string, bool)) error {
	if _, err := m.APIKey(env); err != nil {
		return err
	}
	if m.Provider != "azure" {
		return nil
	}
	_, err := m.AzureAddress(env)
	return err
}

// APIKey reads the model's key; it is asked for each request, because keys are
// rotated. It is empty where none is needed. A missing key is a *fault.Error of
// kind unauthorized that names the variable. env may be nil for the process's
// environment.
func (m *Model) APIKey(env func(string) (string, bool)) (string, error) {
	if env == nil {
		env = os.LookupEnv
	}
	name := m.KeyEnv()
	if name == "" {
		return "", nil
	}
	if key, _ := env(name); key != "" {
		return key, nil
	}
	if other := m.otherKeyEnv(); other != "" {
		if key, _ := env(other); key != "" {
			return key, nil
		}
	}
	if m.keyOptional() {
		return "", nil
	}
	return "", &fault.Error{
		Kind: fault.Unauthorized, Field: "api_key_env",
		Err:  errors.New("no API key for " + m.Provider + ": the environment variable " + name + " is not set"),
		Hint: "export " + name + "=…, or name another variable with api_key_env",
	}
}

// UsableModels gives the models to try, in order: the primary one and, unless
// routing_strategy is single, the fallbacks; without those that lack their key.
// env may be nil for the process's environment.
func (p *Profile) UsableModels(env func(string) (string, bool)) []Model {
	all := []Model{p.PrimaryModel}
	if p.RoutingStrategy != "single" {
		all = append(all, p.FallbackModels...)
	}
	var out []Model
	for _, m := range all {
		if m.Usable(env) {
			out = append(out, m)
		}
	}
	return out
}
