package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentd/fault"
	"agentd/internal/server/wire"
)

// Hints name keys that agentd.yaml has.
func TestHintsNameKeysThatExist(t *testing.T) {
	s := &Server{}
	r := httptest.NewRequest("GET", "http://elsewhere.example/", http.NoBody)
	post := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", 100)))
	post.Header.Set("Content-Type", "application/json")
	_, large := wire.ReadBody(httptest.NewRecorder(), post.WithContext(context.Background()), wire.Limits{MaxBody: 10})
	for _, tt := range []struct {
		err       error
		has, hasn string
	}{
		{s.checkHost(r), "hosts in agentd.yaml", "server's"},
		{s.checkOrigin(r, "http://page.example"), "cors.origins", "server's"},
		{large, "limits.max_body_bytes", "server's"},
	} {
		var f *fault.Error
		if !errors.As(tt.err, &f) || !strings.Contains(f.Hint, tt.has) || strings.Contains(strings.ReplaceAll(f.Hint, "localhost", ""), tt.hasn) {
			t.Errorf("%v: the hint is %q", tt.err, fault.HintOf(tt.err))
		}
	}
}
