package openai

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"agentd/fault"
	"agentd/internal/llmwire"
)

// AzureV1 is the version of Azure's API that has no date: the same paths as OpenAI's
// own, and no api-version.
const AzureV1 = "v1"

// Azure says how an Azure OpenAI resource is spoken to. The zero value is version v1
// with an API key, and deployments that have the names of their models.
//
// BaseURL is then the resource's address, in any of the forms that Azure shows: on the
// hosts NAME.openai.azure.com, NAME.cognitiveservices.azure.com and
// NAME.services.ai.azure.com (and those of azure.us and azure.cn) what stands after the
// host is set right. Any other host is a gateway: its path and query stay as they are,
// and the API's own path follows.
type Azure struct {
	// Version is [AzureV1] (default), a word of its own for one of v1 (preview, latest),
	// or a date, such as 2025-04-01-preview.
	Version string
	// Deployment is what the resource calls the model. Empty: the one in BaseURL, if
	// it names one, else the model's id.
	Deployment string
	// Token says that the credential is an access token and no API key.
	Token bool
}

// responsesSince is the first dated version of Azure's API that has Responses.
const responsesSince = "2025-03-01"

// address is where requests go, and what that means for them.
type address struct {
	provider   string // what it is called unless the configuration says
	base       string // without a slash at its end
	path       string // of requests, under base
	query      [][2]string
	protocol   Protocol
	keyHeader  string
	deployment string
	own        bool // a service of OpenAI's kind, which knows its newer fields
	cacheKey   bool // so is prompt_cache_key
}

func (cfg *Config) address() (address, error) {
	switch cfg.Protocol {
	case Default, Chat, Responses:
	default:
		return address{}, &fault.Error{Op: "openai.New", Kind: fault.Invalid, Field: "api", Err: errors.New("there is no API " + string(cfg.Protocol)), Hint: "use chat or responses"}
	}
	if cfg.Azure != nil {
		return cfg.azure()
	}
	base := cfg.BaseURL
	if base == "" {
		base = defaultBaseURL
	}
	base, err := llmwire.BaseURL("openai.New", base)
	if err != nil {
		return address{}, err
	}
	to := address{provider: "openai", base: base, protocol: cfg.Protocol}
	if u, err := url.Parse(base); err == nil {
		to.own = u.Hostname() == "api.openai.com"
	}
	to.cacheKey = to.own
	if to.protocol == Default {
		to.protocol = Chat
		if to.own {
			to.protocol = Responses
		}
	}
	to.path = paths(to.protocol)
	return to, nil
}

func paths(p Protocol) string {
	if p == Responses {
		return "responses"
	}
	return "chat/completions"
}

func (cfg *Config) azure() (address, error) {
	az := cfg.Azure
	raw, err := llmwire.BaseURL("openai.New", cfg.BaseURL)
	if err != nil {
		return address{}, err
	}
	u, err := url.Parse(raw)
	if err != nil {
		return address{}, err // BaseURL has parsed it already
	}
	to := address{provider: "azure", protocol: cfg.Protocol, deployment: az.Deployment, own: true, cacheKey: true}
	if !az.Token {
		to.keyHeader = "Api-Key"
	}
	dated := az.Version != "" && az.Version[0] >= '0' && az.Version[0] <= '9'
	if to.protocol == Default {
		to.protocol = Responses
		if dated && az.Version < responsesSince {
			to.protocol = Chat
		}
	}
	query := u.Query()
	u.RawQuery, u.Fragment = "", ""
	if azureHost(u.Hostname()) {
		path, deployment := azurePath(u.Path)
		if to.deployment == "" {
			to.deployment = deployment
		}
		u.Path, u.RawPath, query = path, "", nil
		if !dated {
			u.Path += "/v1"
		}
	}
	to.base, to.path = strings.TrimRight(u.String(), "/"), paths(to.protocol)
	if az.Version != "" && az.Version != AzureV1 {
		query = setVersion(query, az.Version)
	}
	if dated && to.protocol == Chat {
		// The deployment is in the path, and so in place only when there is one:
		// it is put there by each request.
		to.path, to.cacheKey = "", false
	}
	for _, name := range sortedKeys(query) {
		to.query = append(to.query, [2]string{name, query.Get(name)})
	}
	return to, nil
}

func setVersion(q url.Values, version string) url.Values {
	if q == nil {
		q = url.Values{}
	}
	q.Set("api-version", version)
	return q
}

func sortedKeys(q url.Values) []string {
	names := make([]string, 0, len(q))
	for name := range q {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// azureHost reports whether a host is an Azure OpenAI resource itself.
func azureHost(host string) bool {
	host = strings.ToLower(host)
	for _, cloud := range []string{"azure.com", "azure.us", "azure.cn"} {
		for _, family := range []string{".openai.", ".cognitiveservices.", ".services.ai."} {
			if strings.HasSuffix(host, family+cloud) {
				return true
			}
		}
	}
	return false
}

// azurePath is the path under which a resource's API is, out of one that was copied
// from Azure's pages, and the deployment that it names. A path that is not known is
// kept.
func azurePath(path string) (base, deployment string) {
	path = strings.Trim(path, "/")
	if rest, ok := strings.CutPrefix(path, "openai/deployments/"); ok {
		deployment, _, _ = strings.Cut(rest, "/")
		return "/openai", deployment
	}
	for _, end := range []string{"/responses", "/chat/completions", "/v1"} {
		path = strings.TrimSuffix(path, end)
	}
	switch parts := strings.Split(path, "/"); {
	case path == "", path == "openai", path == "models": // the last is Foundry's other API
		return "/openai", ""
	case len(parts) == 3 && parts[0] == "api" && parts[1] == "projects":
		return "/" + path + "/openai", ""
	}
	return "/" + path, ""
}
