package client_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"agentd/client"
	"agentd/fault"
)

// A certificate that nobody here trusts is not a server that is missing.
func TestUntrustedCertificateIsToldApart(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	c, err := client.New(srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Run(t.Context(), "run_x")
	if hint := fault.HintOf(err); !strings.Contains(hint, "SSL_CERT_FILE") {
		t.Errorf("%v: %q", err, hint)
	}
}
