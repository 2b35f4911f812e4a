package azureid

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azsecrets"

	"agentd/fault"
)

// Scope is what tokens for models are asked for.
const Scope = "https://cognitiveservices.azure.com/.default"

// Config says whose credentials and of which kind. The zero value gives tokens of
// whoever the process is: the first that works of the environment's variables
// (AZURE_TENANT_ID, AZURE_CLIENT_ID and a secret or certificate), a workload identity, a
// managed identity, and the developer's command line.
type Config struct {
	// Managed takes the managed identity of the machine, and nothing else.
	Managed bool
	// ClientID names a managed identity where a machine has several.
	ClientID string
	// TenantID is the directory of who signs in; empty: their own.
	TenantID string
	// Scope of the tokens. Default [Scope].
	Scope string
	// Vault is the address of a Key Vault whose Secret, read by that identity, is
	// the credential. Empty: the credential is a token.
	Vault, Secret string
	// Refresh is how long a secret is used until it is read again. Default ten
	// minutes.
	Refresh time.Duration
	// Timeout is how long one look for a credential may take, everything that it asks
	// counted. Default 30 seconds.
	Timeout time.Duration
	// Client sends the requests. Default the SDK's own.
	Client *http.Client
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

const (
	defaultRefresh = 10 * time.Minute
	defaultTimeout = 30 * time.Second
	// tokenMargin is how long ahead of its end a token is replaced.
	tokenMargin = 5 * time.Minute
	// pause is how long after a failed or fruitless look nobody looks again.
	pause = 10 * time.Second
)

// Source gives credentials. It is safe for concurrent use.
type Source struct {
	cfg   Config
	turn  chan struct{} // held by who looks at what follows
	fetch func(ctx context.Context) (lease, error)
	have  lease
	tried time.Time // when a refused credential was looked up
	ended fruitless // the last look, if it found nothing

	failures atomic.Int64 // looks that found nothing
}

// lease is a credential and how long it is good for.
type lease struct {
	value string
	fresh time.Time // from then on it is replaced if possible
	until time.Time // from then on it is of no use; zero: never
}

// fruitless is a look that found nothing: the how manieth, and why.
type fruitless struct {
	number int64
	err    error
}

// New returns a source. Nothing is asked for yet.
func New(cfg Config) *Source {
	if cfg.Scope == "" {
		cfg.Scope = Scope
	}
	if cfg.Refresh <= 0 {
		cfg.Refresh = defaultRefresh
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Source{cfg: cfg, turn: make(chan struct{}, 1)}
	s.fetch = s.first
	return s
}

// Get returns the credential, a good one if there is one. Whoever waits while another
// looks in vain gets the same error and does not look too. The error is the context's or a
// *fault.Error.
func (s *Source) Get(ctx context.Context) (string, error) {
	known := s.failures.Load()
	if err := s.lock(ctx); err != nil {
		return "", err
	}
	defer s.unlock()
	now := s.cfg.Now()
	if s.have.value != "" && now.Before(s.have.fresh) {
		return s.have.value, nil
	}
	err := s.ended.err
	if err == nil || s.ended.number <= known {
		err = s.look(ctx)
	}
	if err == nil {
		return s.have.value, nil
	}
	if s.have.value != "" && (s.have.until.IsZero() || now.Before(s.have.until)) {
		s.have.fresh = now.Add(pause)
		return s.have.value, nil
	}
	return "", err
}

// Renew is told that a credential was refused and returns the one that is right now,
// which may be the same: it is not looked up twice within ten seconds.
func (s *Source) Renew(ctx context.Context, refused string) (string, error) {
	if err := s.lock(ctx); err != nil {
		return "", err
	}
	defer s.unlock()
	now := s.cfg.Now()
	if s.have.value != refused || !s.tried.IsZero() && now.Before(s.tried.Add(pause)) {
		return s.have.value, nil
	}
	s.tried = now
	if err := s.look(ctx); err != nil {
		return "", err
	}
	return s.have.value, nil
}

func (s *Source) lock(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Source) unlock() { <-s.turn }

func (s *Source) look(ctx context.Context) error {
	bounded, stop := context.WithTimeout(ctx, s.cfg.Timeout)
	defer stop()
	got, err := s.fetch(bounded)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if bounded.Err() != nil {
			err = &silence{s.cfg.Timeout}
		}
		err = s.explain(err)
		s.ended = fruitless{s.failures.Add(1), err}
		return err
	}
	s.have, s.ended = got, fruitless{}
	return nil
}

// first makes what fetches, and fetches.
func (s *Source) first(ctx context.Context) (lease, error) {
	// Calls of models are tried again by the run, and with them this: the SDK's own
	// attempts would add up to minutes.
	options := azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}
	if s.cfg.Client != nil {
		options.Transport = s.cfg.Client
	}
	cred, err := s.identity(options)
	if err != nil {
		return lease{}, err
	}
	if s.cfg.Vault == "" {
		s.fetch = s.tokens(cred)
		return s.fetch(ctx)
	}
	client, err := azsecrets.NewClient(s.cfg.Vault, cred, &azsecrets.ClientOptions{ClientOptions: options})
	if err != nil {
		return lease{}, err
	}
	get := client.GetSecret // a function, so that no interface reaches the client's other methods
	s.fetch = func(ctx context.Context) (lease, error) {
		res, err := get(ctx, s.cfg.Secret, "", nil)
		if err != nil {
			return lease{}, err
		}
		if res.Value == nil || *res.Value == "" {
			return lease{}, errors.New("the secret is empty")
		}
		l := lease{value: *res.Value, fresh: s.cfg.Now().Add(s.cfg.Refresh)}
		if a := res.Attributes; a != nil && a.Expires != nil {
			l.until = *a.Expires
		}
		return l, nil
	}
	return s.fetch(ctx)
}

