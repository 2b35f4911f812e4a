package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"agentd/fault"
	"agentd/message"
	"agentd/model"
	"agentd/model/modeltest"
)

func TestAzureConformance(t *testing.T) {
	h := responsesHarness("/openai/v1/responses", &Azure{})
	h.Complete = nil // the same stream as OpenAI's
	modeltest.Run(t, h)
}

// Where requests go, by what was written down.
func TestAzureAddresses(t *testing.T) {
	const host = "https://res.openai.azure.com"
	for _, tt := range []struct {
		name, base, version, want string
		protocol                  Protocol
	}{
		{"bare host", host, "", host + "/openai/v1/responses", Default},
		{"slash", host + "/", "v1", host + "/openai/v1/responses", Default},
		{"openai", host + "/openai", "", host + "/openai/v1/responses", Default},
		{"v1", host + "/openai/v1/", "", host + "/openai/v1/responses", Default},
		{"responses", host + "/openai/v1/responses", "", host + "/openai/v1/responses", Default},
		{"query is lost", host + "/openai/responses?api-version=2025-04-01-preview", "", host + "/openai/v1/responses", Default},
		{"older family", "https://res.cognitiveservices.azure.com/", "", "https://res.cognitiveservices.azure.com/openai/v1/responses", Default},
		{"foundry", "https://res.services.ai.azure.com", "", "https://res.services.ai.azure.com/openai/v1/responses", Default},
		{"foundry project", "https://res.services.ai.azure.com/api/projects/p", "", "https://res.services.ai.azure.com/api/projects/p/openai/v1/responses", Default},
		{"project's v1", "https://res.services.ai.azure.com/api/projects/p/openai/v1", "", "https://res.services.ai.azure.com/api/projects/p/openai/v1/responses", Default},
		{"foundry's other API", "https://res.services.ai.azure.com/models", "", "https://res.services.ai.azure.com/openai/v1/responses", Default},
		{"and its path", "https://res.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview", "", "https://res.services.ai.azure.com/openai/v1/responses", Default},
		{"preview of v1", host + "/openai/v1/", "preview", host + "/openai/v1/responses?api-version=preview", Default},
		{"latest v1", host, "latest", host + "/openai/v1/chat/completions?api-version=latest", Chat},
		{"another cloud", "https://res.openai.azure.us", "", "https://res.openai.azure.us/openai/v1/responses", Default},
		{"chat on v1", host, "", host + "/openai/v1/chat/completions", Chat},
		{"dated", host, "2025-04-01-preview", host + "/openai/responses?api-version=2025-04-01-preview", Default},
		{"dated chat", host, "2025-04-01-preview", host + "/openai/deployments/m/chat/completions?api-version=2025-04-01-preview", Chat},
		{"before Responses", host, "2024-12-01-preview", host + "/openai/deployments/m/chat/completions?api-version=2024-12-01-preview", Default},
		{"asked for all the same", host, "2024-12-01-preview", host + "/openai/responses?api-version=2024-12-01-preview", Responses},
		{"first with Responses", host, "2025-03-01-preview", host + "/openai/responses?api-version=2025-03-01-preview", Default},
		{"copied from a deployment", host + "/openai/deployments/mine/chat/completions?api-version=2024-10-21", "2024-10-21", host + "/openai/deployments/mine/chat/completions?api-version=2024-10-21", Default},
		{"gateway", "https://gw.example.com/ai/x?tenant=a&z=1", "", "https://gw.example.com/ai/x/responses?tenant=a&z=1", Default},
		{"gateway, dated", "https://gw.example.com/openai?b=1", "2025-04-01-preview", "https://gw.example.com/openai/responses?api-version=2025-04-01-preview&b=1", Default},
		{"not quite the host", "https://openai.azure.com.example.com/x", "", "https://openai.azure.com.example.com/x/responses", Default},
		{"loopback", "http://127.0.0.1:9/openai/v1", "", "http://127.0.0.1:9/openai/v1/responses", Default},
	} {
		t.Run(tt.name, func(t *testing.T) {
			urls := make(chan string, 1)
			p, err := New(Config{BaseURL: tt.base, Protocol: tt.protocol, Azure: &Azure{Version: tt.version}, Options: &Options{Client: &http.Client{Transport: urlSpy(urls)}}})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = p.Generate(t.Context(), &model.Request{Model: "m", Messages: []message.Message{message.User("hi")}}, nil)
			if got := <-urls; got != tt.want {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
		})
	}
	for _, base := range []string{"", "res.openai.azure.com", "https://u:hunter2@res.openai.azure.com"} {
		_, err := New(Config{BaseURL: base, Azure: &Azure{}})
		if fault.KindOf(err) != fault.Invalid || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", base, err)
		}
	}
	if _, err := New(Config{Protocol: "assistants"}); fault.KindOf(err) != fault.Invalid {
		t.Error(err)
	}
}

type urlSpy chan string

func (s urlSpy) RoundTrip(r *http.Request) (*http.Response, error) {
	s <- r.URL.String()
	return &http.Response{StatusCode: 500, Body: http.NoBody, Header: http.Header{}}, nil
}

// azureServer keeps what it was sent and answers with what answer gives.
func azureServer(t *testing.T, answer func(n int, r *http.Request) (status int, body string)) (url string, seen *[]*http.Request, bodies *[]map[string]any) {
	t.Helper()
	seen, bodies = new([]*http.Request), new([]map[string]any)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		*seen, *bodies = append(*seen, r), append(*bodies, body)
		status, text := answer(len(*seen), r)
		w.Header().Set("Apim-Request-Id", "apim-1")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(srv.Close)
	return srv.URL, seen, bodies
}

