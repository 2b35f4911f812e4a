package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"agentd/fault"
	"agentd/internal/server/wire"
)

// handler answers a request, or says why not.
type handler func(w http.ResponseWriter, r *http.Request) error

// route is one operation of the API. openapi.json has the same ones.
type route struct {
	method, path string
	serve        handler
	// open routes need no authentication.
	open bool
	// stream routes have no HEAD.
	stream bool
	// long routes may last, and must not last longer than the caller's key.
	long bool
}

func (s *Server) routes() []route {
	return []route{
		{method: "POST", path: "/runs", serve: s.startRun},
		{method: "GET", path: "/runs", serve: s.listRuns},
		{method: "GET", path: "/runs/{id}", serve: s.getRun},
		{method: "GET", path: "/runs/{id}/events", serve: s.events, stream: true},
		{method: "GET", path: "/runs/{id}/trace", serve: s.trace},
		{method: "POST", path: "/runs/{id}/cancel", serve: s.cancelRun},
		{method: "POST", path: "/runs/{id}/steer", serve: s.steer},
		{method: "POST", path: "/runs/{id}/follow_up", serve: s.followUp},
		{method: "POST", path: "/runs/{id}/input", serve: s.answerRun},
		{method: "GET", path: "/runs/{id}/proposals", serve: s.listProposals},
		{method: "POST", path: "/runs/{id}/proposals/apply", serve: s.applyProposals, long: true},
		{method: "POST", path: "/runs/{id}/proposals/discard", serve: s.discardProposals},
		{method: "GET", path: "/interrupts", serve: s.listInterrupts},
		{method: "GET", path: "/interrupts/{id}", serve: s.getInterrupt},
		{method: "POST", path: "/interrupts/{id}", serve: s.answerInterrupt},
		{method: "POST", path: "/sessions", serve: s.createSession},
		{method: "GET", path: "/sessions", serve: s.listSessions},
		{method: "GET", path: "/sessions/{id}", serve: s.getSession},
		{method: "DELETE", path: "/sessions/{id}", serve: s.deleteSession},
		{method: "GET", path: "/sessions/{id}/entries", serve: s.listEntries},
		{method: "POST", path: "/sessions/{id}/compact", serve: s.compactSession},
		{method: "POST", path: "/sessions/{id}/entries", serve: s.appendEntry},
		{method: "GET", path: "/sessions/{id}/tree", serve: s.getTree},
		{method: "POST", path: "/sessions/{id}/navigate", serve: s.navigate},
		{method: "POST", path: "/sessions/{id}/fork", serve: s.fork},
		{method: "GET", path: "/sessions/{id}/export", serve: s.exportSession, long: true},
		{method: "POST", path: "/sessions/import", serve: s.importSession, long: true},
		{method: "GET", path: "/sessions/{id}/artifacts", serve: s.listArtifacts},
		{method: "GET", path: "/sessions/{id}/cache", serve: s.sessionCache},
		{method: "GET", path: "/sessions/{id}/rules", serve: s.listRules},
		{method: "DELETE", path: "/sessions/{id}/rules", serve: s.revokeRules},
		{method: "DELETE", path: "/sessions/{id}/rules/{rule}", serve: s.revokeRules},
		{method: "GET", path: "/profiles", serve: s.listProfiles},
		{method: "GET", path: "/artifacts/{id}", serve: s.getArtifact},
		{method: "GET", path: "/usage", serve: s.getUsage},
		{method: "GET", path: "/budgets", serve: s.listBudgets},
		{method: "POST", path: "/schedules", serve: s.createSchedule},
		{method: "GET", path: "/schedules", serve: s.listSchedules},
		{method: "GET", path: "/schedules/{id}", serve: s.getSchedule},
		{method: "PATCH", path: "/schedules/{id}", serve: s.updateSchedule},
		{method: "DELETE", path: "/schedules/{id}", serve: s.deleteSchedule},
		{method: "POST", path: "/schedules/{id}/trigger", serve: s.triggerSchedule},
		{method: "POST", path: "/memory", serve: s.addMemory},
		{method: "GET", path: "/memory", serve: s.listMemory},
		{method: "POST", path: "/memory/trust", serve: s.trustMemory},
		{method: "GET", path: "/memory/{id}", serve: s.getMemory},
		{method: "PATCH", path: "/memory/{id}", serve: s.editMemory},
		{method: "DELETE", path: "/memory/{id}", serve: s.removeMemory},
		{method: "GET", path: "/skills", serve: s.listSkills},
		{method: "GET", path: "/skills/{name}", serve: s.getSkill},
		{method: "POST", path: "/keys", serve: s.createKey},
		{method: "GET", path: "/keys", serve: s.listKeys},
		{method: "DELETE", path: "/keys/{id}", serve: s.revokeKey},
		{method: "GET", path: "/healthz", serve: s.health, open: true},
		{method: "GET", path: "/readyz", serve: s.ready, open: true},
		{method: "GET", path: "/metrics", serve: s.metrics},
		{method: "GET", path: "/openapi.json", serve: s.document, open: true},
		{method: "GET", path: "/v1/models", serve: s.chat.Models},
		{method: "GET", path: "/v1/models/{id}", serve: s.chat.Model},
		{method: "POST", path: "/v1/chat/completions", serve: s.chat.Completions, stream: true},
	}
}

// dispatch finds the route of a request.
func (s *Server) dispatch(routes []route) http.Handler {
	mux := http.NewServeMux()
	byPath := map[string]map[string]route{}
	for _, rt := range routes {
		if s.opts.Paths != nil && !slices.Contains(s.opts.Paths, rt.path) {
			continue
		}
		if byPath[rt.path] == nil {
			byPath[rt.path] = map[string]route{}
		}
		byPath[rt.path][rt.method] = rt
	}
	for path, methods := range byPath {
		if get, ok := methods["GET"]; ok && !get.stream {
			methods["HEAD"] = get
		}
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, methods) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		hint := "GET /openapi.json lists what there is."
		if p := r.URL.Path; len(p) > 1 && strings.HasSuffix(p, "/") {
			hint = "Paths do not end with a slash."
		}
		s.fail(w, r, &fault.Error{Kind: fault.NotFound, Err: errors.New("no such path"), Hint: hint})
	})
	return mux
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, methods map[string]route) {
	rt, ok := methods[r.Method]
	if !ok {
		var allow []string
		for m := range methods {
			allow = append(allow, m)
		}
		slices.Sort(allow)
		list := strings.Join(allow, ", ")
		w.Header().Set("Allow", list)
		s.fail(w, r, &wire.StatusError{Status: http.StatusMethodNotAllowed, Err: &fault.Error{Kind: fault.Invalid,
			Err: fmt.Errorf("%s is not possible here", r.Method), Hint: "Use " + list + "."}})
		return
	}
	who, err := s.authorize(r, &rt)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	info := wire.RequestOf(r.Context())
	info.Tenant, info.Key = who.Tenant, who.ID
	if (rt.stream || rt.long) && who.ID != "" {
		held, release := s.opts.Keys.Hold(r.Context(), who.ID)
		defer release()
		r = r.WithContext(held)
	}
	if err := rt.serve(w, r); err != nil {
		s.fail(w, r, err)
	}
}
