package sim_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"agentd/internal/session"
	"agentd/internal/sim"
	"agentd/message"
	"agentd/model"
	"agentd/model/anthropic"
	"agentd/model/gemini"
	"agentd/model/modeltest"
	"agentd/model/ollama"
	"agentd/model/openai"
	"agentd/model/script"
)

// made is what New of an adapter gives.
func made[P model.Provider](t testing.TB, p P, err error) model.Provider {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// parties are the models of agentd's own clients.
func parties() []modeltest.Party {
	claude := func(t testing.TB, url string, c *http.Client) model.Provider {
		p, err := anthropic.New(anthropic.Config{BaseURL: url, Options: &anthropic.Options{Client: c}})
		return made(t, p, err)
	}
	chat := func(t testing.TB, url string, c *http.Client) model.Provider {
		p, err := openai.New(openai.Config{BaseURL: url + "/v1", Options: &openai.Options{Client: c}})
		return made(t, p, err)
	}
	items := func(t testing.TB, url string, c *http.Client) model.Provider {
		p, err := openai.New(openai.Config{BaseURL: url + "/v1", Protocol: openai.Responses, Options: &openai.Options{Client: c}})
		return made(t, p, err)
	}
	azure := func(t testing.TB, url string, c *http.Client) model.Provider {
		p, err := openai.New(openai.Config{BaseURL: url + "/openai/v1", Azure: &openai.Azure{}, Options: &openai.Options{Client: c},
			Credential: func(context.Context) (string, error) { return "key", nil }})
		return made(t, p, err)
	}
	google := func(t testing.TB, url string, c *http.Client) model.Provider {
		p, err := gemini.New(gemini.Config{BaseURL: url, Options: &gemini.Options{Client: c}})
		return made(t, p, err)
	}
	local := func(t testing.TB, url string, c *http.Client) model.Provider {
		p, err := ollama.New(ollama.Config{BaseURL: url, Options: &ollama.Options{Client: c}})
		return made(t, p, err)
	}
	return []modeltest.Party{
		{Name: "anthropic", Model: "claude-opus-5", New: claude},
		{Name: "anthropic, an older model", Model: "claude-sonnet-4-5", New: claude},
		{Name: "openai chat", Model: "gpt-4.1", New: chat},
		{Name: "openai chat without images", Model: "o3-mini", NoImages: true, New: chat},
		{Name: "openai responses", Model: "gpt-5.2", New: items},
		{Name: "azure", Model: "gpt-5.2", New: azure},
		{Name: "gemini", Model: "gemini-3.8-flash", New: google},
		{Name: "gemini 4", Model: "gemini-4-argon", New: google},
		{Name: "gemini 2", Model: "gemini-2.5-pro", New: google},
		{Name: "ollama", Model: "qwen3", Uncounted: true, New: local},
	}
}

func prepare(msgs []message.Message, to *modeltest.Party) []message.Message {
	return session.Fit(session.Heal(msgs), &session.Limits{NoImages: to.NoImages, Images: session.ImageLimits{Count: 100}})
}

// serve starts a simulator that plays a script.
func serve(t testing.TB, s *script.Script) string {
	srv := httptest.NewServer(sim.New(sim.Options{Scripts: []*script.Script{s}}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func parse(t testing.TB, src string) *script.Script {
	t.Helper()
	s, err := script.Parse("test.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A session can change its provider at any step: the simulator refuses what the services
// refuse.
func TestHandoffs(t *testing.T) {
	modeltest.Handoffs(t, serve(t, parse(t, modeltest.HandoffScript)), parties(), prepare)
}

// What Pi asks of each of its providers holds for each of these, and for the script in
// process as far as it can.
func TestCore(t *testing.T) {
	var last *script.Script // of the suite that runs
	services := modeltest.Services{Prepare: prepare, Serve: func(t testing.TB, src string) string {
		last = parse(t, src)
		return serve(t, last)
	}}
	modeltest.Core(t, services, append(parties(), modeltest.Party{Name: "script", Model: "m", InProcess: true, Uncounted: true,
		New: func(testing.TB, string, *http.Client) model.Provider { return script.New(last, nil) }}))
}
