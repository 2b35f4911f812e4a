package azureid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd/fault"
)

// cloud plays Azure: the token endpoint of Entra ID, the metadata service of a machine and
// a Key Vault, under their own names.
type cloud struct {
	t  *testing.T
	mu sync.Mutex
	// lifetime is that of tokens, in seconds.
	lifetime int
	secret   string
	expires  int64 // of the secret
	down     bool
	refuse   bool
	tokens   int // given out
	reads    int // of the secret
	asked    []string
	base     time.Time
	clock    time.Duration // since base
}

func newCloud(t *testing.T) (*cloud, *http.Client) {
	c := &cloud{t: t, lifetime: 3600, secret: "key-1", base: time.Now()}
	srv := httptest.NewTLSServer(c)
	t.Cleanup(srv.Close)
	client := srv.Client()
	client.Transport = elsewhere{srv.Listener.Addr().String(), client.Transport}
	return c, client
}

// elsewhere sends every request to the test's server, whose certificate is for example.com.
type elsewhere struct {
	addr string
	next http.RoundTripper
}

func (e elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	own := r.Clone(r.Context())
	own.Host = r.URL.Host
	own.URL.Scheme, own.URL.Host = "https", e.addr
	return e.next.RoundTrip(own)
}

func (c *cloud) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *cloud) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base.Add(c.clock)
}

// seen is what was asked for, and how many tokens and secrets were given out.
func (c *cloud) seen() (asked string, tokens, reads int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.asked, "\n"), c.tokens, c.reads
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := r.ParseForm(); err != nil {
		c.t.Error(err)
	}
	c.asked = append(c.asked, r.Method+" "+r.Host+r.URL.Path)
	answer := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	type object = map[string]any
	token := func() string {
		c.tokens++
		return fmt.Sprintf("token-%d", c.tokens)
	}
	switch {
	case c.down:
		answer(http.StatusServiceUnavailable, object{"error": "server_error", "error_description": "away"})
	case c.refuse:
		answer(http.StatusBadRequest, object{"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret provided."})
	case strings.HasSuffix(r.URL.Path, "/discovery/instance"):
		answer(200, object{"tenant_discovery_endpoint": "https://login.microsoftonline.com/ten/v2.0/.well-known/openid-configuration", "metadata": []object{{
			"preferred_network": "login.microsoftonline.com", "preferred_cache": "login.windows.net", "aliases": []string{"login.microsoftonline.com"}}}})
	case strings.HasSuffix(r.URL.Path, "/openid-configuration"):
		answer(200, object{"token_endpoint": "https://login.microsoftonline.com/ten/oauth2/v2.0/token", "issuer": "https://login.microsoftonline.com/ten/v2.0",
			"authorization_endpoint": "https://login.microsoftonline.com/ten/oauth2/v2.0/authorize"})
	case strings.HasSuffix(r.URL.Path, "/oauth2/v2.0/token"):
		c.asked = append(c.asked, "scope "+strings.Fields(r.Form.Get("scope"))[0]+" grant "+r.Form.Get("grant_type")+" as "+r.Form.Get("client_id"))
		answer(200, object{"token_type": "Bearer", "expires_in": c.lifetime, "ext_expires_in": c.lifetime, "access_token": token()})
	case r.Host == "169.254.169.254":
		if r.Header.Get("Metadata") != "true" {
			answer(400, object{"error": "invalid_request", "error_description": "Required metadata header not specified"})
			return
		}
		c.asked = append(c.asked, "resource "+r.Form.Get("resource")+" as "+r.Form.Get("client_id"))
		answer(200, object{"access_token": token(), "expires_in": fmt.Sprint(c.lifetime), "expires_on": fmt.Sprint(time.Now().Unix() + int64(c.lifetime)),
			"resource": r.Form.Get("resource"), "token_type": "Bearer"})
	case strings.HasSuffix(r.Host, ".vault.azure.net"):
		if r.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", `Bearer authorization="https://login.microsoftonline.com/ten", resource="https://vault.azure.net"`)
			answer(401, object{"error": object{"code": "Unauthorized", "message": "AKV10000: Request is missing a Bearer or PoP token."}})
			return
		}
		if !strings.HasPrefix(r.URL.Path, "/secrets/openai-key") {
			answer(404, object{"error": object{"code": "SecretNotFound", "message": "A secret with (name/id) other was not found in this key vault."}})
			return
		}
		c.reads++
		attributes := object{"enabled": true}
		if c.expires != 0 {
			attributes["exp"] = c.expires
		}
		answer(200, object{"value": c.secret, "id": "https://v.vault.azure.net/secrets/openai-key/1", "attributes": attributes})
	default:
		answer(404, object{"error": "not found"})
	}
}

// servicePrincipal makes the process one, by the variables that Azure's SDKs share.
func servicePrincipal(t *testing.T) {
	t.Setenv("AZURE_TENANT_ID", "ten")
	t.Setenv("AZURE_CLIENT_ID", "app")
	t.Setenv("AZURE_CLIENT_SECRET", "hunter2")
	t.Setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
}

