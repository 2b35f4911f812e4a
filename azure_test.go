package agentd

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentd/internal/profile"
	"agentd/message"
	"agentd/model"
)

// azureCloud plays a resource at Azure, its machine's metadata service and a Key Vault.
type azureCloud struct {
	secret string // of the vault; the resource takes it and the machine's token
	paths  []string
	header []http.Header
	models []string
}

func (c *azureCloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	switch {
	case r.URL.Path == "/metadata/identity/oauth2/token":
		answer(200, map[string]string{"access_token": "machine", "expires_in": "3600", "token_type": "Bearer", "resource": r.URL.Query().Get("resource")})
	case strings.HasPrefix(r.URL.Path, "/secrets/"):
		if r.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", `Bearer authorization="https://login.microsoftonline.com/ten", resource="https://vault.azure.net"`)
			answer(401, struct{}{})
			return
		}
		answer(200, map[string]any{"value": c.secret, "id": "https://v.vault.azure.net/secrets/k/1", "attributes": map[string]any{"enabled": true}})
	default:
		var body struct{ Model string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		c.paths, c.header, c.models = append(c.paths, r.URL.RequestURI()), append(c.header, r.Header.Clone()), append(c.models, body.Model)
		if key := r.Header.Get("Api-Key"); key != c.secret && r.Header.Get("Authorization") != "Bearer machine" {
			answer(401, map[string]any{"error": map[string]string{"code": "401", "message": "Access denied due to invalid subscription key"}})
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if strings.Contains(r.URL.Path, "/chat/") {
			_, _ = io.WriteString(w, "data: {\"id\":\"c\",\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			return
		}
		_, _ = io.WriteString(w, "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"ok\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"output\":[]}}\n\n")
	}
}

type toCloud struct{ addr string }

func (e toCloud) RoundTrip(r *http.Request) (*http.Response, error) {
	own := r.Clone(r.Context())
	own.URL.Scheme, own.URL.Host = "http", e.addr
	return http.DefaultTransport.RoundTrip(own)
}

// A profile's azure model reaches the resource with the credential that the profile and
// the environment say.
func TestAzureModels(t *testing.T) {
	for _, tt := range []struct {
		name        string
		m           profile.Model
		env         map[string]string
		path, model string
		key, bearer string
	}{
		{"a key of the environment", profile.Model{}, map[string]string{"AZURE_OPENAI_API_KEY": "k1"}, "/openai/v1/responses", "gpt-4o", "k1", ""},
		{"a deployment of the environment", profile.Model{}, map[string]string{"AZURE_OPENAI_API_KEY": "k1", "AZURE_OPENAI_DEPLOYMENT_NAME_MAP": "x=y,gpt-4o=my-gpt4o"}, "/openai/v1/responses", "my-gpt4o", "k1", ""},
		{"a version of the environment", profile.Model{}, map[string]string{"AZURE_OPENAI_API_KEY": "k1", "AZURE_OPENAI_API_VERSION": "2024-12-01-preview"},
			"/openai/v1/deployments/gpt-4o/chat/completions?api-version=2024-12-01-preview", "gpt-4o", "k1", ""},
		{"chat", profile.Model{API: "chat", APIKeyEnv: "MINE"}, map[string]string{"MINE": "k1"}, "/openai/v1/chat/completions", "gpt-4o", "k1", ""},
		{"a managed identity", profile.Model{Azure: profile.Azure{Auth: "managed_identity"}}, nil, "/openai/v1/responses", "gpt-4o", "", "Bearer machine"},
		{"a key of a vault", profile.Model{Azure: profile.Azure{Auth: "api_key", KeyVault: "https://v.vault.azure.net", KeySecret: "k", ClientID: "id", Deployment: "d"}}, nil, "/openai/v1/responses", "d", "k1", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &azureCloud{secret: "k1"}
			srv := httptest.NewServer(c)
			defer srv.Close()
			a := &agents{catalogue: model.NewCatalogue(), providers: map[string]model.Provider{}, azureClient: &http.Client{Transport: toCloud{srv.Listener.Addr().String()}},
				env: func(name string) (string, bool) {
					if name == "AZURE_OPENAI_BASE_URL" {
						return srv.URL + "/openai/v1", true
					}
					v, ok := tt.env[name]
					return v, ok
				}}
			tt.m.Provider, tt.m.Model = "azure", "gpt-4o"
			p, err := a.newProvider(&tt.m)
			if err != nil {
				t.Fatal(err)
			}
			ask := func() {
				t.Helper()
				m, err := p.Generate(t.Context(), &model.Request{Model: "gpt-4o", Messages: []message.Message{message.User("hi")}}, nil)
				if err != nil || m.Text() != "ok" || m.Provider != "azure" {
					t.Fatalf("%+v, %v", m, err)
				}
			}
			ask()
			last := len(c.paths) - 1
			if c.paths[last] != tt.path || c.models[last] != tt.model || c.header[last].Get("Api-Key") != tt.key || c.header[last].Get("Authorization") != tt.bearer {
				t.Errorf("%s for %s with %v", c.paths[last], c.models[last], c.header[last])
			}
			if tt.m.Azure.KeyVault != "" { // and when the key is rotated
				c.secret = "k2"
				ask()
				if n := len(c.paths); n != 3 || c.header[1].Get("Api-Key") != "k1" || c.header[2].Get("Api-Key") != "k2" {
					t.Errorf("%d requests, %v", n, c.header)
				}
			}
		})
	}
}

// What is missing is said when the model is made, and not by a request.
func TestAzureIsIncomplete(t *testing.T) {
	for env, says := range map[string]string{"": "no Azure OpenAI resource is named", "AZURE_OPENAI_DEPLOYMENT_NAME_MAP": "AZURE_OPENAI_DEPLOYMENT_NAME_MAP"} {
		a := &agents{env: func(name string) (string, bool) {
			if name != env {
				return "", false
			}
			return "broken", true
		}}
		m := &profile.Model{Provider: "azure", Model: "m"}
		if env != "" {
			m.Azure.Resource = "r"
		}
		if _, err := a.newProvider(m); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
}
