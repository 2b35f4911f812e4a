package profile

import (
	"strings"
	"testing"

	"agentd/fault"
)

func TestAzureAddress(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		m          Model
		env        []string
	}{
		{"resource", "https://res.openai.azure.com", Model{Azure: Azure{Resource: "res"}}, []string{"AZURE_OPENAI_RESOURCE_NAME", "other"}},
		{"address", "https://x/y", Model{BaseURL: "https://x/y", Azure: Azure{Resource: "res"}}, nil},
		{"address of the environment", "https://e/v1", Model{}, []string{"AZURE_OPENAI_BASE_URL", "https://e/v1", "AZURE_OPENAI_RESOURCE_NAME", "other"}},
		{"resource of the environment", "https://other.openai.azure.com", Model{}, []string{"AZURE_OPENAI_RESOURCE_NAME", "other"}},
		{"nothing", "", Model{}, nil},
	} {
		tt.m.Provider, tt.m.Model = "azure", "m"
		got, err := tt.m.AzureAddress(env(tt.env...))
		if got != tt.want || (err != nil) != (tt.want == "") || err != nil && fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
		// An API key is needed, even at an address of one's own; a token is not.
		if tt.m.Usable(env(tt.env...)) {
			t.Errorf("%s: usable without a key", tt.name)
		}
		if usable := tt.m.Usable(env(append(tt.env, "AZURE_OPENAI_API_KEY", "k")...)); usable != (tt.want != "") {
			t.Errorf("%s: with a key usable %t", tt.name, usable)
		}
		for _, a := range []Azure{{Auth: "entra_id"}, {Auth: "managed_identity"}, {Auth: "api_key", KeyVault: "https://v", KeySecret: "s"}} {
			a.Resource = tt.m.Azure.Resource
			m := tt.m
			m.Azure = a
			if usable := m.Usable(env(tt.env...)); usable != (tt.want != "") {
				t.Errorf("%s: with %+v usable %t", tt.name, a, usable)
			}
		}
	}
}

func TestAzureDeployment(t *testing.T) {
	for _, tt := range []struct {
		pairs, set, want string
		ok               bool
	}{
		{"", "", "", true},
		{"gpt-4o=my-gpt4o,gpt-4o-mini=my-mini", "", "my-mini", true},
		{" gpt-4o-mini = my-mini , ", "", "my-mini", true},
		{"gpt-4o=my-gpt4o", "", "", true},
		{"gpt-4o=my-gpt4o", "mine", "mine", true},
		{"gpt-4o", "", "", false},
		{"gpt-4o-mini=", "", "", false},
		{"=x", "", "", false},
	} {
		m := Model{Model: "gpt-4o-mini", Azure: Azure{Deployment: tt.set}}
		got, err := m.AzureDeployment(env("AZURE_OPENAI_DEPLOYMENT_NAME_MAP", tt.pairs))
		if got != tt.want || (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), "AZURE_OPENAI_DEPLOYMENT_NAME_MAP") {
			t.Errorf("%q: %q, %v", tt.pairs, got, err)
		}
	}
	m := Model{}
	if v := m.AzureVersion(env()); v != "v1" {
		t.Error(v)
	}
	if v := m.AzureVersion(env("AZURE_OPENAI_API_VERSION", "2024-12-01-preview")); v != "2024-12-01-preview" {
		t.Error(v)
	}
	m.Azure.APIVersion = "v1"
	if v := m.AzureVersion(env("AZURE_OPENAI_API_VERSION", "2024-12-01-preview")); v != "v1" {
		t.Error(v)
	}
}

func TestAzureProblems(t *testing.T) {
	const name = "profile_name: a\nprimary_model: "
	for _, tt := range []struct{ yaml, want string }{
		{"{provider: azure, model: m, azure: {resource: r}, api: chat, reasoning_summary: none}", ""},
		{"{provider: azure, model: m, azure: {auth: entra_id}}", "no Azure OpenAI resource is named"},
		{"{provider: azure, model: m, azure: {resource: r, auth: password}}", `does not know the value "password"`},
		{"{provider: azure, model: m, azure: {resource: r, key_vault: \"https://v\"}}", "key_vault and key_secret need each other"},
		{"{provider: azure, model: m, azure: {resource: r, auth: entra_id, key_vault: \"https://v\", key_secret: s}}", "a key of a vault is an API key"},
		{"{provider: openai, model: m, azure: {resource: r}}", "primary_model.azure: is only for provider: azure"},
		{"{provider: script, model: m, api: chat}", "primary_model.api: is only for providers openai and azure"},
		{"{provider: anthropic, model: m, reasoning_summary: none}", "primary_model.reasoning_summary: is only for"},
		{"{provider: openai, model: m, api: assistants}", `does not know the value "assistants"`},
	} {
		_, problems := load(map[string]string{"agents/a.yaml": name + tt.yaml + "\n"}, &Options{Env: env("AZURE_OPENAI_API_KEY", "k", "OPENAI_API_KEY", "k", "ANTHROPIC_API_KEY", "k")})
		if got := lines(problems); tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q", tt.yaml, got)
		}
	}
}
