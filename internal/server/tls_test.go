package server_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentd/event"
	"agentd/internal/server"
)

// certify writes a certificate of its own for 127.0.0.1 and gives it for clients.
func certify(t *testing.T, dir, name string, stamp time.Time) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true}, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, stamp, stamp); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return pool
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	pool := certify(t, dir, "first", time.Unix(1_700_000_000, 0))
	e := newFake()
	s := server.New(e, &server.Options{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")})
	if err := s.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(s.URL(), "https://127.0.0.1:") {
		t.Errorf("%s", s.URL())
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, "") }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	connect := func(pool *x509.CertPool) *http.Client {
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
		t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{Transport: tr, Timeout: 30 * time.Second}
	}
	c := connect(pool)
	resp, err := c.Post(s.URL()+"/runs", "application/json", strings.NewReader(`{"profile":"manual","input":"x"}`))
	if err != nil || resp.StatusCode != 201 || resp.ProtoMajor != 2 {
		t.Fatalf("%+v, %v", resp, err)
	}
	_ = resp.Body.Close()
	// A stream over HTTP/2, as it is written.
	resp, err = c.Get(s.URL() + "/runs/r1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	for range 2 {
		if _, err := readFrame(r); err != nil {
			t.Fatal(err)
		}
	}
	e.wait("r1").emit(event.TextDelta, &event.Delta{Text: "now"})
	if f, err := readFrame(r); err != nil || f.event != "text_delta" {
		t.Errorf("%+v %v", f, err)
	}
	// Old protocols are not spoken, and no plain text.
	old := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS11}, DisableKeepAlives: true}} //nolint:gosec // that is the test
	if resp, err := old.Get(s.URL() + "/healthz"); err == nil {
		_ = resp.Body.Close()
		t.Error("TLS 1.1 was spoken")
	}
	if resp, err := http.Get("http://" + s.Addr() + "/healthz"); err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode == 200 {
			t.Error("plain text was answered")
		}
	}
	// A broken renewal leaves the old certificate in use, a whole one is taken.
	get := func(pool *x509.CertPool) error {
		resp, err := connect(pool).Get(s.URL() + "/healthz")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "cert.pem"), []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := get(pool); err != nil {
		t.Errorf("after a broken renewal: %v", err)
	}
	second := certify(t, dir, "second", time.Unix(1_800_000_000, 0))
	if err := get(second); err != nil {
		t.Errorf("after the renewal: %v", err)
	}
	if err := get(pool); err == nil {
		t.Error("the old certificate is still in use")
	}
}