func get(t *testing.T, s *Source, want string) {
	t.Helper()
	got, err := s.Get(t.Context())
	if err != nil || got != want {
		t.Fatalf("%q, %v; want %q", got, err, want)
	}
}

func TestEntraID(t *testing.T) {
	servicePrincipal(t)
	c, client := newCloud(t)
	s := New(Config{Client: client, Now: c.now})
	if asked, _, _ := c.seen(); asked != "" {
		t.Errorf("asked before anybody wanted anything: %s", asked)
	}
	get(t, s, "token-1")
	get(t, s, "token-1")
	if all, tokens, _ := c.seen(); !strings.Contains(all, "scope "+Scope+" grant client_credentials as app") || tokens != 1 {
		t.Errorf("%d tokens:\n%s", tokens, all)
	}
}

func TestScope(t *testing.T) {
	servicePrincipal(t)
	c, client := newCloud(t)
	get(t, New(Config{Client: client, Scope: "https://cognitiveservices.azure.us/.default"}), "token-1")
	if all, _, _ := c.seen(); !strings.Contains(all, "scope https://cognitiveservices.azure.us/.default") {
		t.Error(all)
	}
}

func TestManagedIdentity(t *testing.T) {
	for _, id := range []string{"", "0000-1111"} {
		c, client := newCloud(t)
		get(t, New(Config{Managed: true, ClientID: id, Client: client}), "token-1")
		if all, _, _ := c.seen(); !strings.Contains(all, "resource https://cognitiveservices.azure.com as "+id) {
			t.Error(all)
		}
	}
}

// A token is replaced ahead of its end, and used to its end while there is no other.
func TestTokensAreReplaced(t *testing.T) {
	servicePrincipal(t)
	c, client := newCloud(t)
	c.lifetime = 280 // less than the SDK keeps a token for, so that it asks each time
	s := New(Config{Client: client, Now: c.now})
	get(t, s, "token-1")
	c.set(func() { c.clock = time.Minute })
	get(t, s, "token-1")
	c.set(func() { c.clock = 170 * time.Second })
	get(t, s, "token-2") // good for 280 seconds of the real clock
	c.set(func() { c.clock = 240 * time.Second; c.refuse = true })
	get(t, s, "token-2")
	c.set(func() { c.clock = time.Hour })
	if _, err := s.Get(t.Context()); fault.KindOf(err) != fault.Unauthorized {
		t.Errorf("a token that has ended: %v", err)
	}
}

func TestKeyVault(t *testing.T) {
	servicePrincipal(t)
	c, client := newCloud(t)
	s := New(Config{Vault: "https://v.vault.azure.net", Secret: "openai-key", Refresh: time.Minute, Client: client, Now: c.now})
	get(t, s, "key-1")
	c.set(func() { c.secret = "key-2" })
	get(t, s, "key-1")
	if _, _, reads := c.seen(); reads != 1 {
		t.Errorf("read %d times", reads)
	}
	// Its time is over.
	c.set(func() { c.clock = 2 * time.Minute })
	get(t, s, "key-2")
	// It was rotated and is refused: whoever comes second does not look again.
	c.set(func() { c.secret = "key-3" })
	for range 3 {
		if got, err := s.Renew(t.Context(), "key-2"); got != "key-3" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	_, _, reads := c.seen()
	got, err := s.Renew(t.Context(), "key-3")
	if _, _, after := c.seen(); got != "key-3" || err != nil || after != reads {
		t.Errorf("looked again at once: %q, %v, %d reads after %d", got, err, after, reads)
	}
	c.set(func() { c.clock += time.Minute / 2; c.secret = "key-4" })
	if got, err := s.Renew(t.Context(), "key-3"); got != "key-4" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	// The vault is away: what is known goes on.
	c.set(func() { c.clock += time.Hour; c.down = true })
	get(t, s, "key-4")
	get(t, s, "key-4")
	// A secret that has an end is of no use after it.
	c.set(func() { c.down, c.expires = false, c.timeOf(2*time.Hour); c.clock += time.Minute })
	get(t, s, "key-4")
	c.set(func() { c.down = true; c.clock += 3 * time.Hour })
	if _, err := s.Get(t.Context()); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
}

// timeOf is a time of the cloud's clock, which the caller holds.
func (c *cloud) timeOf(d time.Duration) int64 { return c.base.Add(c.clock + d).Unix() }

func TestErrors(t *testing.T) {
	servicePrincipal(t)
	for _, tt := range []struct {
		name  string
		cfg   Config
		cloud func(*cloud)
		kind  fault.Kind
		says  string
	}{
		{"a wrong secret", Config{}, func(c *cloud) { c.refuse = true }, fault.Unauthorized, "AADSTS7000215"},
		{"no such secret", Config{Vault: "https://v.vault.azure.net", Secret: "other"}, func(*cloud) {}, fault.Unauthorized, "SecretNotFound"},
		{"an empty secret", Config{Vault: "https://v.vault.azure.net", Secret: "openai-key"}, func(c *cloud) { c.secret = "" }, fault.Unauthorized, "is empty"},
		{"no vault", Config{Vault: "https://v.example.com", Secret: "x"}, func(*cloud) {}, fault.Unauthorized, "v.example.com"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, client := newCloud(t)
			tt.cloud(c)
			tt.cfg.Client = client
			_, err := New(tt.cfg).Get(t.Context())
			if fault.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.says) || fault.HintOf(err) == "" || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v (%s)", err, fault.HintOf(err))
			}
		})
	}
}

