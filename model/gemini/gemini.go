package gemini

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"agentd/internal/llmwire"
	"agentd/message"
	"agentd/model"
)

// API is the value of message.Message.API in replies of this adapter.
const API = "google-generative-ai"

const defaultBaseURL = "https://generativelanguage.googleapis.com"

// Config says which server to talk to and how. The zero value talks to Google without
// a key.
type Config struct {
	// Provider names the server in replies, errors and the catalogue.
	// Default "gemini".
	Provider string
	// BaseURL as in Google's own SDKs, without /v1beta. Default Google's.
	BaseURL string
	// Credential gives the key of each request. Nil: none is sent.
	Credential model.CredentialFunc
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
	// HideThoughts asks for no summaries of what the model thinks.
	HideThoughts bool
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
	name, base string
	client     *http.Client
	credential model.CredentialFunc
	catalogue  *model.Catalogue
	headers    http.Header
	options    Options
}

var _ model.Provider = (*Provider)(nil)

// New returns an adapter. The error is a *fault.Error about the base URL.
func New(cfg Config) (*Provider, error) {
	base := cfg.BaseURL
	if base == "" {
		base = defaultBaseURL
	}
	base, err := llmwire.BaseURL("gemini.New", base)
	if err != nil {
		return nil, err
	}
	p := &Provider{name: cfg.Provider, base: base, credential: cfg.Credential, catalogue: cfg.Catalogue, headers: http.Header{}}
	if cfg.Options != nil {
		p.options = *cfg.Options
	}
	p.client = llmwire.Client(p.options.Client)
	if p.name == "" {
		p.name = "gemini"
	}
	if p.catalogue == nil {
		p.catalogue = model.NewCatalogue()
	}
	if p.options.Now == nil {
		p.options.Now = time.Now
	}
	p.headers.Set("Accept", "text/event-stream")
	for name, value := range cfg.Headers {
		p.headers.Set(name, value)
	}
	return p, nil
}

// String names the adapter; it never shows a key.
func (p *Provider) String() string { return "gemini adapter (" + p.name + ")" }

// GoString is String: a verb that shows fields must not show headers.
func (p *Provider) GoString() string { return p.String() }

// Generate implements model.Provider.
func (p *Provider) Generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
	m, failed := p.generate(ctx, req, emit)
	return llmwire.Outcome(p.name, req.Model, m, failed)
}

// address is where a model is asked. Ids may bring their collection (tunedModels/x).
func (p *Provider) address(id string) string {
	collection, name, ok := strings.Cut(id, "/")
	if !ok {
		collection, name = "models", id
	}
	return p.base + "/v1beta/" + url.PathEscape(collection) + "/" + url.PathEscape(name) + ":streamGenerateContent?alt=sse"
}

func (p *Provider) generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, *model.Error) {
	info := p.catalogue.Lookup(p.name, req.Model)
	body, failed := p.encode(req, &info)
	if failed != nil {
		return nil, failed
	}
	call := llmwire.Begin(ctx, p.options.Idle)
	defer call.End()

	key, failed := call.Key(p.credential)
	if failed != nil {
		return nil, failed
	}
	headers := p.headers
	if key != "" {
		headers = headers.Clone()
		headers.Set("X-Goog-Api-Key", key)
	}
	res, failed := call.Post(p.client, p.address(req.Model), headers, body)
	if failed != nil {
		return nil, llmwire.Hide(failed, key)
	}
	if res.StatusCode != http.StatusOK {
		return nil, llmwire.Hide(p.refusal(res, call.Refused()), key)
	}

	d := newDecoder(emit, req)
	d.reply.Message.API, d.reply.Message.Provider, d.reply.Message.Model = API, p.name, req.Model
	failed = call.Decode(d, res, &llmwire.ScratchOf[scratch](req).Stream, false)
	if failed != nil {
		d.usage = llmwire.Estimated(d.usage, req, &d.reply.Message)
		d.half()
	}
	if u := d.usage; u != nil {
		if d.tier == "" {
			d.tier = res.Header.Get("X-Gemini-Service-Tier")
		}
		u.Tier = model.TierOf(d.tier)
		u.Cost = model.Cost(&info, u)
	}
	if failed != nil {
		return nil, llmwire.Hide(llmwire.Spent(failed, requestID(res.Header), d.usage), key)
	}
	return d.message(), nil
}

func requestID(h http.Header) string { return h.Get("X-Request-Id") }
