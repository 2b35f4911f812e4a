package keys

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/internal/store/sqlite"
)

func open(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(sqlite.Memory, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func create(t *testing.T, k *Keys, req Request) (*Key, string) {
	t.Helper()
	key, secret, err := k.Create(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return key, secret
}

func refused(t *testing.T, k *Keys, secret, why string) {
	t.Helper()
	key, err := k.Verify(t.Context(), secret)
	var f *fault.Error
	if key != nil || !errors.As(err, &f) || f.Kind != fault.Unauthorized || !strings.Contains(err.Error(), why) || f.Hint == "" {
		t.Errorf("%s: %+v, %v", why, key, err)
	}
	if len(secret) > 40 && strings.Contains(fmt.Sprintf("%v %+v %#v %s", err, err, err, fault.HintOf(err)), secret[30:]) {
		t.Errorf("the error tells the secret: %v", err)
	}
}

func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := open(t)
		k := New(Config{Store: st})
		if need, err := k.Required(t.Context()); err != nil || need {
			t.Errorf("a key is required before there is one: %v", err)
		}
		key, secret := create(t, k, Request{Tenant: "acme", Name: "ci", Scopes: []Scope{Run, Read, Run}, Expires: time.Now().Add(3 * time.Hour)})
		if need, err := k.Required(t.Context()); err != nil || !need {
			t.Errorf("no key is required: %v", err)
		}
		if key.Tenant != "acme" || key.Name != "ci" || !slices.Equal(key.Scopes, []Scope{Read, Run}) || key.Status != "active" || key.LastUsedAt != "" {
			t.Errorf("%+v", key)
		}
		if !strings.HasPrefix(secret, "agentd_"+key.ID+"_") || len(secret) < 70 || strings.ToLower(secret) != secret {
			t.Errorf("%d characters", len(secret))
		}
		row, err := st.APIKey(t.Context(), key.ID)
		if err != nil || bytes.Contains(row.Hash, []byte(secret[30:])) || len(row.Hash) != 32 {
			t.Errorf("%+v, %v", row, err)
		}
		got, err := k.Verify(t.Context(), secret)
		if err != nil || got.ID != key.ID || got.Tenant != "acme" || !got.May(Run) || !got.May(Admin, Read) || got.May(Answer, Admin) || got.May() {
			t.Errorf("%+v, %v", got, err)
		}
		refused(t, k, "", "is needed")
		for _, wrong := range []string{"x", "agentd_", "agentd__", "agentd_" + key.ID, "agentd_" + key.ID + "_", secret[:len(secret)-1], secret + "a", strings.ToUpper(secret),
			" " + secret, strings.Replace(secret, key.ID, strings.Repeat("a", 16), 1), strings.Repeat("a", 100_000), "agentd_" + strings.Repeat("b", 100_000) + "_x"} {
			refused(t, k, wrong, "is not known")
		}
		// Another process on the same store knows the key, and that one is needed.
		other := New(Config{Store: st})
		if need, err := other.Required(t.Context()); err != nil || !need {
			t.Errorf("elsewhere: %v", err)
		}
		if _, err := other.Verify(t.Context(), secret); err != nil {
			t.Error(err)
		}
		// It is noted to the hour when it was used.
		time.Sleep(90 * time.Minute)
		if _, err := k.Verify(t.Context(), secret); err != nil {
			t.Error(err)
		}
		all, _, err := k.List(t.Context(), "acme", "", 0)
		if want := time.Now().UTC().Truncate(time.Hour).Format(time.RFC3339); err != nil || len(all) != 1 || all[0].LastUsedAt != want {
			t.Errorf("%+v, %v; want %s", all, err, want)
		}
		time.Sleep(90 * time.Minute)
		refused(t, k, secret, "expired at "+all[0].ExpiresAt)
		if all, _, _ = k.List(t.Context(), "acme", "", 0); all[0].Status != "expired" {
			t.Errorf("%+v", all[0])
		}
	})
}