// Many callers fetch once, and one that gives up does not wait.
func TestOneFetches(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	n := 0
	s := New(Config{})
	s.fetch = func(context.Context) (lease, error) {
		n++
		close(begun)
		<-release
		return lease{value: "v", fresh: time.Now().Add(time.Hour)}, nil
	}
	var all sync.WaitGroup
	ask := func() {
		if v, err := s.Get(t.Context()); v != "v" || err != nil {
			t.Errorf("%q, %v", v, err)
		}
	}
	all.Go(ask)
	<-begun
	for range 8 {
		all.Go(ask)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Get(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(release)
	all.Wait()
	if n != 1 {
		t.Errorf("fetched %d times", n)
	}
}

// nobody is the id of an identity that no test had before: the SDK keeps tokens of managed
// identities for as long as the process lives.
func nobody() string { return fmt.Sprint("id-", time.Now().UnixNano()) }

// An endpoint that takes the question and never answers ends the look, whatever the call
// that needs it may take; a credential that is still good is used.
func TestSilence(t *testing.T) {
	servicePrincipal(t)
	c, client := newCloud(t)
	hang := make(chan struct{})
	asked := make(chan string, 100)
	srv := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.Host + r.URL.Path
		select {
		case <-r.Context().Done():
		case <-hang:
		}
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(hang) })
	silent := srv.Client()
	silent.Transport = elsewhere{srv.Listener.Addr().String(), silent.Transport}
	for name, cfg := range map[string]Config{
		"a token": {}, "a managed identity": {Managed: true, ClientID: nobody()}, "a vault": {Vault: "https://v.vault.azure.net", Secret: "openai-key"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Client, cfg.Timeout = silent, 20*time.Millisecond
			_, err := New(cfg).Get(context.Background())
			if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "azure.auth_timeout") {
				t.Errorf("%v", err)
			}
			if n := len(asked); n > 1 {
				t.Errorf("it was asked %d times", n)
			}
			for len(asked) > 0 {
				<-asked
			}
		})
	}
	// Somebody who has given up is no silence.
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(Config{Client: silent, Timeout: time.Hour}).Get(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	s := New(Config{Vault: "https://v.vault.azure.net", Secret: "openai-key", Refresh: time.Minute, Client: client, Now: c.now})
	get(t, s, "key-1")
	c.set(func() { c.clock = time.Hour })
	s.fetch = func(ctx context.Context) (lease, error) { <-ctx.Done(); return lease{}, ctx.Err() }
	s.cfg.Timeout = time.Millisecond

	get(t, s, "key-1")
}

// What the SDK would try again by itself is asked for once: the run tries again.
func TestOneAttempt(t *testing.T) {
	for name, cfg := range map[string]Config{"a token": {}, "a managed identity": {Managed: true, ClientID: nobody()}} {
		t.Run(name, func(t *testing.T) {
			servicePrincipal(t)
			c, client := newCloud(t)
			c.down = true
			cfg.Client = client
			if _, err := New(cfg).Get(t.Context()); fault.KindOf(err) != fault.Unavailable {
				t.Errorf("%v", err)
			}
			all, _, _ := c.seen()
			for one := range strings.SplitSeq(all, "\n") {
				if strings.Count(all, one) != 1 {
					t.Errorf("%s was asked again:\n%s", one, all)
				}
			}
		})
	}
}

// Who waits while another looks in vain learns so with it, and the next one looks again.
func TestOneFails(t *testing.T) {
	begun, release := make(chan struct{}, 2), make(chan struct{})
	s := New(Config{})
	s.fetch = func(context.Context) (lease, error) {
		begun <- struct{}{}
		<-release
		return lease{}, errors.New("no")
	}
	errs := make(chan error, 9)
	ask := func() { _, err := s.Get(t.Context()); errs <- err }
	go ask()
	<-begun
	waiting := &waits{Context: t.Context(), at: make(chan struct{}, 8)}
	for range 8 {
		go func() { _, err := s.Get(waiting); errs <- err }()
	}
	for range 8 {
		<-waiting.at
	}
	close(release)
	for range 9 {
		if err := <-errs; fault.KindOf(err) != fault.Unauthorized {
			t.Errorf("%v", err)
		}
	}
	if len(begun) != 0 {
		t.Error("it was looked for again")
	}
	ask()
	if len(begun) != 1 {
		t.Error("it was not looked for again")
	}
}

// waits tells when somebody begins to wait.
type waits struct {
	context.Context
	at chan struct{}
}

func (w *waits) Done() <-chan struct{} {
	w.at <- struct{}{}
	return w.Context.Done()
}
