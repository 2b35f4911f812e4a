package openai

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"agentd/internal/llmwire"
	"agentd/message"
	"agentd/model"
)

// The values of message.Message.API in replies of this adapter, by the API that was
// spoken.
const (
	API          = "openai-completions"
	APIResponses = "openai-responses"
)

// Protocol is one of OpenAI's two APIs for replies.
type Protocol string

// The protocols. Default is Responses at api.openai.com and at Azure, whose newer
// models take tools together with reasoning there alone, and Chat at every other
// address, because that is what other servers speak. An API version of Azure from
// before 2025-03-01 has Chat only.
const (
	Default   Protocol = ""
	Chat      Protocol = "chat"
	Responses Protocol = "responses"
)

const defaultBaseURL = "https://api.openai.com/v1"

// Choice is yes, no, or what suits the server.
type Choice string

// The choices.
const (
	Auto Choice = ""
	Yes  Choice = "yes"
	No   Choice = "no"
)

// Config says which server to talk to and how. The zero value talks to OpenAI
// without a key.
type Config struct {
	// Provider names the server in replies, errors and the catalogue.
	// Default "openai".
	Provider string
	// BaseURL as in OpenAI's own SDKs, ending in /v1. Default OpenAI's. Of an Azure
	// resource: its address, see [Azure].
	BaseURL string
	// Protocol is the API that is spoken; see [Default].
	Protocol Protocol
	// Azure says that BaseURL is an Azure OpenAI resource. Nil: it is none.
	Azure *Azure
	// Credential gives the key of each request. Nil: none is sent.
	Credential model.CredentialFunc
	// Renew is asked when the server refuses a key (401) that Credential gave: the
	// request is sent once more if the answer is another key. Nil: a refused key is an
	// error at once.
	Renew func(ctx context.Context, refused string) (string, error)
	// Headers are added to each request.
	Headers map[string]string
	// Catalogue prices replies and knows what models accept. Default the
	// built-in one.
	Catalogue *model.Catalogue
	// Options tune what few need; nil means defaults.
	Options *Options
}

// Options are the rarely needed settings.
type Options struct {
	// MaxTokensField is the name of the output limit: max_completion_tokens
	// (default at api.openai.com) or max_tokens (default elsewhere).
	MaxTokensField string
	// PromptCacheKey sends Request.SessionID as prompt_cache_key. Auto: to
	// api.openai.com, to Azure except for Chat in its dated versions, and to no
	// other server, because those refuse unknown fields.
	PromptCacheKey Choice
	// Summaries of the reasoning, which Responses gives: auto (default),
	// concise, detailed, or none. Chat has none.
	Summaries string
	// CacheRetention is sent as prompt_cache_retention: "24h" keeps cached prefixes for
	// a day where the model has that. Empty: nothing is sent.
	CacheRetention string
	// Idle is how long the server may send nothing. Default five minutes;
	// negative: for ever.
	Idle time.Duration
	// Client sends the requests. Default one without timeouts and redirects.
	Client *http.Client
	// Now is the clock that dates in Retry-After are compared with. Default
	// time.Now.
	Now func() time.Time
}

// Provider is a model.Provider. It is safe for concurrent use.
type Provider struct {
	name string
	// post is the SDK's client, behind a function: as a field it would have the linker keep
	// every method of every service (18 MB) once anything in the program looks methods up by
	// reflection, as Temporal's SDK does.
	post       func(ctx context.Context, path string, params, res any, opts ...option.RequestOption) error
	credential model.CredentialFunc
	renew      func(ctx context.Context, refused string) (string, error)
	keyHeader  string // of the credential; empty: Authorization
	catalogue  *model.Catalogue
	headers    []option.RequestOption
	api        string // APIResponses or API
	path       string // of requests, under the base URL; empty: that of the model's deployment
	deployment string // what the wire calls the model; empty: by its id
	summaries  string
	maxTokens  string
	cacheKey   bool
	retention  string
	idle       time.Duration
	now        func() time.Time
}

var _ model.Provider = (*Provider)(nil)

