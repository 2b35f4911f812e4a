package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"agentd/fault"
)

// maxProblem bounds what is read of an error's body.
const maxProblem = 64 << 10

// problem makes an error of an answer that is one. It does not close the body.
func problem(resp *http.Response) *fault.Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblem)) // what came of it is good enough
	return decodeProblem(resp.StatusCode, resp.Header.Get("Content-Type"), body)
}

// decodeProblem reads the body of an error. Bodies that are not the API's are
// from something in between, such as a proxy: then the status decides.
func decodeProblem(status int, contentType string, body []byte) *fault.Error {
	var b struct {
		Error struct {
			Kind    fault.Kind `json:"kind"`
			Message string     `json:"message"`
			Hint    string     `json:"hint"`
			Field   string     `json:"field"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &b) == nil && b.Error.Message != "" {
		kind := b.Error.Kind
		if kind == "" || (kind != fault.Internal && kind.HTTPStatus() == http.StatusInternalServerError) {
			kind = kindOf(status) // one that this client does not know
		}
		return &fault.Error{Kind: kind, Err: errors.New(b.Error.Message), Hint: b.Error.Hint, Field: b.Error.Field}
	}
	text := http.StatusText(status)
	if t, _, err := mime.ParseMediaType(contentType); err == nil && t == "text/plain" {
		if said := strings.Join(strings.Fields(strings.ToValidUTF8(string(body), "")), " "); said != "" {
			text += ": " + clip(said, 200)
		}
	}
	return &fault.Error{Kind: kindOf(status), Err: fmt.Errorf("the server answered %d %s", status, text), Hint: notAgentd}
}

// kindOf is the kind that a status stands for.
func kindOf(status int) fault.Kind {
	switch status {
	case http.StatusNotFound, http.StatusGone:
		return fault.NotFound
	case http.StatusConflict:
		return fault.Conflict
	case http.StatusUnauthorized, http.StatusProxyAuthRequired:
		return fault.Unauthorized
	case http.StatusForbidden:
		return fault.Forbidden
	case http.StatusRequestEntityTooLarge:
		return fault.TooLarge
	case http.StatusTooManyRequests:
		return fault.RateLimited
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return fault.Unavailable
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return fault.Timeout
	case 499: // nginx's "client closed request", and agentd's Cancelled
		return fault.Cancelled
	case http.StatusNotImplemented:
		return fault.Unsupported
	}
	if status >= 400 && status < 500 {
		return fault.Invalid
	}
	return fault.Internal
}

// passing reports whether a server that answered so may soon answer otherwise.
func passing(err error) bool {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Timeout, fault.RateLimited:
		return true
	}
	return false
}

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
