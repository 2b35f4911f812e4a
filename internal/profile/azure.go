package profile

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"agentd/fault"
)

// Azure says how a model of an Azure OpenAI resource is reached. What is not set is taken from the environment, by the names that Azure's users know.
type Azure struct {
	// Name of the resource, which makes its address; `base_url` comes first. Empty: `AZURE_OPENAI_BASE_URL`, else `AZURE_OPENAI_RESOURCE_NAME`.
	Resource string `json:"resource,omitempty" example:"my-resource"`
	// Name of the deployment that serves the model. Empty: what `AZURE_OPENAI_DEPLOYMENT_NAME_MAP` (`MODEL=DEPLOYMENT,…`) says of the model, else the model's id.
	Deployment string `json:"deployment,omitempty" example:"my-gpt"`
	// `v1`, which has no date, or a dated version. Empty: `AZURE_OPENAI_API_VERSION`, else `v1`.
	APIVersion string `json:"api_version,omitempty" example:"2025-04-01-preview"`
	// Who agentd is to the resource: an `api_key` of the environment or, with `key_vault`, of a vault; or by tokens, which are renewed, of `entra_id` (a service principal or workload of the environment's `AZURE_…` variables, a managed identity, or the developer's `az login`, in this order) or of the machine's `managed_identity` alone.
	Auth string `json:"auth,omitempty" default:"api_key" enum:"api_key,entra_id,managed_identity"`
	// Which managed identity, where a machine has several.
	ClientID string `json:"client_id,omitempty" example:"00000000-0000-0000-0000-000000000000"`
	// Directory of who signs in. Empty: their own.
	TenantID string `json:"tenant_id,omitempty" example:"00000000-0000-0000-0000-000000000000"`
	// What tokens are asked for. Empty: `https://cognitiveservices.azure.com/.default`; other clouds have others.
	Scope string `json:"scope,omitempty" example:"https://cognitiveservices.azure.us/.default"`
	// Address of a Key Vault that has the API key, read by the managed identity if `client_id` names one, else as with `entra_id`.
	KeyVault string `json:"key_vault,omitempty" format:"url" example:"https://my-vault.vault.azure.net"`
	// Name of the key's secret in the vault.
	KeySecret string `json:"key_secret,omitempty" example:"azure-openai-key"`
	// How long a key of the vault is used until it is read again. One that is refused is read again at once.
	KeyRefresh Duration `json:"key_refresh,omitempty" default:"10m" min:"1s"`
	// How long one look for a token or a key of the vault may take. What is not found by then fails the call, which is tried again as after a broken connection; a token that is still good is used.
	AuthTimeout Duration `json:"auth_timeout,omitempty" default:"30s" min:"1s"`
}

// AzureAddress is the address of an azure model's resource. The error is a
// *fault.Error that says how to give one. env may be nil for the process's environment.
func (m *Model) AzureAddress(env func(string) (string, bool)) (string, error) {
	if env == nil {
		env = os.LookupEnv
	}
	named := func(resource string) string { return "https://" + resource + ".openai.azure.com" }
	if m.BaseURL != "" {
		return m.BaseURL, nil
	}
	if m.Azure.Resource != "" {
		return named(m.Azure.Resource), nil
	}
	if base, _ := env("AZURE_OPENAI_BASE_URL"); base != "" {
		return base, nil
	}
	if resource, _ := env("AZURE_OPENAI_RESOURCE_NAME"); resource != "" {
		return named(resource), nil
	}
	return "", &fault.Error{Kind: fault.Invalid, Field: "azure.resource", Err: errors.New("no Azure OpenAI resource is named"),
		Hint: "write azure: {resource: NAME} or base_url, or export AZURE_OPENAI_RESOURCE_NAME=… or AZURE_OPENAI_BASE_URL=…"}
}

// AzureVersion is the version of Azure's API. env may be nil for the process's
// environment.
func (m *Model) AzureVersion(env func(string) (string, bool)) string {
	if env == nil {
		env = os.LookupEnv
	}
	if m.Azure.APIVersion != "" {
		return m.Azure.APIVersion
	}
	if version, _ := env("AZURE_OPENAI_API_VERSION"); version != "" {
		return version
	}
	return "v1"
}

// AzureDeployment is the name of the deployment, "" if it is not said. The error is a
// *fault.Error about the variable that maps models to deployments. env may be nil for
// the process's environment.
func (m *Model) AzureDeployment(env func(string) (string, bool)) (string, error) {
	if env == nil {
		env = os.LookupEnv
	}
	if m.Azure.Deployment != "" {
		return m.Azure.Deployment, nil
	}
	const name = "AZURE_OPENAI_DEPLOYMENT_NAME_MAP"
	pairs, _ := env(name)
	found := ""
	for pair := range strings.SplitSeq(pairs, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		id, deployment, ok := strings.Cut(pair, "=")
		id, deployment = strings.TrimSpace(id), strings.TrimSpace(deployment)
		if !ok || id == "" || deployment == "" {
			return "", &fault.Error{Kind: fault.Invalid, Field: "azure.deployment", Err: fmt.Errorf("the environment variable %s is wrong at %q", name, pair),
				Hint: "write it as MODEL=DEPLOYMENT,MODEL=DEPLOYMENT, or set azure.deployment"}
		}
		if id == m.Model {
			found = deployment
		}
	}
	return found, nil
}

// azure checks what is said of Azure and of OpenAI's APIs.
func (l *loader) azure(d *decoder, key string, m *Model) {
	if d.wrong(key) {
		return
	}
	if m.Provider != "azure" && m.Provider != "openai" {
		for _, k := range []string{"api", "reasoning_summary"} {
			if d.has(key + "." + k) {
				d.fail(d.at(key+"."+k), key+"."+k, "is only for providers openai and azure", "remove it")
			}
		}
	}
	if m.Provider != "azure" {
		if d.has(key + ".azure") {
			d.fail(d.at(key+".azure"), key+".azure", "is only for provider: azure", "remove it, or write provider: azure")
		}
		return
	}
	a := &m.Azure
	switch at := key + ".azure"; {
	case (a.KeyVault == "") != (a.KeySecret == ""):
		d.fail(d.at(at), at, "key_vault and key_secret need each other", "write both, or neither")
	case a.KeyVault != "" && a.Auth != "api_key" && d.has(at+".auth"):
		d.fail(d.at(at+".auth"), at+".auth", "a key of a vault is an API key", "write auth: api_key, or remove key_vault")
	}
}
