package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"agentd/fault"
)

// Options tune a client. The zero value of a field means its default.
type Options struct {
	// Key is the API key; empty sends none.
	Key string
	// HTTP does the requests; nil means a client without a limit on the time
	// of a whole answer, because event streams are answers too.
	HTTP *http.Client
	// Idle is how long Watch waits for a sign of life before it takes the
	// connection for broken; 0 means a minute. Servers give one every 15 seconds.
	Idle time.Duration
	// Backoff says how long Watch waits after so many failures in a row,
	// counted from 1, and whether it tries again at all. Nil means
	// DefaultBackoff.
	Backoff func(failures int) (wait time.Duration, again bool)
}

// Client talks to one server. It is safe for concurrent use.
type Client struct {
	base string
	opts Options
}

// headerTimeout bounds the wait for an answer to begin. Starting a run may have
// to wait for tool servers to connect.
const headerTimeout = 2 * time.Minute

// maxBody bounds what is read of an answer that is not a stream.
const maxBody = 256 << 20

// New returns a client of the server at baseURL ("http://127.0.0.1:7070"). It does
// not connect. opts may be nil.
func New(baseURL string, opts *Options) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.RawQuery != "" || u.Fragment != "" {
		return nil, &fault.Error{Op: "client.New", Kind: fault.Invalid, Err: errors.New("the server's address is not a URL of http or https"),
			Hint: "Write it like http://127.0.0.1:7070."}
	}
	c := &Client{base: strings.TrimRight(u.String(), "/")}
	if opts != nil {
		c.opts = *opts
	}
	if c.opts.HTTP == nil {
		t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16,
			IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: headerTimeout}
		c.opts.HTTP = &http.Client{Transport: t}
	}
	if c.opts.Idle <= 0 {
		c.opts.Idle = time.Minute
	}
	if c.opts.Backoff == nil {
		c.opts.Backoff = DefaultBackoff
	}
	return c, nil
}

// request makes a request. parts are the path; each is escaped. The caller must
// not give empty ids.
func (c *Client) request(ctx context.Context, method string, body any, q url.Values, parts ...string) (*http.Request, error) {
	address := c.base
	for _, p := range parts {
		if p == "" || p == "." || p == ".." {
			return nil, &fault.Error{Kind: fault.Invalid, Err: fmt.Errorf("%q is not an id", p)}
		}
		address += "/" + url.PathEscape(p)
	}
	if len(q) > 0 {
		address += "?" + q.Encode()
	}
	var r io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, &fault.Error{Kind: fault.Invalid, Err: fmt.Errorf("the request can not be written as JSON: %w", err)}
		}
		r = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, r)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Err: err}
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	if c.opts.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.opts.Key)
	}
	return req, nil
}

// call sends a request and reads the answer into out, unless out is nil.
func (c *Client) call(ctx context.Context, out any, method string, body any, q url.Values, parts ...string) error {
	req, err := c.request(ctx, method, body, q, parts...)
	if err != nil {
		return err
	}
	return c.do(req, out)
}

func (c *Client) do(req *http.Request, out any) error {
	resp, err := c.opts.HTTP.Do(req)
	if err != nil {
		return c.unreachable(req.Context(), err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return problem(resp)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return c.unreachable(req.Context(), fmt.Errorf("the answer broke off: %w", err))
	case len(raw) > maxBody:
		return &fault.Error{Kind: fault.TooLarge, Err: fmt.Errorf("the answer is larger than %d bytes", maxBody)}
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return &fault.Error{Kind: fault.Unsupported, Err: fmt.Errorf("the answer of %s can not be read: %w", c.base, err), Hint: notAgentd}
	}
	return nil
}

const notAgentd = "Is the address that of an agentd server, and not much older or newer than this client?"

// unreachable is the error of a request without an answer.
func (c *Client) unreachable(ctx context.Context, err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err // it repeats the address
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return &fault.Error{Kind: fault.Cancelled, Err: ctx.Err()}
	case ctx.Err() != nil:
		return &fault.Error{Kind: fault.Timeout, Err: fmt.Errorf("%s did not answer in time: %w", c.base, ctx.Err())}
	}
	hint := "Does a server run there? agentd serve starts one."
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		hint = "The server's certificate is of an authority that this system does not trust, or not for this name. Name the authority's file in SSL_CERT_FILE, and call the server as its certificate does."
	}
	return &fault.Error{Kind: fault.Unavailable, Err: fmt.Errorf("%s can not be reached: %w", c.base, err), Hint: hint}
}
