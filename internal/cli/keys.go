package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentd"
	"agentd/client"
	"agentd/fault"
)

// keyring are the API keys of a server or of a store.
type keyring interface {
	CreateKey(ctx context.Context, req client.KeyRequest) (*client.Key, error)
	Keys(ctx context.Context, f client.KeyFilter) ([]*client.Key, string, error)
	RevokeKey(ctx context.Context, id string) (*client.Key, error)
}

func (a *app) keysCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "keys", Short: "Make, list and revoke API keys",
		Long: `Make, list and revoke API keys: of a server (--server, with a key that has the
scope admin), or in a data folder that no server uses (--data).

A key belongs to a tenant and sees nothing of others. From the first key on every
request to the server needs one.`,
		Args: exactly(0, "a command: create, ls or revoke"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	a.placeFlags(cmd)
	cmd.PersistentFlags().Lookup("tenant").Usage = "tenant whose keys are meant (default: with create default, or that of the server's key; else all)"
	cmd.PersistentPreRun = func(*cobra.Command, []string) { a.manages = true }
	cmd.AddCommand(a.keysCreate(), a.keysList(), a.keysRevoke())
	return cmd
}

func (a *app) keysCreate() *cobra.Command {
	var req client.KeyRequest
	var expires string
	cmd := &cobra.Command{Use: "create", Short: "Make a key; its secret is shown once", Args: exactly(0, "no arguments"),
		Long: `Make a key; its secret is shown once.

Scopes, of which none includes another:
  run     start, steer and cancel runs; make and delete sessions; /v1
  read    look at runs, sessions, events, artifacts and usage
  answer  look at interrupts and answer them
  admin   manage the keys and the schedules of the tenant; those of the tenant "default" are the
          operator's and manage the keys of every tenant`,
		Example: `  agentd keys create --name laptop --scope run,read,answer,admin
  agentd keys create --tenant acme --name ci --scope run,read --expires 90d`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if req.ExpiresAt, err = expiry(expires, time.Now()); err != nil {
				return err
			}
			req.Tenant = a.tenant
			return a.at(cmd.Context(), tend, func(p place) error { return a.createKey(cmd.Context(), p, req) })
		}}
	f := cmd.Flags()
	f.StringVar(&req.Name, "name", "", "what people call it")
	f.StringSliceVar(&req.Scopes, "scope", []string{"run", "read", "answer"}, "what it may do: run, read, answer, admin")
	f.StringVar(&expires, "expires", "", "when it ends: 12h, 90d, 2027-01-31 or a time (default: never)")
	_ = cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions([]string{"run", "read", "answer", "admin"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// expiry reads when a key ends: a time from now, a date (its beginning, in UTC) or
// a time.
func expiry(s string, now time.Time) (string, error) {
	if s == "" {
		return "", nil
	}
	at := time.Time{}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			at = now.AddDate(0, 0, int(n))
		}
	} else if d, err := time.ParseDuration(s); err == nil {
		at = now.Add(d)
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil {
			at = t
		}
	}
	switch {
	case at.IsZero():
		return "", &usageError{fmt.Errorf("--expires %s: use 12h, 90d, 2027-01-31 or 2027-01-31T12:00:00Z", s)}
	case !at.After(now):
		return "", &usageError{fmt.Errorf("--expires %s: that is over", s)}
	}
	return at.UTC().Format(time.RFC3339), nil
}

func (a *app) createKey(ctx context.Context, p keyring, req client.KeyRequest) error {
	k, err := p.CreateKey(ctx, req)
	if err != nil {
		return err
	}
	if a.asJSON() {
		return a.value(k)
	}
	err = facts(a.Out, "key", k.ID, "tenant", k.Tenant, "name", shorten(k.Name, 100), "scopes", strings.Join(k.Scopes, ", "),
		"expires", never(k.ExpiresAt), "secret", k.Secret)
	if err == nil {
		_, err = fmt.Fprint(a.Err, "\nThe secret is shown this once. Send it as Authorization: Bearer SECRET, or set\n"+keyVariable+" for agentd itself. Every request needs a key from now on.\n")
	}
	return err
}

func never(t string) string {
	if t == "" {
		return "never"
	}
	return second(t)
}

func (a *app) keysList() *cobra.Command {
	var limit int
	cmd := &cobra.Command{Use: "ls", Short: "List keys, oldest first", Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return &usageError{errors.New("--limit must not be negative")}
			}
			return a.at(cmd.Context(), look, func(p place) error { return a.listKeys(cmd.Context(), p, limit) })
		}}
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "how many; 0 for all")
	return cmd
}

