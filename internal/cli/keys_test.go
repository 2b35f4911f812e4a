package cli

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentd/client"
)

var secretRE = regexp.MustCompile(`agentd_[a-z2-7]{16}_[a-z2-7]{52}`)

func TestKeysInADataFolder(t *testing.T) {
	b := newBench(t)
	b.here("keys", "revoke", "nothing").exits(1)
	if _, err := os.Stat(filepath.Join(b.data, "agentd.db")); err == nil {
		t.Error("looking for a key made a store")
	}
	made := b.here("keys", "create", "--tenant", "acme", "--name", "ci", "--scope", "run,read", "--expires", "90d").exits(0).
		says("acme", "ci", "read, run", time.Now().UTC().AddDate(0, 0, 90).Format("2006-01-")).complains("shown this once", "AGENTD_API_KEY")
	secret := secretRE.FindString(made.out)
	if secret == "" {
		t.Fatalf("no secret: %s", made.out)
	}
	other := lines[client.Key](b.asJSON(func() *result { return b.here("keys", "create", "--scope", "admin").exits(0) }))[0]
	if other.Tenant != "default" || other.Secret == "" || other.ExpiresAt != "" {
		t.Errorf("%+v", other)
	}
	ls := b.here("keys", "ls").exits(0).says("KEY", "acme", "read,run", "never", "ci", "default", "admin")
	if secretRE.MatchString(ls.out + ls.err) {
		t.Error("the list has secrets")
	}
	if r := b.here("keys", "ls", "--tenant", "acme").exits(0); strings.Contains(r.out, other.ID) || !strings.Contains(r.out, "ci") {
		t.Errorf("%s", r.out)
	}
	b.here("keys", "ls", "--limit", "1").exits(0).complains("there are more keys")
	// By its secret, which must not be repeated.
	revoked := b.here("keys", "revoke", secret).exits(0).says("of tenant acme is revoked")
	if strings.Contains(revoked.out+revoked.err, secret[30:]) {
		t.Error("the secret is repeated")
	}
	b.here("keys", "ls").exits(0).says("revoked")
	b.here("keys", "revoke", "nothing").exits(1).complains("there is no key nothing", "keys ls")
	for _, args := range [][]string{{"keys", "create", "--expires", "soon"}, {"keys", "create", "--expires", "0d"}, {"keys", "create", "--expires", "2001-01-01"},
		{"keys", "create", "--scope", "root"}, {"keys", "create", "--tenant", "a b"}, {"keys", "ls", "-n", "-1"}, {"keys", "revoke"}, {"keys", "what"}} {
		b.here(args...).exits(2)
	}
}

func TestExpiry(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]string{"": "", "12h": "2026-03-02T00:00:00Z", "90d": "2026-05-30T12:00:00Z", "2027-01-31": "2027-01-31T00:00:00Z",
		"2027-01-31T10:00:00+02:00": "2027-01-31T08:00:00Z"} {
		if got, err := expiry(in, now); err != nil || got != want {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
}

// Keys of a server, from the first one on.
func TestKeysOnAServer(t *testing.T) {
	b := newBench(t)
	url, rt := b.serving(func(r *http.Request) {
		if secretRE.MatchString(r.URL.String()) {
			t.Errorf("a secret in an address: %s", r.URL)
		}
	})
	there := func(args ...string) *result { t.Helper(); return b.run(append(args, "--server", url)...) }
	there("runs", "ls").exits(0)
	admin := secretRE.FindString(there("keys", "create", "--name", "operator", "--scope", "admin").exits(0).says("admin").out)
	there("runs", "ls").exits(1).complains("an API key is needed", "--api-key or $AGENTD_API_KEY")
	there("runs", "ls", "--api-key", admin).exits(1).complains("it needs read and has admin")
	t.Setenv("AGENTD_API_KEY", admin)
	acme := secretRE.FindString(there("keys", "create", "--tenant", "acme").exits(0).says("acme", "answer, read, run").out)
	file := filepath.Join(b.work, "key")
	if err := os.WriteFile(file, []byte(acme+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	there("keys", "ls").exits(0).says("operator", "acme")
	there("runs", "ls", "--api-key", "@"+file).exits(0)
	there("runs", "ls", "--api-key", "@"+file+"x").exits(2)
	there("keys", "ls", "--api-key", acme).exits(1).complains("it needs admin")
	there("runs", "ls", "--tenant", "acme").exits(2).complains("the API key names the tenant")
	// A follower is let go when its key is revoked; what it followed goes on.
	c, err := client.New(url, &client.Options{Key: acme})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Start(t.Context(), client.StartRequest{Profile: "stuck", Input: input("Go")})
	if err != nil {
		t.Fatal(err)
	}
	out := after("text_delta", func(string) {
		b.run("keys", "revoke", acme, "--server", url).exits(0).says("of tenant acme is revoked")
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	b.runIn(ctx, out, "runs", "events", r.ID, "--follow", "--server", url, "--api-key", acme, "--json").exits(1).complains("the API key was revoked at")
	if _, err := rt.Get(t.Context(), r.ID); err == nil {
		t.Error("the default tenant sees the run of another")
	}
	if text := there("keys", "ls").exits(0).says("revoked"); secretRE.MatchString(text.out) {
		t.Errorf("%s", text.out)
	}
	t.Setenv("AGENTD_API_KEY", "")
	t.Setenv("AGENTD_KEY", admin) // as it was called
	there("keys", "ls").exits(0)
}

// Data folders are looked at as any tenant.
func TestTenantsOfADataFolder(t *testing.T) {
	b := newBench(t)
	b.agent("demo", "Mine").exits(0)
	acme := secretRE.FindString(b.here("keys", "create", "--tenant", "acme").exits(0).out)
	func() {
		url, rt := b.serving(nil)
		defer rt.Close()
		c, err := client.New(url, &client.Options{Key: acme})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.CreateSession(t.Context(), client.SessionRequest{Title: "Theirs"}); err != nil {
			t.Fatal(err)
		}
	}()
	if r := b.here("sessions", "ls").exits(0).says("Mine"); strings.Contains(r.out, "Theirs") {
		t.Errorf("%s", r.out)
	}
	if r := b.here("sessions", "ls", "--tenant", "acme").exits(0).says("Theirs"); strings.Contains(r.out, "Mine") {
		t.Errorf("%s", r.out)
	}
	b.here("sessions", "ls", "--tenant", "../x").exits(2).complains("no name of a tenant")
}

func TestServeBeyondLoopback(t *testing.T) {
	b := newBench(t)
	b.run("serve", "--addr", "0.0.0.0:0", "--data", b.data, "--configs", b.configs).exits(2).
		complains("reachable from other machines", "agentd keys create", "--allow-remote-without-keys")
	serve := func(more ...string) (said string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stderr := after("listens on", func(all string) { said = all; cancel() })
		b.runIn(ctx, &buffer{other: stderr}, append([]string{"serve", "--addr", "0.0.0.0:0", "--data", b.data, "--configs", b.configs}, more...)...).exits(0)
		return said
	}
	if said := serve("--allow-remote-without-keys"); !strings.Contains(said, "everybody may do everything") {
		t.Errorf("%s", said)
	}
	b.here("keys", "create").exits(0)
	if said := serve(); !strings.Contains(said, "without TLS") {
		t.Errorf("%s", said)
	}
}
