package anthropic

import (
	"context"
	"net/http"
	"slices"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"agentd/internal/llmwire"
	"agentd/message"
	"agentd/model"
)

// API is the value of message.Message.API in replies of this adapter.
const API = "anthropic-messages"

const (
	defaultBaseURL = "https://api.anthropic.com"
	version        = "2023-06-01"
	// defaultMaxTokens bounds what is asked for when the request does not
	// say: a limit is required, and the largest one that models take would
	// count against the window of older models.
	defaultMaxTokens = 32_000
)

// Config says which server to talk to and how. The zero value talks to
// Anthropic without a key.
type Config struct {
	// Provider names the server in replies, errors and the catalogue.
	// Default "anthropic".
	Provider string
	// BaseURL as in Anthropic's own SDKs, without /v1. Default Anthropic's.
	BaseURL string
	// Credential gives the key of each request. Nil: none is sent.
	Credential model.CredentialFunc
	// Headers are added to each request, such as anthropic-beta.
	Headers map[string]string
	// Catalogue prices replies and knows what models accept. Default the
	// built-in one.
	Catalogue *model.Catalogue
	// Options tune what few need; nil means defaults.
	Options *Options
}

// Options are the rarely needed settings.
type Options struct {
	// CacheHour keeps what is marked for caching for an hour and not for five
	// minutes; writing it costs more.
	CacheHour bool
	// ThinkingDisplay is how thinking is shown: "summarized", "omitted", or
	// the model's default when empty.
	ThinkingDisplay string
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
	catalogue  *model.Catalogue
	headers    []option.RequestOption
	options    Options
}

var _ model.Provider = (*Provider)(nil)

// New returns an adapter. The error is a *fault.Error about the base URL.
func New(cfg Config) (*Provider, error) {
	base := cfg.BaseURL
	if base == "" {
		base = defaultBaseURL
	}
	base, err := llmwire.BaseURL("anthropic.New", base)
	if err != nil {
		return nil, err
	}
	p := &Provider{name: cfg.Provider, credential: cfg.Credential, catalogue: cfg.Catalogue}
	if cfg.Options != nil {
		p.options = *cfg.Options
	}
	if p.name == "" {
		p.name = "anthropic"
	}
	if p.catalogue == nil {
		p.catalogue = model.NewCatalogue()
	}
	if p.options.Now == nil {
		p.options.Now = time.Now
	}
	client := sdk.NewClient(
		// What agentd sends must follow from its configuration.
		option.WithoutEnvironmentDefaults(),
		option.WithoutOpenTelemetry(),
		option.WithBaseURL(base+"/"),
		option.WithHTTPClient(llmwire.Client(p.options.Client)),
		option.WithMaxRetries(0),
		option.WithHeader("Accept", "text/event-stream"),
		option.WithHeader("anthropic-version", version),
	)
	p.post = client.Post
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
func (p *Provider) String() string { return "anthropic adapter (" + p.name + ")" }

// Generate implements model.Provider.
func (p *Provider) Generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
	m, failed := p.generate(ctx, req, emit)
	return llmwire.Outcome(p.name, req.Model, m, failed)
}

func (p *Provider) generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, *model.Error) {
	info := p.catalogue.Lookup(p.name, req.Model)
	body, failed := p.encode(req, &info)
	if failed != nil {
		return nil, failed
	}
	call := llmwire.Begin(ctx, p.options.Idle)
	defer call.End()

	opts := p.headers
	key, failed := call.Key(p.credential)
	if failed != nil {
		return nil, failed
	}
	if p.credential != nil {
		opts = append(slices.Clip(opts), option.WithAPIKey(key))
	}
	var res *http.Response
	err := p.post(call.Context(), "v1/messages", body, &res, opts...)
	if res != nil && res.StatusCode != http.StatusOK {
		return nil, llmwire.Hide(p.refusal(res, err), key)
	}
	if err != nil {
		return nil, llmwire.Hide(call.Fail(err), key)
	}

	d := newDecoder(emit)
	d.reply.Message.API, d.reply.Message.Provider, d.reply.Message.Model = API, p.name, req.Model
	failed = call.Decode(d, res, &llmwire.ScratchOf[scratch](req).Stream, false)
	if failed != nil && d.usage.Prompt() > 0 {
		// Output is counted at the end. What came is paid for all the same.
		if n := model.ReplyTokens(&d.reply.Message); n > d.usage.Output {
			d.usage.Output, d.usage.Estimated = n, true
		}
	}
	d.usage.Tier = model.TierOf(d.terms[:]...)
	d.usage.TotalTokens = d.usage.Prompt() + d.usage.Output
	d.usage.Cost = model.CostWith1h(&info, &d.usage, d.write1h)
	if failed != nil {
		var used *message.Usage
		if d.usage.TotalTokens > 0 {
			used = &d.usage
		}
		return nil, llmwire.Hide(llmwire.Spent(failed, requestID(res.Header), used), key)
	}
	return d.message(), nil
}

func requestID(h http.Header) string { return h.Get("Request-Id") }
