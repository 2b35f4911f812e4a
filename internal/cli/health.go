package cli

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentd"
	"agentd/fault"
)

// healthPause is between the questions of agentd health --wait.
const healthPause = 200 * time.Millisecond

func (a *app) healthCommand() *cobra.Command {
	var live bool
	var wait, timeout time.Duration
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a server or worker whether it is ready; the exit status says it",
		Long: `Ask a server (agentd serve) or a worker (agentd worker) whether it is ready: its store
answers and takes commits, it has its lease on a store that it shares, and it is not
about to end. Exit status 0 means yes, 1 no. It needs no key, no shell and no file, so
that supervisors and containers can run it.

Without an address it asks the server of this machine, where agentd.yaml says that it
listens.`,
		Example: `  agentd health
  agentd health --live                               # does the process answer at all
  agentd health --wait 30s                           # until it is ready
  agentd health --server http://127.0.0.1:7071       # a worker`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			path := "/readyz"
			if live {
				path = "/healthz"
			}
			return a.askHealth(cmd.Context(), path, wait, timeout)
		},
	}
	f := cmd.Flags()
	f.StringVar(&a.server, "server", "", "address of the server or worker (default: $"+serverVariable+", else where agentd.yaml says that the server listens)")
	f.BoolVar(&live, "live", false, "ask only whether the process answers")
	f.DurationVar(&wait, "wait", 0, "ask again for so long until the answer is yes")
	f.DurationVar(&timeout, "timeout", 5*time.Second, "how long one answer may take")
	a.configsFlag(cmd)
	return cmd
}

// askHealth asks until the answer is yes or the time is over.
func (a *app) askHealth(ctx context.Context, path string, wait, timeout time.Duration) error {
	if timeout <= 0 || wait < 0 {
		return &usageError{errors.New("--timeout must be more than 0, and --wait not less")}
	}
	base, own, err := a.healthAddress()
	if err != nil {
		return err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if own {
		// What its certificate says is its name is not where it is asked. It is this
		// machine, and nothing secret is sent.
		transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}
	}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport, Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ends := time.Now().Add(wait)
	for {
		status, err := healthOf(ctx, c, base+path)
		if err == nil {
			if a.asJSON() {
				return a.value(map[string]string{"status": status, "server": base})
			}
			_, err = fmt.Fprintf(a.Out, "%s is %s\n", base, status)
			return err
		}
		if ctx.Err() != nil || !time.Now().Add(healthPause).Before(ends) {
			return err
		}
		select {
		case <-time.After(healthPause):
		case <-ctx.Done():
			return err
		}
	}
}

// healthAddress is who is asked; own: the server of this machine, found by the
// configuration.
func (a *app) healthAddress() (base string, own bool, err error) {
	at := a.server
	if at == "" {
		at = os.Getenv(serverVariable)
	}
	if at != "" {
		u, err := url.Parse(at)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return "", false, &usageError{errors.New("the address of the server must look like http://127.0.0.1:7070")}
		}
		return u.Scheme + "://" + u.Host + strings.TrimRight(u.Path, "/"), false, nil
	}
	if err := agentd.CheckSettings(a.configsFolder()); err != nil {
		return "", false, err
	}
	s := agentd.ReadSettings(a.configsFolder())
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return "", false, &fault.Error{Kind: fault.Invalid, Err: err, Field: "addr", Hint: "Give host and port in agentd.yaml, or name the server with --server."}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http://"
	if s.TLS.Cert != "" {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port), true, nil
}

// healthOf is one answer: how it is, or why not.
func healthOf(ctx context.Context, c *http.Client, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", &fault.Error{Kind: fault.Unavailable, Err: fmt.Errorf("nobody answers: %w", err), Hint: "Is it running, and is this its address? --server names another one."}
	}
	defer resp.Body.Close()
	var body struct {
		Status string `json:"status"`
		Error  struct {
			Message string `json:"message"`
			Hint    string `json:"hint"`
		} `json:"error"`
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err == nil {
		err = json.Unmarshal(data, &body)
	}
	switch {
	case err != nil:
		return "", &fault.Error{Kind: fault.Unavailable, Err: fmt.Errorf("%s answers %s, which is no agentd's answer", address, resp.Status), Hint: "Is this the address of agentd?"}
	case resp.StatusCode != http.StatusOK:
		return "", &fault.Error{Kind: fault.Unavailable, Err: fmt.Errorf("%s answers %d: %s", address, resp.StatusCode, body.Error.Message), Hint: body.Error.Hint}
	}
	return body.Status, nil
}
