package agentd

import (
	"agentd/internal/azureid"
	"agentd/internal/profile"
	"agentd/model/openai"
)

// azure completes the configuration of an adapter for a model at Azure: where its
// resource is, and who agentd is to it. The environment is looked at once; what it says
// of keys is looked up for each request.
func (a *agents) azure(m *profile.Model, cfg *openai.Config) error {
	base, err := m.AzureAddress(a.env)
	if err != nil {
		return err
	}
	deployment, err := m.AzureDeployment(a.env)
	if err != nil {
		return err
	}
	az := &m.Azure
	tokens := az.Auth == "entra_id" || az.Auth == "managed_identity"
	cfg.Provider, cfg.BaseURL = m.Provider, base
	cfg.Azure = &openai.Azure{Version: m.AzureVersion(a.env), Deployment: deployment, Token: tokens}
	if !tokens && az.KeyVault == "" {
		return nil
	}
	source := azureid.New(azureid.Config{Managed: az.Auth == "managed_identity" || !tokens && az.ClientID != "", ClientID: az.ClientID, TenantID: az.TenantID,
		Scope: az.Scope, Vault: az.KeyVault, Secret: az.KeySecret, Refresh: az.KeyRefresh.Std(), Timeout: az.AuthTimeout.Std(), Client: a.azureClient})
	cfg.Credential, cfg.Renew = source.Get, source.Renew
	return nil
}
