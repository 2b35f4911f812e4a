package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"agentd/fault"
	"agentd/internal/keys"
	"agentd/internal/server/wire"
)

// scopes says which scopes open a route: one of them is enough. openapi.json has
// the same. Changing something needs to be listed here: what is not takes admin,
// so that a route that was forgotten is shut rather than open.
func (rt *route) scopes() []keys.Scope {
	switch name := rt.method + " " + rt.path; name {
	case "POST /runs/{id}/input", "POST /interrupts/{id}", "POST /runs/{id}/proposals/apply", "POST /runs/{id}/proposals/discard",
		"DELETE /sessions/{id}/rules", "DELETE /sessions/{id}/rules/{rule}":
		return []keys.Scope{keys.Answer}
	case "GET /interrupts", "GET /interrupts/{id}", "GET /runs/{id}/proposals", "GET /sessions/{id}/rules":
		return []keys.Scope{keys.Read, keys.Answer}
	case "POST /schedules", "PATCH /schedules/{id}", "DELETE /schedules/{id}": // they start runs when nobody is there any more
		return []keys.Scope{keys.Admin}
	case "POST /keys", "GET /keys", "DELETE /keys/{id}", "GET /metrics": // metrics are those of all tenants together
		return []keys.Scope{keys.Admin}
	case "GET /profiles", "GET /v1/models", "GET /v1/models/{id}":
		return []keys.Scope{keys.Read, keys.Run} // who may run them may see their names
	case "POST /runs", "POST /runs/{id}/cancel", "POST /runs/{id}/steer", "POST /runs/{id}/follow_up",
		"POST /schedules/{id}/trigger", "POST /memory", "POST /memory/trust", "PATCH /memory/{id}", "DELETE /memory/{id}", "POST /sessions", "DELETE /sessions/{id}",
		"POST /sessions/{id}/compact", "POST /sessions/{id}/entries", "POST /sessions/{id}/navigate", "POST /sessions/{id}/fork", "POST /sessions/import", "POST /v1/chat/completions":
		return []keys.Scope{keys.Run}
	}
	if rt.method == http.MethodGet {
		return []keys.Scope{keys.Read}
	}
	return []keys.Scope{keys.Admin}
}

// authorize says who a request is of and whether it may use the route. On a server
// without keys everybody is the operator's tenant and may do everything.
func (s *Server) authorize(r *http.Request, rt *route) (*keys.Key, error) {
	who := keys.Anybody()
	if rt.open {
		return who, nil
	}
	required, err := s.keysRequired(r.Context())
	if err != nil || !required {
		return who, err
	}
	if who, err = s.opts.Keys.Verify(r.Context(), bearer(r.Header)); err != nil {
		return nil, err
	}
	if need := rt.scopes(); !who.May(need...) {
		// For the log: whose key it was.
		info := wire.RequestOf(r.Context())
		info.Tenant, info.Key = who.Tenant, who.ID
		return nil, &fault.Error{Kind: fault.Forbidden, Err: fmt.Errorf("the API key %s lacks the scope for this: it needs %s and has %s", who.ID, words(need, " or "), words(who.Scopes, ", ")),
			Hint: "An admin makes a key with other scopes: agentd keys create --scope …"}
	}
	return who, nil
}

func (s *Server) keysRequired(ctx context.Context) (bool, error) {
	if s.opts.Keys == nil {
		return false, nil
	}
	return s.opts.Keys.Required(ctx)
}

// bearer is the key that a request shows; "" for none.
func bearer(h http.Header) string {
	scheme, key, _ := strings.Cut(strings.TrimSpace(h.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

func words(scopes []keys.Scope, between string) string {
	texts := make([]string, len(scopes))
	for i, s := range scopes {
		texts[i] = string(s)
	}
	return strings.Join(texts, between)
}

// by is who answered, for whoever looks at the answer later.
func by(r *http.Request) string {
	if info := wire.RequestOf(r.Context()); info.Key != "" {
		return "key " + info.Key
	}
	return tenant(r)
}
