package executors

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentd"
	"agentd/internal/engine/enginetest"
	"agentd/internal/store/postgres/pgtest"
)

// authority makes certificates.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.issue("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue writes NAME.pem and NAME-key.pem.
func (a *authority) issue(name string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, b := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + "-key.pem": {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(filepath.Join(a.dir, file), pem.EncodeToMemory(b), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	out, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return out, key
}

// gateway is Temporal as it is reached from outside: with TLS, certificates of clients
// and an API key.
type gateway struct {
	addr           string
	taken, refused atomic.Int64
}

func newGateway(t *testing.T, s *server, a *authority, key string) *gateway {
	t.Helper()
	a.issue("server", &x509.Certificate{DNSNames: []string{"temporal.test"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	cert, err := tls.LoadX509KeyPair(filepath.Join(a.dir, "server.pem"), filepath.Join(a.dir, "server-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(a.cert)
	to := &url.URL{Scheme: "http", Host: s.hostPort()}
	var h2c http.Protocols
	h2c.SetUnencryptedHTTP2(true)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval, proxy.Transport, proxy.ErrorLog = -1, &http.Transport{Protocols: &h2c}, log.New(io.Discard, "", 0)
	g := &gateway{}
	srv := &http.Server{ErrorLog: proxy.ErrorLog, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			g.refused.Add(1)
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Grpc-Status", "16")
			w.Header().Set("Grpc-Message", "who are you")
			return
		}
		g.taken.Add(1)
		proxy.ServeHTTP(w, r)
	}), TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.addr = l.Addr().String()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.ServeTLS(l, "", "")
	}()
	t.Cleanup(func() { srv.Close(); <-done })
	return g
}

// TestTemporalBehindTLS: the whole of agentd, from its configuration on, with a Temporal
// that wants TLS, a certificate and a key, as Temporal Cloud does.
func TestTemporalBehindTLS(t *testing.T) {
	t.Parallel()
	s := serverOn(t, "")
	a := newAuthority(t)
	a.issue("node", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	const secret = "tmprl_xyzzy"
	g := newGateway(t, s, a, secret)
	pg := pgtest.Start(t)
	open := func(schema, key string) *agentd.Runtime {
		t.Helper()
		dir := t.TempDir()
		conf := fmt.Sprintf(`cluster:
  engine: temporal://%s/default
  temporal:
    queue_prefix: %s
    ca_file: %s/ca.pem
    cert_file: %s/node.pem
    key_file: %s/node-key.pem
    server_name: temporal.test
    api_key_env: TEMPORAL_API_KEY
    sweep_interval: 1s
`, g.addr, schema, a.dir, a.dir, a.dir)
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "agentd.yaml"), []byte(conf), 0o600), os.CopyFS(filepath.Join(dir, "agents"), os.DirFS("../../configs/agents"))); err != nil {
			t.Fatal(err)
		}
		rt, err := agentd.Open(t.Context(), agentd.Config{Configs: dir, Data: pg.URL(schema), Env: func(name string) (string, bool) {
			return key, name == "TEMPORAL_API_KEY"
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { rt.Close() })
		return rt
	}
	ctx, cancel := context.WithTimeout(t.Context(), enginetest.Patience)
	defer cancel()
	rt := open("good", secret)
	r, err := rt.Start(ctx, agentd.StartRequest{Profile: "demo", Input: agentd.Text("have a look")})
	if err == nil {
		r, err = rt.Wait(ctx, r.ID)
	}
	if err != nil || r.Status != "completed" {
		t.Fatalf("%+v, %v", r, err)
	}
	if g.taken.Load() < 5 || g.refused.Load() > 0 {
		t.Errorf("%d requests had the key, %d had not", g.taken.Load(), g.refused.Load())
	}
	// Another key drives nothing, and is named nowhere.
	wrong := open("wrong", "another")
	if r, err = wrong.Start(ctx, agentd.StartRequest{Profile: "demo", Input: agentd.Text("have a look")}); err != nil {
		t.Fatal(err)
	}
	for g.refused.Load() < 5 {
		select {
		case <-ctx.Done():
			t.Fatal("nothing was refused")
		case <-time.After(10 * time.Millisecond):
		}
	}
	if r, err = wrong.Get(ctx, r.ID); err != nil || r.Status != "queued" || strings.Contains(fmt.Sprint(r), "another") {
		t.Errorf("%+v, %v", r, err)
	}
}
