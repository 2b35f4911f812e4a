package openai

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"agentd/internal/llmwire"
	"agentd/message"
	"agentd/model"
)

// API is the value of message.Message.API in replies of this adapter.
const API = "openai-completions"

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
	// BaseURL as in OpenAI's own SDKs, ending in /v1. Default OpenAI's.
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
	// MaxTokensField is the name of the output limit: max_completion_tokens
	// (default at api.openai.com) or max_tokens (default elsewhere).
	MaxTokensField string
	// PromptCacheKey sends Request.SessionID as prompt_cache_key. Auto: only
	// to api.openai.com, because other servers refuse unknown fields.
	PromptCacheKey Choice
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
	catalogue  *model.Catalogue
	headers    []option.RequestOption
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
	base := cfg.BaseURL
	if base == "" {
		base = defaultBaseURL
	}
	base, err := llmwire.BaseURL("openai.New", base)
	if err != nil {
		return nil, err
	}
	own := false
	if u, err := url.Parse(base); err == nil {
		own = u.Hostname() == "api.openai.com"
	}
	p := &Provider{
		name: cfg.Provider, credential: cfg.Credential, catalogue: cfg.Catalogue, idle: o.Idle, now: o.Now, retention: o.CacheRetention,
		maxTokens: o.MaxTokensField, cacheKey: o.PromptCacheKey == Yes || o.PromptCacheKey == Auto && own,
	}
	if p.name == "" {
		p.name = "openai"
	}
	if p.catalogue == nil {
		p.catalogue = model.NewCatalogue()
	}
	if p.now == nil {
		p.now = time.Now
	}
	if p.maxTokens == "" {
		p.maxTokens = "max_tokens"
		if own {
			p.maxTokens = "max_completion_tokens"
		}
	}
	// Not sdk.NewClient: it takes keys, headers and the base URL from the
	// environment, and what agentd sends must follow from its configuration.
	client := &sdk.Client{Options: []option.RequestOption{
		option.WithBaseURL(base + "/"),
		option.WithHTTPClient(llmwire.Client(o.Client)),
		option.WithMaxRetries(0),
		option.WithHeader("Accept", "text/event-stream"),
	}}
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
func (p *Provider) String() string { return "openai adapter (" + p.name + ")" }

// Generate implements model.Provider.
func (p *Provider) Generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
	m, err := p.generate(ctx, req, emit)
	if err != nil {
		err.Provider, err.Model = p.name, req.Model
		return nil, err
	}
	return m, nil
}

func (p *Provider) generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, *model.Error) {
	info := p.catalogue.Lookup(p.name, req.Model)
	body, failed := p.encode(req, &info)
	if failed != nil {
		return nil, failed
	}
	call := llmwire.Begin(ctx, p.idle)
	defer call.End()

	opts := p.headers
	key := ""
	if p.credential != nil {
		var err error
		if key, err = p.credential(call.Context()); err != nil {
			e := call.Fail(err)
			if e.Class == model.ClassConnection {
				e.Class = model.ClassAuth
			}
			return nil, e
		}
		opts = append(slices.Clip(opts), option.WithAPIKey(key))
	}
	var res *http.Response
	err := p.post(call.Context(), "chat/completions", body, &res, opts...)
	if res != nil && res.StatusCode != http.StatusOK {
		return nil, redact(p.refusal(res, err), key)
	}
	if err != nil {
		return nil, redact(call.Fail(err), key)
	}

	d := newDecoder(emit)
	d.reply.Message.API, d.reply.Message.Provider, d.reply.Message.Model = API, p.name, req.Model
	failed = d.run(call, res, scratchOf(req))
	if m := &d.reply.Message; failed != nil && d.usage == nil && (m.ResponseID != "" || len(m.Content) > 0) {
		d.usage = model.Estimate(req, m) // what came, and what it was asked with, is paid for all the same
	}
	if u := d.usage; u != nil {
		u.Cost = model.Cost(&info, u)
	}
	if failed != nil {
		failed.RequestID, failed.Usage = requestID(res.Header), d.usage
		if failed.Class != model.ClassCancelled && failed.RetryAfter == 0 {
			failed.RetryAfter = llmwire.TextDelay(failed.Message)
		}
		return nil, redact(failed, key)
	}
	return d.message(), nil
}

// run reads the stream to its end.
func (d *decoder) run(call *llmwire.Call, res *http.Response, s *scratch) *model.Error {
	events := call.Events(res, s.stream)
	defer func() { s.stream = llmwire.Kept(events) }()
	if media := res.Header.Get("Content-Type"); strings.HasPrefix(media, "application/json") {
		text, err := io.ReadAll(io.LimitReader(call, 64<<10))
		if err != nil {
			return call.Fail(err)
		}
		return notAStream(text)
	}
	for {
		e, err := events.Next()
		if err != nil {
			if d.finish == "" || err != io.EOF && d.usage == nil {
				return call.Fail(err)
			}
			return d.end()
		}
		done, failed := d.chunk(e.Data)
		if failed != nil {
			return failed
		}
		if done {
			if d.finish == "" {
				return call.Fail(io.EOF)
			}
			call.Finish()
			return d.end()
		}
	}
}

func redact(e *model.Error, key string) *model.Error {
	e.Message = llmwire.Clip(llmwire.Redact(e.Message, key))
	return e
}

func requestID(h http.Header) string { return h.Get("X-Request-Id") }
