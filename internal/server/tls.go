package server

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"agentd/fault"
)

// certificate is a certificate in files. Files that were replaced are read again
// at the next handshake, so that a renewed certificate needs no restart.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex
	loaded *tls.Certificate
	// stamp is when the files were last changed, as far as was looked.
	stamp [2]time.Time
}

// loadCertificate reads a certificate for the first time. Without files there is
// none, and no error.
func loadCertificate(cert, key string, log *slog.Logger) (*certificate, error) {
	if cert == "" && key == "" {
		return nil, nil
	}
	bad := func(field string, err error) error {
		return &fault.Error{Op: "server.Listen", Kind: fault.Invalid, Field: field, Err: err,
			Hint: "Name two PEM files that belong together: the certificate, with what lies between it and its root, and its private key."}
	}
	if cert == "" || key == "" {
		return nil, bad("tls", errors.New("a certificate needs its key, and a key its certificate"))
	}
	c := &certificate{cert: cert, key: key, log: log}
	c.stamp = c.changed()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, bad("tls", err)
	}
	c.loaded = &pair
	return c, nil
}

func (c *certificate) changed() (stamp [2]time.Time) {
	for i, name := range []string{c.cert, c.key} {
		if info, err := os.Stat(name); err == nil {
			stamp[i] = info.ModTime()
		}
	}
	return stamp
}

// get gives the certificate of a handshake. Files that can not be used, such as a
// new certificate whose key is not there yet, leave the old one in use.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stamp := c.changed(); stamp != c.stamp {
		pair, err := tls.LoadX509KeyPair(c.cert, c.key)
		if err != nil {
			c.log.Warn("the certificate was changed and can not be used; the old one stays", "error", err)
		} else {
			c.loaded = &pair
			c.log.Info("the certificate was changed and is in use")
		}
		c.stamp = stamp
	}
	return c.loaded, nil
}

func (c *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}
