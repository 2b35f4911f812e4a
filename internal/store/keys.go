package store

import "context"

// APIKey is what a caller of the API shows. The store has a hash of its secret,
// never the secret.
type APIKey struct {
	// ID is the public part of the key. It is unique in the whole store: it is
	// what a request is looked up by, before anybody knows its tenant.
	ID     string
	Tenant string
	// Name is for people.
	Name string
	// Hash is the SHA-256 of the whole key.
	Hash []byte
	// Scopes are what it may do, sorted.
	Scopes  []string
	Created int64
	// Expires, Revoked and LastUsed are 0 for never.
	Expires, Revoked, LastUsed int64
}

// KeyChange updates a key. Zero changes nothing: a key is never un-revoked, and
// LastUsed never falls.
type KeyChange struct {
	ID                string
	Revoked, LastUsed int64
}

// KeyFilter selects keys.
type KeyFilter struct {
	// AllTenants selects those of every tenant; the tenant of the call is ignored.
	AllTenants bool
	Limit      int // 0: 50
	Cursor     string
}

// KeyReader reads API keys.
type KeyReader interface {
	// APIKey gives the key with an id, whosever it is: who asks for it does
	// not know the tenant yet, the key tells.
	APIKey(ctx context.Context, id string) (*APIKey, error)
	// APIKeys lists keys, revoked and expired ones too, oldest first. The
	// cursor is "" at the end.
	APIKeys(ctx context.Context, tenant string, f KeyFilter) (keys []*APIKey, cursor string, err error)
}
