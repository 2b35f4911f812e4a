package agentd

import (
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
		// Nothing bounds a reply but the window; half of it is left for what is asked.
		info.ContextWindow, info.MaxOutput = window, min(max(info.MaxOutput, window/2), window)
	}
	info.Images = true
	if !info.Priced() && !ollama.PassedOn(m.Model) {
		info.Source = "Ollama runs models on machines of one's own"
	}
	return window
}

// learnedWindow is how the window of a model becomes known while it is used, nil where it does
// not: Ollama's servers say what they have loaded. It is never more than the profile's.
func learnedWindow(p *profile.Profile, m *profile.Model, pr model.Provider) func() int {
	server, ok := pr.(*ollama.Provider)
	if !ok {
		return nil
	}
	id, limit := m.Model, p.MaxContextTokens
	return func() int {
		if w := server.Window(id); w > 0 {
			return narrower(w, limit)
		}
		return 0
	}
}
