package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"agentd/fault"
)

// Artifact is a result that was too large for the model, as it is known to its
// session.
type Artifact struct {
	ID         string `json:"artifact_id"`
	SessionID  string `json:"session_id"`
	RunID      string `json:"run_id,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`
	Name       string `json:"name,omitempty"`
	MimeType   string `json:"mime_type,omitempty"`
	Bytes      int64  `json:"bytes"`
	CreatedAt  string `json:"created_at"`
	// ExpiresAt is when the content goes at the latest; ExpiredAt and Reason say
	// when it went, and why.
	ExpiresAt string `json:"expires_at,omitempty"`
	ExpiredAt string `json:"expired_at,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// Artifacts gives those of a session, oldest first, with those whose content is not
// kept any more.
func (c *Client) Artifacts(ctx context.Context, sessionID string) ([]*Artifact, error) {
	var out struct {
		Artifacts []*Artifact `json:"artifacts"`
	}
	err := c.call(ctx, &out, http.MethodGet, nil, nil, "sessions", sessionID, "artifacts")
	return out.Artifacts, err
}

// ArtifactData gives the content of an artifact. The error of one that is not kept
// any more, of kind NotFound, says since when and why.
func (c *Client) ArtifactData(ctx context.Context, id string) (name, mimeType string, data []byte, err error) {
	req, err := c.request(ctx, http.MethodGet, nil, nil, "artifacts", id)
	if err != nil {
		return "", "", nil, err
	}
	resp, err := c.opts.HTTP.Do(req)
	if err != nil {
		return "", "", nil, c.unreachable(ctx, err)
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode/100 != 2 {
		return "", "", nil, problem(resp)
	}
	if data, err = io.ReadAll(resp.Body); err != nil {
		return "", "", nil, &fault.Error{Kind: fault.Unavailable, Err: fmt.Errorf("the content broke off: %w", err), Hint: "Try again."}
	}
	if _, params, err := mime.ParseMediaType(resp.Header.Get("Content-Disposition")); err == nil {
		name = params["filename"]
	}
	return name, resp.Header.Get("Content-Type"), data, nil
}
