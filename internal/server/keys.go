package server

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"agentd/fault"
	"agentd/internal/keys"
	"agentd/internal/server/wire"
)

// createKey makes an API key. Its secret is in this answer and nowhere else.
func (s *Server) createKey(w http.ResponseWriter, r *http.Request) error {
	ring, err := s.keyring()
	if err != nil {
		return err
	}
	if r.Header.Get("Idempotency-Key") != "" {
		return &fault.Error{Kind: fault.Invalid, Field: "Idempotency-Key", Err: errors.New("making a key can not be repeated: its secret is shown once and not stored"),
			Hint: "Leave the header out. If the answer was lost, revoke the key and make another."}
	}
	var b struct {
		Tenant    string       `json:"tenant"`
		Name      string       `json:"name"`
		Scopes    []keys.Scope `json:"scopes"`
		ExpiresAt string       `json:"expires_at"`
	}
	if err := s.readOptional(w, r, &b); err != nil {
		return err
	}
	req := keys.Request{Tenant: b.Tenant, Name: b.Name, Scopes: b.Scopes}
	if req.Tenant == "" {
		req.Tenant = tenant(r)
	}
	if err := mayManage(r, req.Tenant); err != nil {
		return err
	}
	if b.ExpiresAt != "" {
		if req.Expires, err = time.Parse(time.RFC3339, b.ExpiresAt); err != nil {
			return &fault.Error{Kind: fault.Invalid, Field: "expires_at", Err: errors.New("is not a time"), Hint: "Write it like 2027-01-31T00:00:00Z."}
		}
	}
	key, secret, err := ring.Create(r.Context(), req)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/keys/"+url.PathEscape(key.ID))
	w.Header().Set("Cache-Control", "no-store")
	wire.WriteJSON(w, http.StatusCreated, struct {
		*keys.Key
		Secret string `json:"key"`
	}{key, secret})
	return nil
}

func (s *Server) listKeys(w http.ResponseWriter, r *http.Request) error {
	ring, err := s.keyring()
	if err != nil {
		return err
	}
	q, err := query(r, "tenant", "limit", "cursor")
	if err != nil {
		return err
	}
	limit, err := limitOf(q)
	if err != nil {
		return err
	}
	of := q.Get("tenant")
	switch {
	case of != "":
		err = mayManage(r, of)
	case tenant(r) != keys.Operator:
		of = tenant(r)
	}
	if err != nil {
		return err
	}
	all, cursor, err := ring.List(r.Context(), of, q.Get("cursor"), limit)
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, struct {
		Keys   []*keys.Key `json:"keys"`
		Cursor string      `json:"cursor,omitempty"`
	}{list(all), cursor})
	return nil
}

// revokeKey ends a key. The row stays, so that it can be seen that it was there.
func (s *Server) revokeKey(w http.ResponseWriter, r *http.Request) error {
	ring, err := s.keyring()
	if err != nil {
		return err
	}
	of := tenant(r)
	if of == keys.Operator {
		of = ""
	}
	key, err := ring.Revoke(r.Context(), of, r.PathValue("id"))
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, key)
	return nil
}

func (s *Server) keyring() (*keys.Keys, error) {
	if s.opts.Keys == nil {
		return nil, fault.New(fault.Unsupported, "this server has no API keys")
	}
	return s.opts.Keys, nil
}

// mayManage is whether the caller may make and list keys of a tenant: its own, or
// any for the operator.
func mayManage(r *http.Request, of string) error {
	if of == tenant(r) || tenant(r) == keys.Operator {
		return nil
	}
	return &fault.Error{Kind: fault.Forbidden, Field: "tenant", Err: errors.New("only the operator's admin keys manage the keys of other tenants"),
		Hint: "Leave the tenant out, or use an admin key of the tenant " + keys.Operator + "."}
}
