package sim

import (
	"fmt"
	"net/http"
	"strings"
)

// google serves the paths of the Gemini API and reports whether the request is one of its.
func (s *Server) google(w http.ResponseWriter, r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.URL.Path, "/v1beta/")
	if !ok {
		return false
	}
	p := gemini{}
	collection, name, _ := strings.Cut(rest, "/")
	id, method, _ := strings.Cut(name, ":")
	switch {
	case collection != "models" && collection != "tunedModels":
		s.fail(w, r, p, p.noRoute(r.Method, r.URL.Path))
	case r.Method == http.MethodPost && (method == "generateContent" || method == "streamGenerateContent"):
		s.generate(w, r, p)
	case r.Method == http.MethodPost && method == "countTokens":
		s.countContents(w, r)
	case r.Method == http.MethodGet && name == "":
		s.write(w, http.StatusOK, p.models(nil, s.models()))
	case r.Method == http.MethodGet && method == "":
		s.oneModel(w, p, id)
	default:
		s.fail(w, r, p, p.noRoute(r.Method, r.URL.Path))
	}
	return true
}

// countContents answers :countTokens, whose request holds contents, or a whole one.
func (s *Server) countContents(w http.ResponseWriter, r *http.Request) {
	p := gemini{}
	body, err := s.read(w, r)
	if err != nil {
		s.unreadable(w, r, p, err)
		return
	}
	req, bad := p.parse(r, body, true)
	switch {
	case bad != nil:
		s.fail(w, r, p, bad)
	case s.player(req.Model) == nil:
		s.fail(w, r, p, p.noModel(req.Model))
	default:
		s.write(w, http.StatusOK, fmt.Appendf(nil, `{"totalTokens": %d}`, req.PromptTokens))
	}
}

// local serves the paths of Ollama and reports whether the request is one of its.
func (s *Server) local(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		return false
	}
	p := ollama{}
	switch r.Method + " " + r.URL.Path {
	case "POST /api/chat":
		s.generate(w, r, p)
	case "POST /api/show":
		s.show(w, r)
	case "GET /api/ps":
		s.write(w, http.StatusOK, p.running(s.models()))
	case "GET /api/tags":
		s.write(w, http.StatusOK, p.models(nil, s.models()))
	case "GET /api/version":
		s.write(w, http.StatusOK, []byte(`{"version":"0.17.4"}`))
	default:
		s.fail(w, r, p, p.noRoute(r.Method, r.URL.Path))
	}
	return true
}
