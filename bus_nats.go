//go:build nats

package agentd

import (
	"agentd/internal/natsbus"
	"agentd/internal/profile"
)

// natsBus connects a node with the others by NATS. A program that comes and goes beside
// a node has no place of its own where others find it.
func natsBus(c *profile.NATS, name, secret string, passing bool) (closingBus, error) {
	t, err := tlsOf("cluster.nats.", c.TLS, c.CAFile, c.CertFile, c.KeyFile, c.ServerName)
	if err != nil {
		return nil, err
	}
	o := natsbus.Options{Name: name, Subject: c.Subject, URLs: c.URLs, Listen: c.Listen, Routes: c.Routes, Secret: secret, Credentials: c.CredentialsFile, TLS: t}
	if passing {
		o.Routes, o.Listen = append([]string{c.Listen}, c.Routes...), "127.0.0.1:0"
	}
	return natsbus.Open(o)
}