func TestRequestsThatAreRefused(t *testing.T) {
	k := New(Config{Store: open(t)})
	for field, req := range map[string]Request{
		"tenant": {Tenant: "a b"}, "tenant ": {Tenant: "../x"}, "tenant  ": {Tenant: strings.Repeat("a", 65)}, "tenant   ": {Tenant: "ä"},
		"name": {Name: strings.Repeat("a", 201)}, "name ": {Name: "a\nb"}, "scopes": {Scopes: []Scope{"root"}}, "scopes ": {Scopes: []Scope{"run", ""}},
		"expires_at": {Expires: time.Now().Add(-time.Second)},
	} {
		_, secret, err := k.Create(t.Context(), req)
		var f *fault.Error
		if secret != "" || !errors.As(err, &f) || f.Kind != fault.Invalid || f.Field != strings.TrimSpace(field) {
			t.Errorf("%+v: %v", req, err)
		}
	}
	if need, err := k.Required(t.Context()); need || err != nil {
		t.Errorf("a key that was refused is required: %v", err)
	}
	key, _ := create(t, k, Request{})
	if key.Tenant != Operator || !slices.Equal(key.Scopes, []Scope{Answer, Read, Run}) || key.ExpiresAt != "" {
		t.Errorf("%+v", key)
	}
}

// What a key holds open ends with it: at once when it is revoked here, within a
// second when it is revoked elsewhere or expires.
func TestHoldsEndWithTheirKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := open(t)
		k, elsewhere := New(Config{Store: st}), New(Config{Store: st})
		here, _ := create(t, k, Request{})
		there, _ := create(t, k, Request{})
		late, _ := create(t, k, Request{Expires: time.Now().Add(90 * time.Second)})
		stays, _ := create(t, k, Request{})
		hold := func(id string) context.Context {
			ctx, release := k.Hold(t.Context(), id)
			t.Cleanup(release)
			t.Cleanup(release)
			return ctx
		}
		a, b, c, d, e, nobody := hold(here.ID), hold(here.ID), hold(there.ID), hold(late.ID), hold(stays.ID), hold("")
		time.Sleep(time.Minute)
		for i, ctx := range []context.Context{a, b, c, d, e, nobody} {
			if ctx.Err() != nil {
				t.Errorf("hold %d: %v", i, context.Cause(ctx))
			}
		}
		if _, err := k.Revoke(t.Context(), "", here.ID); err != nil {
			t.Fatal(err)
		}
		ended := func(ctx context.Context, why string) {
			t.Helper()
			if cause := context.Cause(ctx); !errors.Is(cause, ErrEnded) || fault.KindOf(cause) != fault.Unauthorized || !strings.Contains(cause.Error(), why) {
				t.Errorf("%v, want %s", cause, why)
			}
		}
		ended(a, "was revoked")
		ended(b, "was revoked")
		if _, err := elsewhere.Revoke(t.Context(), "", there.ID); err != nil {
			t.Fatal(err)
		}
		from := time.Now()
		<-c.Done()
		if took := time.Since(from); took > time.Second {
			t.Errorf("it took %s", took)
		}
		ended(c, "was revoked")
		<-d.Done()
		if took := time.Since(from); took > 31*time.Second {
			t.Errorf("it took %s", took)
		}
		ended(d, "expired at")
		if e.Err() != nil || nobody.Err() != nil {
			t.Error("a hold ended without reason")
		}
		// It was revoked between the look at it and the hold.
		ctx, release := k.Hold(t.Context(), here.ID)
		ended(ctx, "was revoked")
		release()
	})
	// synctest would have said so if a timer or a goroutine were left.
}

func TestRevoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := New(Config{Store: open(t)})
		key, secret := create(t, k, Request{Tenant: "acme"})
		for _, tenant := range []string{"globex", Operator} {
			if _, err := k.Revoke(t.Context(), tenant, key.ID); fault.KindOf(err) != fault.NotFound {
				t.Errorf("%s: %v", tenant, err)
			}
		}
		if _, err := k.Verify(t.Context(), secret); err != nil {
			t.Error(err)
		}
		first, err := k.Revoke(t.Context(), "acme", key.ID)
		if err != nil || first.Status != "revoked" || first.RevokedAt == "" {
			t.Errorf("%+v, %v", first, err)
		}
		refused(t, k, secret, "was revoked at "+first.RevokedAt)
		time.Sleep(time.Minute)
		if again, err := k.Revoke(t.Context(), "", key.ID); err != nil || again.RevokedAt != first.RevokedAt {
			t.Errorf("%+v, %v", again, err)
		}
		if need, err := New(Config{Store: k.cfg.Store.(store.Store)}).Required(t.Context()); err != nil || !need {
			t.Errorf("after all keys were revoked the door is open: %v", err)
		}
		// Somebody may name a key by its secret.
		if _, err := k.Revoke(t.Context(), "", secret); fault.KindOf(err) != fault.NotFound || strings.Contains(err.Error(), secret[30:]) {
			t.Errorf("%v", err)
		}
	})
}

// broken is a store that fails.
type broken struct{ Store }

func (broken) Commit(context.Context, *store.Tx) error { return errors.New("no disk") }

type unreadable struct{ Store }

func (unreadable) APIKey(context.Context, string) (*store.APIKey, error) {
	return nil, errors.New("no disk")
}

func (unreadable) APIKeys(context.Context, string, store.KeyFilter) ([]*store.APIKey, string, error) {
	return nil, "", errors.New("no disk")
}

// A store that can not be asked opens no door; one that can not note when a key
// was used keeps none shut.
func TestFailingStores(t *testing.T) {
	st := open(t)
	k := New(Config{Store: st})
	key, secret := create(t, k, Request{})
	var log bytes.Buffer
	k = New(Config{Store: broken{st}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if _, err := k.Verify(t.Context(), secret); err != nil {
		t.Error(err)
	}
	if s := log.String(); !strings.Contains(s, key.ID) || strings.Contains(s, secret[30:]) {
		t.Errorf("the log: %s", s)
	}
	if _, _, err := k.Create(t.Context(), Request{}); err == nil {
		t.Error("a key that is stored nowhere")
	}
	if _, err := k.Revoke(t.Context(), "", key.ID); err == nil {
		t.Error("it says that a key was revoked, and it was not")
	}
	k = New(Config{Store: unreadable{st}})
	if need, err := k.Required(t.Context()); !need || err == nil {
		t.Errorf("%v %v", need, err)
	}
	if _, err := k.Verify(t.Context(), secret); err == nil || fault.KindOf(err) == fault.Unauthorized {
		t.Errorf("%v", err)
	}
	ctx, release := k.Hold(t.Context(), key.ID)
	defer release()
	if ctx.Err() != nil {
		t.Error("a store that does not answer revokes nothing")
	}
}

func TestRedact(t *testing.T) {
	_, secret := create(t, New(Config{Store: open(t)}), Request{})
	id := secret[:len("agentd_")+16]
	for in, want := range map[string]string{"": "", "/runs/run_1": "/runs/run_1", "agentd_": "agentd_", "/keys/" + secret: "/keys/" + id + "_…",
		"a " + secret + ", " + secret + "/x": "a " + id + "_…, " + id + "_…/x", "agentd_agentd_x": "agentd_agentd_…", "agentd_x": "agentd_x"} {
		if got := Redact(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func FuzzVerify(f *testing.F) {
	for _, s := range []string{"", "agentd_", "agentd_a_b", "agentd__", "Bearer x", "agentd_\x00_\xff"} {
		f.Add(s)
	}
	st, err := sqlite.Open(sqlite.Memory, nil)
	if err != nil {
		f.Fatal(err)
	}
	defer st.Close()
	k := New(Config{Store: st})
	if _, _, err := k.Create(context.Background(), Request{}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, secret string) {
		if key, err := k.Verify(t.Context(), secret); key != nil || fault.KindOf(err) != fault.Unauthorized {
			t.Errorf("%+v, %v", key, err)
		}
		_ = Redact(secret)
	})
}