func (s *Source) identity(options azcore.ClientOptions) (azcore.TokenCredential, error) {
	if s.cfg.Managed {
		o := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: options}
		if s.cfg.ClientID != "" {
			o.ID = azidentity.ClientID(s.cfg.ClientID)
		}
		return azidentity.NewManagedIdentityCredential(o)
	}
	return azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: options, TenantID: s.cfg.TenantID})
}

// tokens asks for tokens. Some of what they come from keeps none: the developer's command
// line is a program that is started each time.
func (s *Source) tokens(cred azcore.TokenCredential) func(context.Context) (lease, error) {
	return func(ctx context.Context) (lease, error) {
		t, err := cred.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{s.cfg.Scope}})
		if err != nil {
			return lease{}, err
		}
		now := s.cfg.Now()
		l := lease{value: t.Token, fresh: t.RefreshOn, until: t.ExpiresOn}
		if l.fresh.IsZero() {
			l.fresh = l.until.Add(-min(tokenMargin, l.until.Sub(now)/2))
		}
		return l, nil
	}
}

// explain turns an error of the SDK into one for people.
func (s *Source) explain(err error) error {
	what, field, hint := "no token of Entra ID", "azure.auth", "check who agentd runs as (AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, a workload identity, `az login`) and that it has the role Cognitive Services OpenAI User"
	if s.cfg.Managed {
		hint = "check that the machine has a managed identity, azure.client_id if it has several, and that the identity has the role Cognitive Services OpenAI User"
	}
	if s.cfg.Vault != "" {
		what, field = "no secret "+s.cfg.Secret+" of "+s.cfg.Vault, "azure.key_vault"
		hint = "check the name of the secret, and that who agentd runs as may read it (the role Key Vault Secrets User)"
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	const limit = 600
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + " …"
	}
	kind := fault.Unauthorized
	if passing(err) {
		kind = fault.Unavailable
	}
	return &fault.Error{Op: "azureid", Kind: kind, Field: field, Err: fmt.Errorf("%s: %s", what, text), Hint: hint}
}

// silence is the error of a look that took too long.
type silence struct{ after time.Duration }

func (e *silence) Error() string {
	return "no answer within " + e.after.String() + " (azure.auth_timeout)"
}

// passing reports whether an error may go away by itself.
func passing(err error) bool {
	status := 0
	var (
		failed *azidentity.AuthenticationFailedError
		res    *azcore.ResponseError
		ne     net.Error
		silent *silence
	)
	switch {
	case errors.As(err, &silent):
		return true
	case errors.As(err, &failed) && failed.RawResponse != nil:
		status = failed.RawResponse.StatusCode
	case errors.As(err, &res):
		status = res.StatusCode
	case errors.As(err, &ne):
		return true
	}
	// A machine's metadata service says 410 while it is renewed.
	return status == http.StatusTooManyRequests || status == http.StatusGone || status >= 500
}