func (a *app) listKeys(ctx context.Context, p keyring, limit int) error {
	rows, more, err := everything(limit, func(cursor string, limit int) ([]*client.Key, string, error) {
		return p.Keys(ctx, client.KeyFilter{Tenant: a.tenant, Cursor: cursor, Limit: limit})
	})
	if err != nil {
		return err
	}
	defer a.tellMore(more, "keys")
	return list(a, rows, []string{"KEY", "TENANT", "STATUS", "SCOPES", "EXPIRES", "LAST USED", "NAME"}, func(k *client.Key) []string {
		return []string{k.ID, k.Tenant, k.Status, strings.Join(k.Scopes, ","), never(k.ExpiresAt), never(k.LastUsedAt), shorten(k.Name, 40)}
	}, "no keys")
}

func (a *app) keysRevoke() *cobra.Command {
	return &cobra.Command{Use: "revoke KEY", Short: "Revoke a key, for good", Args: exactly(1, "the id of a key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, id := cmd.Context(), keyID(args[0])
			return a.change(ctx, tend, func(p place) error {
				rows, _, err := everything(0, func(cursor string, limit int) ([]*client.Key, string, error) {
					return p.Keys(ctx, client.KeyFilter{Cursor: cursor, Limit: limit})
				})
				for _, k := range rows {
					if k.ID == id {
						return nil
					}
				}
				if err == nil {
					err = &fault.Error{Kind: fault.NotFound, Err: errors.New("there is no key " + id), Hint: "agentd keys ls" + a.where() + " lists them."}
				}
				return err
			}, func(p place) error {
				k, err := p.RevokeKey(ctx, id)
				if err != nil {
					return err
				}
				if a.asJSON() {
					return a.value(k)
				}
				_, err = fmt.Fprintf(a.Out, "key %s of tenant %s is revoked\n", k.ID, k.Tenant)
				return err
			})
		}}
}

// keyID is the id in what people may give for it: the whole secret, which must not
// travel in an address.
func keyID(s string) string {
	if rest, ok := strings.CutPrefix(s, "agentd_"); ok {
		s, _, _ = strings.Cut(rest, "_")
	}
	return s
}

// apiKey is the key for the server: the flag's, or the environment's. A flag that
// begins with @ names a file.
func (a *app) apiKey() (string, error) {
	if file, ok := strings.CutPrefix(a.key, "@"); ok {
		raw, err := os.ReadFile(file)
		if err != nil {
			return "", &usageError{fmt.Errorf("--api-key: %w", err)}
		}
		return strings.TrimSpace(string(raw)), nil
	}
	for _, key := range []string{a.key, os.Getenv(keyVariable), os.Getenv(oldKeyVariable)} {
		if key != "" {
			return key, nil
		}
	}
	return "", nil
}

// CreateKey implements keyring.
func (l *local) CreateKey(ctx context.Context, req client.KeyRequest) (*client.Key, error) {
	r := agentd.KeyRequest{Tenant: req.Tenant, Name: req.Name}
	for _, s := range req.Scopes {
		r.Scopes = append(r.Scopes, agentd.Scope(s))
	}
	if req.ExpiresAt != "" {
		var err error
		if r.Expires, err = time.Parse(time.RFC3339, req.ExpiresAt); err != nil {
			return nil, err
		}
	}
	k, secret, err := l.rt.CreateKey(ctx, r)
	if err != nil {
		return nil, err
	}
	out := keyOf(k)
	out.Secret = secret
	return out, nil
}

// Keys implements keyring.
func (l *local) Keys(ctx context.Context, f client.KeyFilter) ([]*client.Key, string, error) {
	rows, next, err := l.rt.Keys(ctx, f.Tenant, f.Cursor, f.Limit)
	var out []*client.Key
	for _, k := range rows {
		out = append(out, keyOf(k))
	}
	return out, next, err
}

// RevokeKey implements keyring.
func (l *local) RevokeKey(ctx context.Context, id string) (*client.Key, error) {
	k, err := l.rt.RevokeKey(ctx, id)
	if err != nil {
		return nil, err
	}
	return keyOf(k), nil
}

func keyOf(k *agentd.Key) *client.Key {
	out := &client.Key{ID: k.ID, Tenant: k.Tenant, Name: k.Name, Status: k.Status, CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt,
		RevokedAt: k.RevokedAt, LastUsedAt: k.LastUsedAt}
	for _, s := range k.Scopes {
		out.Scopes = append(out.Scopes, string(s))
	}
	return out
}
