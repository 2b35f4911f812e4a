package llmwire

import (
	"bytes"
	"io"
	"net/http"

	"agentd/fault"
	"agentd/message"
	"agentd/model"
)

// maxErrorBody is how much of an error response is read.
const maxErrorBody = 64 << 10

// Key asks for the credential of a call; "" without one. An error is of the class that
// [model.CredentialFunc] says.
func (c *Call) Key(credential model.CredentialFunc) (string, *model.Error) {
	if credential == nil {
		return "", nil
	}
	key, err := credential(c.ctx)
	if err == nil {
		return key, nil
	}
	e := c.Fail(err)
	if e.Class == model.ClassConnection && fault.KindOf(err) != fault.Unavailable {
		e.Class = model.ClassAuth
	}
	return "", e
}

// Post sends a JSON body, for adapters that have no SDK. The response is of any
// status; header is not kept.
func (c *Call) Post(client *http.Client, address string, header http.Header, body []byte) (*http.Response, *model.Error) {
	req, err := http.NewRequestWithContext(c.ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, c.Fail(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return c.do(client, req, header)
}

// Get asks for what is at an address. The response is of any status; header is not kept.
func (c *Call) Get(client *http.Client, address string, header http.Header) (*http.Response, *model.Error) {
	req, err := http.NewRequestWithContext(c.ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, c.Fail(err)
	}
	return c.do(client, req, header)
}

func (c *Call) do(client *http.Client, req *http.Request, header http.Header) (*http.Response, *model.Error) {
	for k, v := range header {
		if k != "Content-Type" || req.Header.Get(k) == "" { // a body's own is its type
			req.Header[k] = v
		}
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, c.Fail(err)
	}
	c.body = res.Body
	return res, nil
}

// Document reads what came in place of a stream, as far as anybody wants to know it.
func (c *Call) Document() ([]byte, *model.Error) { return c.Whole(maxErrorBody) }

// Whole reads a response, at most so many bytes of it.
func (c *Call) Whole(limit int64) ([]byte, *model.Error) {
	text, err := io.ReadAll(io.LimitReader(c, limit))
	if err != nil {
		return nil, c.Fail(err)
	}
	return text, nil
}

// Refused reads the body of an error response; what could be read of it is enough.
func (c *Call) Refused() []byte {
	text, _ := io.ReadAll(io.LimitReader(c, maxErrorBody))
	return text
}

// Moved is what to say of a redirect, "" for another status.
func Moved(status int) string {
	if status >= 300 && status < 400 {
		return "the server redirects, and redirects are not followed: correct the base URL"
	}
	return ""
}

// Estimated is the usage of a call that failed: what was counted, else an estimate if
// something of the reply m came, else nil.
func Estimated(counted *message.Usage, req *model.Request, m *message.Message) *message.Usage {
	if counted == nil && (m.ResponseID != "" || len(m.Content) > 0) {
		return model.Estimate(req, m) // what came, and what it was asked with, is paid for all the same
	}
	return counted
}
