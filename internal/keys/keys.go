package keys

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentd/fault"
	"agentd/internal/store"
)

// Scope is something that a key may do.
type Scope string

// The scopes.
const (
	Run    Scope = "run"    // start, steer and cancel runs; make and delete sessions
	Read   Scope = "read"   // look at runs, sessions, events, artifacts, usage
	Answer Scope = "answer" // answer interrupts
	Admin  Scope = "admin"  // make, list and revoke keys; make and change schedules
)

// Scopes lists all scopes.
func Scopes() []Scope { return []Scope{Run, Read, Answer, Admin} }

// Operator is the tenant whose admin keys manage the keys of every tenant. It is
// also the tenant of everybody while there are no keys.
const Operator = store.DefaultTenant

// The parts of a key: prefix, id, separator, secret.
const (
	prefix      = "agentd_"
	idBytes     = 10
	secretBytes = 32
)

// lastUsedStep is how coarse LastUsed is: it is written at most once per key and
// step, because a write waits for the disk.
const lastUsedStep = time.Hour

// Limits of a request.
const (
	maxTenant = 64
	maxName   = 200
)

// Config configures keys. Only Store is required.
type Config struct {
	Store Store
	// Now is the clock; nil means the real one.
	Now func() time.Time
	// Random is where keys come from; nil means crypto/rand.
	Random io.Reader
	// Log gets what operators must know; nil discards.
	Log *slog.Logger
}

// Store is what keys need of the store.
type Store interface {
	store.KeyReader
	Commit(ctx context.Context, tx *store.Tx) error
}

// Keys makes, checks and revokes API keys. It is safe for concurrent use.
type Keys struct {
	cfg Config
	// required is set once it is known that a key exists, asked is when that
	// was last looked for, in Unix milliseconds.
	required atomic.Bool
	asked    atomic.Int64
	enc      *base32.Encoding

	mu    sync.Mutex
	holds map[string]map[*hold]struct{}
	timer *time.Timer
}

// New returns the keys of a store.
func New(cfg Config) *Keys {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Random == nil {
		cfg.Random = rand.Reader
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Keys{cfg: cfg, holds: map[string]map[*hold]struct{}{}, enc: base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)}
}

// Request asks for a key.
type Request struct {
	// Tenant is whose key it is; empty: the operator's.
	Tenant string
	// Name is for people; it may be empty.
	Name string
	// Scopes are what it may do; none: run, read and answer.
	Scopes []Scope
	// Expires is when it ends; zero: never.
	Expires time.Time
}

// Key is a key as people see it: without its secret.
type Key struct {
	ID     string  `json:"key_id"`
	Tenant string  `json:"tenant"`
	Name   string  `json:"name,omitempty"`
	Scopes []Scope `json:"scopes"`
	// Status is active, expired or revoked.
	Status    string `json:"status"`
	CreatedAt string `json:"created_at"`
	ExpiresAt string `json:"expires_at,omitempty"`
	RevokedAt string `json:"revoked_at,omitempty"`
	// LastUsedAt is no more exact than an hour.
	LastUsedAt string `json:"last_used_at,omitempty"`
}

// May is whether a key has one of the scopes.
func (k *Key) May(scopes ...Scope) bool {
	return slices.ContainsFunc(scopes, func(s Scope) bool { return slices.Contains(k.Scopes, s) })
}

// Anybody is who everybody is while there are no keys.
func Anybody() *Key { return &Key{Tenant: Operator, Scopes: Scopes(), Status: "active"} }

// Create makes a key. The secret is the whole key, for the one who will show it;
// it is not stored and can not be had again.
func (k *Keys) Create(ctx context.Context, req Request) (key *Key, secret string, err error) {
	now := k.cfg.Now()
	row, err := k.row(&req, now)
	if err != nil {
		return nil, "", err
	}
	random := make([]byte, idBytes+secretBytes)
	if _, err := io.ReadFull(k.cfg.Random, random); err != nil {
		return nil, "", &fault.Error{Op: "keys.Create", Kind: fault.Internal, Err: err}
	}
	row.ID = k.enc.EncodeToString(random[:idBytes])
	secret = prefix + row.ID + "_" + k.enc.EncodeToString(random[idBytes:])
	row.Hash = hash(secret)
	if err := k.cfg.Store.Commit(context.WithoutCancel(ctx), &store.Tx{Tenant: row.Tenant, NewKeys: []*store.APIKey{row}}); err != nil {
		return nil, "", &fault.Error{Op: "keys.Create", Kind: fault.KindOf(err), Err: err, Hint: fault.HintOf(err)}
	}
	k.required.Store(true)
	return view(row, now), secret, nil
}

