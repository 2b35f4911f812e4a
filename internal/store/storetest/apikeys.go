package storetest

import (
	"bytes"
	"crypto/sha256"
	"strings"

	"agentd/fault"
	"agentd/internal/store"
)

func apiKey(id, tenant string) *store.APIKey {
	sum := sha256.Sum256([]byte(id))
	return &store.APIKey{ID: id, Tenant: tenant, Hash: sum[:], Scopes: []string{"read"}, Created: 1000}
}

func keyIDs(ks []*store.APIKey) string {
	return strings.Join(ids(ks, func(k *store.APIKey) string { return k.Tenant + "/" + k.ID }), " ")
}

func testAPIKeys(f *fixture) {
	const other = "tenant-b"
	ctx := f.Context()
	full := apiKey("k1", tenant)
	full.Name, full.Scopes, full.Expires, full.Revoked, full.LastUsed = "ci", []string{"read", "run"}, 4000, 3000, 2000
	filled(f, full)
	f.commit(&store.Tx{NewKeys: []*store.APIKey{full, apiKey("k2", tenant)}})
	f.commit(&store.Tx{Tenant: other, NewKeys: []*store.APIKey{apiKey("k3", other)}})
	f.again()
	equal(f, "key", ok[*store.APIKey](f)(f.store.APIKey(ctx, "k1")), full)
	equal(f, "key of the other", ok[*store.APIKey](f)(f.store.APIKey(ctx, "k3")), apiKey("k3", other))
	if _, err := f.store.APIKey(ctx, "no"); fault.KindOf(err) != fault.NotFound {
		f.Fatalf("an unknown key: %v", err)
	}

	list := func(tenant string, kf store.KeyFilter, want string, more bool) string {
		f.Helper()
		ks, cursor, err := f.store.APIKeys(ctx, tenant, kf)
		if err != nil || keyIDs(ks) != want || (cursor != "") != more {
			f.Fatalf("%q %+v: %q, cursor %q, %v; want %q", tenant, kf, keyIDs(ks), cursor, err, want)
		}
		return cursor
	}
	list(tenant, store.KeyFilter{}, "tenant-a/k1 tenant-a/k2", false)
	list(other, store.KeyFilter{}, "tenant-b/k3", false)
	list("nobody", store.KeyFilter{}, "", false)
	cursor := list("", store.KeyFilter{AllTenants: true, Limit: 2}, "tenant-a/k1 tenant-a/k2", true)
	list("", store.KeyFilter{AllTenants: true, Limit: 2, Cursor: cursor}, "tenant-b/k3", false)
	// A cursor of another tenant's list shows nothing of that tenant.
	cursor = list(tenant, store.KeyFilter{Limit: 1}, "tenant-a/k1", true)
	list(other, store.KeyFilter{Cursor: cursor}, "tenant-b/k3", false)
	if _, _, err := f.store.APIKeys(ctx, tenant, store.KeyFilter{Cursor: "?"}); fault.KindOf(err) != fault.Invalid {
		f.Fatalf("a cursor that is none: %v", err)
	}

	// An id is taken whosever it is; a key is changed by its tenant alone.
	f.refused(&store.Tx{Tenant: other, NewKeys: []*store.APIKey{apiKey("k1", other)}}, store.ErrConflict)
	f.refused(&store.Tx{Tenant: other, Keys: []store.KeyChange{{ID: "k2", Revoked: 5000}}}, store.ErrNotFound)
	f.refused(&store.Tx{Keys: []store.KeyChange{{ID: "no", Revoked: 5000}}}, store.ErrNotFound)
	// Revoked once, used never earlier than before.
	f.commit(&store.Tx{Keys: []store.KeyChange{{ID: "k2", LastUsed: 7000}}})
	f.commit(&store.Tx{Keys: []store.KeyChange{{ID: "k2", Revoked: 8000, LastUsed: 6000}}})
	f.commit(&store.Tx{Keys: []store.KeyChange{{ID: "k2", Revoked: 9000}, {ID: "k1"}}})
	want := apiKey("k2", tenant)
	want.Revoked, want.LastUsed = 8000, 7000
	equal(f, "changed", ok[*store.APIKey](f)(f.store.APIKey(ctx, "k2")), want)
	equal(f, "unchanged", ok[*store.APIKey](f)(f.store.APIKey(ctx, "k1")), full)

	for name, broken := range map[string]func(k *store.APIKey){
		"no id":          func(k *store.APIKey) { k.ID = "" },
		"no hash":        func(k *store.APIKey) { k.Hash = nil },
		"the key itself": func(k *store.APIKey) { k.Hash = bytes.Repeat([]byte("x"), 60) },
		"no scope":       func(k *store.APIKey) { k.Scopes = nil },
		"another tenant": func(k *store.APIKey) { k.Tenant = other },
		"two scopes":     func(k *store.APIKey) { k.Scopes = []string{"read run"} },
	} {
		k := apiKey("k9", tenant)
		broken(k)
		if err := f.commitIn(ctx, &store.Tx{NewKeys: []*store.APIKey{k}}); fault.KindOf(err) != fault.Invalid {
			f.Errorf("%s: %v", name, err)
		}
	}
}