// New returns an adapter. The error is a *fault.Error about the base URL.
func New(cfg Config) (*Provider, error) {
	var o Options
	if cfg.Options != nil {
		o = *cfg.Options
	}
	to, err := cfg.address()
	if err != nil {
		return nil, err
	}
	p := &Provider{
		name: cfg.Provider, credential: cfg.Credential, renew: cfg.Renew, catalogue: cfg.Catalogue, idle: o.Idle, now: o.Now, retention: o.CacheRetention,
		api: API, path: to.path, deployment: to.deployment, keyHeader: to.keyHeader, summaries: o.Summaries,
		maxTokens: o.MaxTokensField, cacheKey: o.PromptCacheKey == Yes || o.PromptCacheKey == Auto && to.cacheKey,
	}
	if to.protocol == Responses {
		p.api = APIResponses
	}
	if p.name == "" {
		p.name = to.provider
	}
	if p.summaries == "" {
		p.summaries = "auto"
	}
	if p.catalogue == nil {
		p.catalogue = model.NewCatalogue()
	}
	if p.now == nil {
		p.now = time.Now
	}
	if p.maxTokens == "" {
		p.maxTokens = "max_tokens"
		if to.own {
			p.maxTokens = "max_completion_tokens"
		}
	}
	// Not sdk.NewClient: it takes keys, headers and the base URL from the
	// environment, and what agentd sends must follow from its configuration.
	client := &sdk.Client{Options: []option.RequestOption{
		option.WithBaseURL(to.base + "/"),
		option.WithHTTPClient(llmwire.Client(o.Client)),
		option.WithMaxRetries(0),
		option.WithHeader("Accept", "text/event-stream"),
	}}
	p.post = client.Post
	for _, q := range to.query {
		p.headers = append(p.headers, option.WithQuery(q[0], q[1]))
	}
	names := make([]string, 0, len(cfg.Headers))
	for name := range cfg.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p.headers = append(p.headers, option.WithHeader(name, cfg.Headers[name]))
	}
	return p, nil
}

// String names the adapter; it never shows a key.
func (p *Provider) String() string { return "openai adapter (" + p.name + ")" }

// Generate implements model.Provider.
func (p *Provider) Generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
	m, failed := p.generate(ctx, req, emit)
	return llmwire.Outcome(p.name, req.Model, m, failed)
}

func (p *Provider) generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, *model.Error) {
	info := p.catalogue.Lookup(p.name, req.Model)
	encode := p.encode
	if p.api == APIResponses {
		encode = p.encodeResponses
	}
	body, failed := encode(req, &info)
	if failed != nil {
		return nil, failed
	}
	call := llmwire.Begin(ctx, p.idle)
	defer call.End()

	path := p.path
	if path == "" {
		path = "deployments/" + url.PathEscape(p.deployed(req.Model)) + "/chat/completions"
	}
	res, key, failed := p.send(call, path, body)
	if s := llmwire.ScratchOf[scratch](req); failed != nil && failed.Code == "invalid_encrypted_content" && !s.sealed {
		// Another organisation's key, or resource, sealed it. The conversation goes on
		// without it, and would not otherwise.
		s.sealed = true
		if req.Scratch == nil { // nobody would remember
			without := *req
			without.Scratch = &model.Scratch{Value: s}
			req = &without
		}
		if body, failed = encode(req, &info); failed == nil {
			res, key, failed = p.send(call, path, body)
		}
	}
	if failed != nil {
		return nil, failed
	}

	_, own := stops(req, &info)
	var d decoding = newDecoder(emit, own)
	if p.api == APIResponses {
		d = newResponses(emit, req.Stop)
	}
	m := d.partial()
	m.API, m.Provider, m.Model = p.api, p.name, req.Model
	failed = call.Decode(d, res, &llmwire.ScratchOf[scratch](req).Stream, false)
	u := d.used()
	if failed != nil {
		u = llmwire.Estimated(u, req, m)
	}
	if u != nil {
		u.Cost = model.Cost(&info, u)
	}
	if failed != nil {
		return nil, llmwire.Hide(llmwire.Spent(failed, requestID(res.Header), u), key)
	}
	return d.message(), nil
}

// send posts the body and returns the response, which is one of status 200, with the
// key that it was asked with.
func (p *Provider) send(call *llmwire.Call, path string, body []byte) (*http.Response, string, *model.Error) {
	key, failed := call.Key(p.credential)
	if failed != nil {
		return nil, "", failed
	}
	for again := p.renew != nil && key != ""; ; again = false {
		opts := p.headers
		switch {
		case p.credential == nil:
		case p.keyHeader == "":
			opts = append(slices.Clip(opts), option.WithAPIKey(key))
		case key != "":
			opts = append(slices.Clip(opts), option.WithHeader(p.keyHeader, key))
		}
		var res *http.Response
		err := p.post(call.Context(), path, body, &res, opts...)
		switch {
		case res != nil && res.StatusCode == http.StatusUnauthorized && again:
			other, renewed := p.renew(call.Context(), key)
			if renewed == nil && other != "" && other != key {
				_ = res.Body.Close()
				key = other
				continue
			}
			return nil, key, llmwire.Hide(p.refusal(res, err), key)
		case res != nil && res.StatusCode != http.StatusOK:
			return nil, key, llmwire.Hide(p.refusal(res, err), key)
		case err != nil:
			return nil, key, llmwire.Hide(call.Fail(err), key)
		}
		return res, key, nil
	}
}

// decoding turns the events of a stream into a reply.
type decoding interface {
	llmwire.Decoder
	// partial is the reply so far, used what it cost as far as the provider said.
	partial() *message.Message
	used() *message.Usage
	// message returns the finished reply.
	message() *message.Message
}

// requestID is what the provider calls the request. Azure's gateway has names of its
// own where it answers itself.
func requestID(h http.Header) string {
	return cmp.Or(h.Get("X-Request-Id"), h.Get("Apim-Request-Id"), h.Get("X-Ms-Request-Id"))
}