const bare = "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"ok\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"output\":[]}}\n\n"

// A key goes into Azure's header, a token into the usual one; the deployment is what the
// wire calls the model, and replies say the model.
func TestAzureCredentials(t *testing.T) {
	for _, token := range []bool{false, true} {
		url, seen, bodies := azureServer(t, func(int, *http.Request) (int, string) { return 200, bare })
		p, err := New(Config{BaseURL: url + "/openai/v1", Azure: &Azure{Token: token, Deployment: "my-gpt"},
			Credential: func(context.Context) (string, error) { return "secret", nil }})
		if err != nil {
			t.Fatal(err)
		}
		m, err := p.Generate(t.Context(), &model.Request{Model: "gpt-5", SessionID: "s", Messages: []message.Message{message.User("hi")}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		h := (*seen)[0].Header
		key, bearer := "secret", ""
		if token {
			key, bearer = "", "Bearer secret"
		}
		if h.Get("Api-Key") != key || h.Get("Authorization") != bearer {
			t.Errorf("token %v: %v", token, h)
		}
		if b := (*bodies)[0]; b["model"] != "my-gpt" || b["prompt_cache_key"] != "s" || b["store"] != false || !slices.Equal(b["include"].([]any), []any{"reasoning.encrypted_content"}) {
			t.Errorf("body %v", b)
		}
		if m.Model != "gpt-5" || m.Provider != "azure" || m.API != APIResponses || m.Text() != "ok" {
			t.Errorf("reply %+v", m)
		}
	}
}

// Chat of a dated version has the deployment in its path, and fields that its time knew.
func TestAzureDatedChat(t *testing.T) {
	url, seen, bodies := azureServer(t, func(int, *http.Request) (int, string) {
		return 200, "data: {\"choices\":[],\"prompt_filter_results\":[]}\n\ndata: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ok\"},\"content_filter_results\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	})
	p, err := New(Config{BaseURL: url + "/openai", Azure: &Azure{Version: "2024-12-01-preview"}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.Generate(t.Context(), &model.Request{Model: "gpt-4o", MaxTokens: 9, SessionID: "s", Messages: []message.Message{message.User("hi")}}, nil)
	if err != nil || m.Text() != "ok" || m.API != API {
		t.Fatalf("%+v, %v", m, err)
	}
	if got := (*seen)[0].URL.String(); got != "/openai/deployments/gpt-4o/chat/completions?api-version=2024-12-01-preview" {
		t.Error(got)
	}
	if b := (*bodies)[0]; b["max_completion_tokens"] != 9.0 || b["prompt_cache_key"] != nil {
		t.Errorf("body %v", b)
	}
}

// A refused key is asked for again, once, and only a new one is tried.
func TestRenewedKey(t *testing.T) {
	for _, tt := range []struct {
		name  string
		renew func(context.Context, string) (string, error)
		want  []string
		ok    bool
	}{
		{"rotated", func(_ context.Context, refused string) (string, error) { return refused + "-new", nil }, []string{"old", "old-new"}, true},
		{"wrong again", func(context.Context, string) (string, error) { return "bad", nil }, []string{"old", "bad"}, false},
		{"the same", func(_ context.Context, refused string) (string, error) { return refused, nil }, []string{"old"}, false},
		{"none", func(context.Context, string) (string, error) { return "", errors.New("the vault is away") }, []string{"old"}, false},
		{"nobody to ask", nil, []string{"old"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, seen, _ := azureServer(t, func(_ int, r *http.Request) (int, string) {
				if r.Header.Get("Api-Key") != "old-new" {
					return 401, `{"error":{"code":"401","message":"Access denied due to invalid subscription key old"}}`
				}
				return 200, bare
			})
			p, err := New(Config{BaseURL: url + "/openai/v1", Azure: &Azure{}, Renew: tt.renew, Credential: func(context.Context) (string, error) { return "old", nil }})
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Generate(t.Context(), &model.Request{Model: "m", Messages: []message.Message{message.User("hi")}}, nil)
			var keys []string
			for _, r := range *seen {
				keys = append(keys, r.Header.Get("Api-Key"))
			}
			if !slices.Equal(keys, tt.want) || (err == nil) != tt.ok {
				t.Fatalf("keys %q, %v", keys, err)
			}
			var e *model.Error
			if !tt.ok && (!errors.As(err, &e) || e.Class != model.ClassAuth || e.RequestID != "apim-1" || strings.Contains(e.Message, keys[len(keys)-1]) && keys[len(keys)-1] == "old") {
				t.Errorf("error %+v", e)
			}
		})
	}
}

// Who can not be asked just now is asked again; who says no is not.
func TestCredentialErrors(t *testing.T) {
	for kind, want := range map[fault.Kind]model.Class{fault.Unavailable: model.ClassConnection, fault.Unauthorized: model.ClassAuth} {
		p, err := New(Config{BaseURL: "https://res.openai.azure.com", Azure: &Azure{Token: true}, Credential: func(context.Context) (string, error) {
			return "", &fault.Error{Kind: kind, Err: errors.New("no token"), Hint: "look"}
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Generate(t.Context(), &model.Request{Model: "m", Messages: []message.Message{message.User("hi")}}, nil)
		var e *model.Error
		if !errors.As(err, &e) || e.Class != want || e.Message == "" {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
