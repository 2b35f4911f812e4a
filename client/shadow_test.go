package client_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"agentd"
)

// shadow is a second tenant of the server that a test talks to: whatever the test
// asks is first asked as that tenant, with the same ids, keys and bodies. Every test
// of this package so is one of two tenants at the same time: it must not notice
// the other, and the other must find nothing of it.
type shadow struct {
	t            *testing.T
	h            http.Handler
	mine, theirs string

	mu sync.Mutex
	// seen are the ids that each has been told of, other than in the answer
	// that there is nothing of that id.
	seen [2]map[string]bool
}

func newShadow(t *testing.T, rt *agentd.Runtime, h http.Handler) *shadow {
	t.Helper()
	s := &shadow{t: t, h: h, seen: [2]map[string]bool{{}, {}}}
	for tenant, secret := range map[string]*string{"default": &s.mine, "shadow": &s.theirs} {
		_, made, err := rt.CreateKey(t.Context(), agentd.KeyRequest{Tenant: tenant, Scopes: []agentd.Scope{"run", "read", "answer", "admin"}})
		if err != nil {
			t.Fatal(err)
		}
		*secret = made
	}
	t.Cleanup(func() {
		s.mu.Lock() // streams may not have ended yet
		defer s.mu.Unlock()
		for id := range s.seen[0] {
			if s.seen[1][id] {
				t.Errorf("two tenants were told of %s", id)
			}
		}
	})
	return s
}

var (
	idRE   = regexp.MustCompile(`(run|ses|sch)_[0-9a-z]{26}`)
	hasID  = regexp.MustCompile(`^/(runs|sessions|interrupts|artifacts|schedules)/[^/]+`)
	create = regexp.MustCompile(`^/(runs|sessions)$`)
)

func (s *shadow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.h.ServeHTTP(w, r)
		return
	}
	theirs := httptest.NewRecorder()
	other := r.Clone(r.Context())
	other.Body = io.NopCloser(bytes.NewReader(body))
	other.Header.Set("Authorization", "Bearer "+s.theirs)
	s.h.ServeHTTP(theirs, other)
	if theirs.Code != http.StatusNotFound {
		s.saw(1, theirs.Body.Bytes())
	}
	if r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer "+s.mine)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	mine := &tee{ResponseWriter: w}
	defer func() {
		if mine.code != http.StatusNotFound {
			s.saw(0, mine.body.Bytes())
		}
		session := create.MatchString(r.URL.Path) && bytes.Contains(body, []byte(`"session_id":"ses_`))
		if (hasID.MatchString(r.URL.Path) && r.URL.Path != "/sessions/import" || session) && mine.code/100 == 2 && theirs.Code != http.StatusNotFound {
			s.t.Errorf("%s %s: another tenant got %d %s", r.Method, r.URL.Path, theirs.Code, theirs.Body)
		}
	}()
	s.h.ServeHTTP(mine, r)
}

func (s *shadow) saw(who int, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range idRE.FindAllString(string(body), -1) {
		s.seen[who][id] = true
	}
}

// tee keeps what was answered.
type tee struct {
	http.ResponseWriter
	code int
	body bytes.Buffer
}

func (t *tee) WriteHeader(code int) { t.code = code; t.ResponseWriter.WriteHeader(code) }

func (t *tee) Write(b []byte) (int, error) {
	if t.code == 0 {
		t.code = http.StatusOK
	}
	t.body.Write(b)
	return t.ResponseWriter.Write(b)
}

// Unwrap gives http.ResponseController the connection.
func (t *tee) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// The shadow notices what it is there for.
func TestShadow(t *testing.T) {
	c, _, _ := serve(t)
	r := start(t, c, "ask")
	if _, _, err := c.Interrupts(timeout(t), "", "", 0); err != nil {
		t.Fatal(err)
	}
	open := &shadow{t: &testing.T{}, seen: [2]map[string]bool{{}, {}}, h: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, r.ID)
	})}
	open.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/runs/"+r.ID, strings.NewReader("")))
	if !open.t.Failed() || !open.seen[0][r.ID] || !open.seen[1][r.ID] {
		t.Error("a server without walls goes unnoticed")
	}
}
