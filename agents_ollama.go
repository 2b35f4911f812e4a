package agentd

import (
	"strings"

	"agentd/internal/profile"
	"agentd/model"
	"agentd/model/ollama"
)

// ollama makes the adapter of a model of an Ollama server: at the profile's address, else
// at that of OLLAMA_HOST, as Ollama's own programs do.
func (a *agents) ollama(m *profile.Model, credential model.CredentialFunc, headers map[string]string) (model.Provider, error) {
	base := m.BaseURL
	if base == "" {
		host, _ := a.env("OLLAMA_HOST")
		var err error
		if base, err = ollama.Host(host); err != nil {
			return nil, err
		}
	}
	return ollama.New(ollama.Config{BaseURL: base, Credential: credential, Headers: headers, Catalogue: a.catalogue,
		Options: &ollama.Options{NumCtx: m.Ollama.NumCtx, KeepAlive: m.Ollama.KeepAlive.Std()}})
}

// ollamaInfo completes what is known of a model that an Ollama server runs, and gives its
// window, 0 if nobody knows it: it is what the model is loaded with. Its calls cost
// nothing but electricity, unless the server passes them on. Whether it sees images is
// the adapter's to find out.
func ollamaInfo(m *profile.Model, info *model.Info) (window int) {
	if m.Ollama.NumCtx > 0 {
		window = m.Ollama.NumCtx
		info.ContextWindow, info.MaxOutput = window, max(min(info.MaxOutput, window), 1)
	}
	info.Images = true
	if passedOn := strings.HasSuffix(m.Model, "-cloud") || strings.HasSuffix(m.Model, ":cloud"); !info.Priced() && !passedOn {
		info.Source = "Ollama runs models on machines of one's own"
	}
	return window
}
