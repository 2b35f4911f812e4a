package ollama

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"agentd/fault"
	"agentd/internal/llmwire"
	"agentd/message"
	"agentd/model"
)

// API is the value of message.Message.API in replies of this adapter.
const API = "ollama-chat"

const defaultBaseURL = "http://127.0.0.1:11434"

// Config says which server to talk to and how. The zero value talks to the one on this
// machine.
type Config struct {
	// Provider names the server in replies, errors and the catalogue.
	// Default "ollama".
	Provider string
	// BaseURL is where the server is, without /api. Default
	// http://127.0.0.1:11434; see [Host].
	BaseURL string
	// Credential gives the key of each request, which only ollama.com and gateways
	// ask for. Nil: none is sent.
	Credential model.CredentialFunc
	// Headers are added to each request.
	Headers map[string]string
	// Catalogue prices replies. Default the built-in one, in which nothing of
	// Ollama has a price.
	Catalogue *model.Catalogue
	// Options tune what few need; nil means defaults.
	Options *Options
}

// Options are the rarely needed settings.
type Options struct {
	// NumCtx is how many tokens the model is loaded with. 0: the server's default,
	// which is small on small machines.
	NumCtx int
	// KeepAlive is how long the model stays loaded after a call. 0: the server's
	// default; negative: until the server ends.
	KeepAlive time.Duration
	// Idle is how long the server may send nothing: loading a model takes its
	// time. Default five minutes; negative: for ever.
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

	mu     sync.Mutex
	known  map[string]Abilities // by model, once the server was asked
	loaded map[string]loaded    // by model, once it answered
}

var _ model.Provider = (*Provider)(nil)

// New returns an adapter. The error is a *fault.Error about the base URL.
func New(cfg Config) (*Provider, error) {
	base := cfg.BaseURL
	if base == "" {
		base = defaultBaseURL
	}
	base, err := llmwire.BaseURL("ollama.New", base)
	if err != nil {
		return nil, err
	}
	p := &Provider{name: cfg.Provider, base: base, credential: cfg.Credential, catalogue: cfg.Catalogue, headers: http.Header{}, known: map[string]Abilities{}, loaded: map[string]loaded{}}
	if cfg.Options != nil {
		p.options = *cfg.Options
	}
	p.client = llmwire.Client(p.options.Client)
	if p.name == "" {
		p.name = "ollama"
	}
	if p.catalogue == nil {
		p.catalogue = model.NewCatalogue()
	}
	if p.options.Now == nil {
		p.options.Now = time.Now
	}
	p.headers.Set("Accept", "application/x-ndjson")
	for name, value := range cfg.Headers {
		p.headers.Set(name, value)
	}
	return p, nil
}

// Host makes a base URL of what people write into OLLAMA_HOST: a host, a host and port, a
// port after a colon, or a URL. "" stays "". An address to listen on everywhere (0.0.0.0)
// is this machine. The error is a *fault.Error.
func Host(value string) (string, error) {
	value = strings.TrimSpace(value)
	if value == "" {
		return "", nil
	}
	port := "11434"
	scheme, rest, ok := strings.Cut(value, "://")
	switch {
	case !ok:
		scheme, rest = "http", value
		if rest == "ollama.com" {
			scheme, port = "https", "443"
		}
	case scheme == "http":
		port = "80"
	case scheme == "https":
		port = "443"
	}
	hostport, path, _ := strings.Cut(rest, "/")
	host, given, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	} else {
		port = given
	}
	switch host {
	case "", "0.0.0.0", "::":
		host = "127.0.0.1"
	}
	base, err := llmwire.BaseURL("ollama.Host", scheme+"://"+net.JoinHostPort(host, port)+"/"+path)
	if err != nil {
		return "", &fault.Error{Op: "ollama.Host", Kind: fault.Invalid, Field: "OLLAMA_HOST", Err: errors.New("is not the address of a server"),
			Hint: "write a host and a port, such as 127.0.0.1:11434, or a URL"}
	}
	return base, nil
}

// String names the adapter; it never shows a key.
func (p *Provider) String() string { return "ollama adapter (" + p.name + ")" }

// GoString is String: a verb that shows fields must not show headers.
func (p *Provider) GoString() string { return p.String() }

// Generate implements model.Provider.
func (p *Provider) Generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
	m, failed := p.generate(ctx, req, emit)
	return llmwire.Outcome(p.name, req.Model, m, failed)
}

func (p *Provider) generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, *model.Error) {
	info := p.catalogue.Lookup(p.name, req.Model)
	call := llmwire.Begin(ctx, p.options.Idle)
	defer call.End()

	key, failed := call.Key(p.credential)
	if failed != nil {
		return nil, failed
	}
	headers := p.headers
	if key != "" {
		headers = headers.Clone()
		headers.Set("Authorization", "Bearer "+key)
	}
	can := everything()
	if matters(req) {
		if can, failed = p.abilities(ctx, req.Model, headers); failed != nil {
			return nil, llmwire.Hide(failed, key)
		}
	}
	body, failed := p.encode(req, &info, can)
	if failed != nil {
		return nil, failed
	}
	res, failed := call.Post(p.client, p.base+"/api/chat", headers, body)
	if failed != nil {
		return nil, llmwire.Hide(failed, key)
	}
	if res.StatusCode != http.StatusOK {
		return nil, llmwire.Hide(p.refusal(res, call.Refused()), key)
	}

	d := newDecoder(emit)
	d.reply.Message.API, d.reply.Message.Provider, d.reply.Message.Model = API, p.name, req.Model
	failed = call.Decode(d, res, &llmwire.ScratchOf[scratch](req).Stream, true)
	if failed != nil {
		d.usage = llmwire.Estimated(d.usage, req, &d.reply.Message)
	}
	if u := d.usage; u != nil {
		u.Cost = model.Cost(&info, u)
	}
	if failed != nil {
		return nil, llmwire.Hide(llmwire.Spent(failed, "", d.usage), key)
	}
	p.lookAgain(ctx, req.Model, headers)
	return d.message(), nil
}