// row checks a request.
func (k *Keys) row(req *Request, now time.Time) (*store.APIKey, error) {
	bad := func(field, hint, format string, args ...any) error {
		return &fault.Error{Kind: fault.Invalid, Field: field, Err: fmt.Errorf(format, args...), Hint: hint}
	}
	row := &store.APIKey{Tenant: req.Tenant, Name: req.Name, Created: now.UnixMilli()}
	if row.Tenant == "" {
		row.Tenant = Operator
	}
	if err := CheckTenant(row.Tenant); err != nil {
		return nil, err
	}
	if len(row.Name) > maxName || strings.ContainsFunc(row.Name, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return nil, bad("name", "", "a name has at most %d bytes and no control characters", maxName)
	}
	scopes := req.Scopes
	if len(scopes) == 0 {
		scopes = []Scope{Run, Read, Answer}
	}
	for _, s := range scopes {
		if !slices.Contains(Scopes(), s) {
			return nil, bad("scopes", "Use run, read, answer and admin.", "there is no scope %q", s)
		}
		if !slices.Contains(row.Scopes, string(s)) {
			row.Scopes = append(row.Scopes, string(s))
		}
	}
	slices.Sort(row.Scopes)
	if !req.Expires.IsZero() {
		if row.Expires = req.Expires.UnixMilli(); row.Expires <= row.Created {
			return nil, bad("expires_at", "Give a time to come, or none.", "the key would have expired already")
		}
	}
	return row, nil
}

// CheckTenant is the error of a name that no tenant can have.
func CheckTenant(name string) error {
	ok := name != "" && len(name) <= maxTenant && !strings.HasPrefix(name, ".")
	for _, c := range []byte(name) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-", c) >= 0)
	}
	if ok {
		return nil
	}
	return &fault.Error{Kind: fault.Invalid, Field: "tenant", Err: errors.New("that is no name of a tenant"),
		Hint: fmt.Sprintf("Use 1 to %d letters, digits, dots, dashes and underscores; no dot first.", maxTenant)}
}

// List gives the keys of a tenant, oldest first, at most limit (0: 50) a page;
// empty: of every tenant. next is "" at the end.
func (k *Keys) List(ctx context.Context, tenant, cursor string, limit int) (keys []*Key, next string, err error) {
	rows, next, err := k.cfg.Store.APIKeys(ctx, tenant, store.KeyFilter{AllTenants: tenant == "", Cursor: cursor, Limit: limit})
	if err != nil {
		return nil, "", err
	}
	now := k.cfg.Now()
	for _, r := range rows {
		keys = append(keys, view(r, now))
	}
	return keys, next, nil
}

// Revoke ends a key of a tenant, for good; an empty tenant means that of the key.
// What the key has open ends. A key that is revoked already stays as it is.
func (k *Keys) Revoke(ctx context.Context, tenant, id string) (*Key, error) {
	row, err := k.cfg.Store.APIKey(ctx, id)
	if err == nil && tenant != "" && row.Tenant != tenant {
		err = store.ErrNotFound
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil, &fault.Error{Kind: fault.NotFound, Err: errors.New("there is no key " + Redact(id)), Hint: "agentd keys ls lists them. A key is named by its id, not by its secret."}
	}
	if err != nil {
		return nil, err
	}
	now := k.cfg.Now()
	if row.Revoked == 0 {
		row.Revoked = now.UnixMilli()
		change := store.KeyChange{ID: id, Revoked: row.Revoked}
		if err := k.cfg.Store.Commit(context.WithoutCancel(ctx), &store.Tx{Tenant: row.Tenant, Keys: []store.KeyChange{change}}); err != nil {
			return nil, err
		}
	}
	k.end(id, ended(row, now))
	return view(row, now), nil
}

// Required is whether callers need a key: whether there is, or was, one.
func (k *Keys) Required(ctx context.Context) (bool, error) {
	if k.required.Load() {
		return true, nil
	}
	// Whoever makes the first key here sets required. Another process on the
	// same store may, too: that is looked for, but not with every request.
	now := k.cfg.Now().UnixMilli()
	if last := k.asked.Load(); last != 0 && now-last < checkEvery.Milliseconds() && now >= last {
		return false, nil
	}
	rows, _, err := k.cfg.Store.APIKeys(ctx, "", store.KeyFilter{AllTenants: true, Limit: 1})
	if err != nil {
		return true, err
	}
	k.asked.Store(now)
	if len(rows) > 0 {
		k.required.Store(true)
	}
	return k.required.Load(), nil
}

func view(r *store.APIKey, now time.Time) *Key {
	key := &Key{ID: r.ID, Tenant: r.Tenant, Name: r.Name, Status: "active", CreatedAt: timestamp(r.Created),
		ExpiresAt: timestamp(r.Expires), RevokedAt: timestamp(r.Revoked), LastUsedAt: timestamp(r.LastUsed)}
	for _, s := range r.Scopes {
		key.Scopes = append(key.Scopes, Scope(s))
	}
	switch {
	case r.Revoked > 0:
		key.Status = "revoked"
	case r.Expires > 0 && r.Expires <= now.UnixMilli():
		key.Status = "expired"
	}
	return key
}

func timestamp(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}

func hash(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// Redact masks what may be the secret of a key in a text: everything of a word
// after the key's id.
func Redact(text string) string {
	for from := 0; ; {
		i := strings.Index(text[from:], prefix)
		if i < 0 {
			return text
		}
		from += i + len(prefix)
		word := text[from:]
		if end := strings.IndexFunc(word, notInKey); end >= 0 {
			word = word[:end]
		}
		if id, secret, ok := strings.Cut(word, "_"); ok {
			cut := from + len(id) + 1
			text = text[:cut] + "…" + text[cut+len(secret):]
			from = cut
		}
	}
}

func notInKey(c rune) bool {
	return c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
}
