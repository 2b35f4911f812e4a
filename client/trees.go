package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"agentd/fault"
	"agentd/message"
)

// EntryRoot names the beginning of a session where an entry is named.
const EntryRoot = "root"

// Settings are what changes on a session's path amount to.
type Settings struct {
	Model    string `json:"model,omitempty"`
	Mode     string `json:"mode,omitempty"`
	Thinking string `json:"thinking,omitempty"`
}

// Tree is a session with all its entries, in the order of their ids.
type Tree struct {
	*Session
	Settings Settings `json:"settings"`
	Entries  []*Node  `json:"entries"`
}

// Node is an entry in its tree, without all that it says.
type Node struct {
	ID     string `json:"id"`
	Parent string `json:"parent,omitempty"`
	Kind   string `json:"kind"`
	RunID  string `json:"run_id,omitempty"`
	// RunStatus is that of the run, if it is of this session.
	RunStatus string `json:"run_status,omitempty"`
	CreatedAt string `json:"created_at"`
	// Role is that of a message. Preview is the beginning of what the entry says.
	Role    string `json:"role,omitempty"`
	Preview string `json:"preview,omitempty"`
	Label   string `json:"label,omitempty"`
	// OnPath is whether the conversation has the entry, as it stands.
	OnPath bool `json:"on_path,omitempty"`
}

// AppendRequest writes an entry behind a session's leaf: of kind message with Message,
// or label, custom, model_change, mode_change or thinking_change with Data.
type AppendRequest struct {
	Kind    string           `json:"kind"`
	Message *message.Message `json:"message,omitempty"`
	Data    json.RawMessage  `json:"data,omitempty"`
	// Profile says which models a model_change may name; "" is that of the session's
	// last run.
	Profile string `json:"profile,omitempty"`
}

// NavigateRequest moves a session's leaf.
type NavigateRequest struct {
	// Entry is where the session goes on; EntryRoot is its beginning.
	Entry string `json:"entry_id"`
	// Before goes to what is ahead of Entry, which has to be a user's message: it
	// comes back, to be said otherwise.
	Before bool `json:"before,omitempty"`
	// Label is what people call the way that begins here, Summary what models are told
	// of the way that is left.
	Label   string `json:"label,omitempty"`
	Summary string `json:"summary,omitempty"`
	// Summarize has a model write the summary, if there is none and something was said on
	// that way: a run does that, and the session moves as it completes. Instructions are
	// added to what the model is told; Profile says whose models are asked, "" that of the
	// session's last run.
	Summarize    bool   `json:"summarize,omitempty"`
	Instructions string `json:"instructions,omitempty"`
	Profile      string `json:"profile,omitempty"`
	// IfLeaf refuses the change with kind Conflict if the session stands elsewhere.
	IfLeaf *string `json:"if_leaf,omitempty"`
	// IdempotencyKey makes a repetition give what the first request wrote or started. A
	// different request of the session under the same key is a conflict.
	IdempotencyKey string `json:"-"`
}

// Moved is a session whose leaf moved.
type Moved struct {
	*Session
	// Entry is what was written for it; nil if the session stood there already.
	Entry *Entry `json:"entry,omitempty"`
	// Input is the message that Before left out.
	Input []message.Block `json:"input,omitempty"`
	// RunID is the run that writes the summary: the session moves when it completes, with
	// the stop reason compacted, and stays where it is if it does not.
	RunID string `json:"run_id,omitempty"`
}

// ForkRequest makes a session of what another one has.
type ForkRequest struct {
	// Entry is the last one that the new session has; "" is the leaf.
	Entry string `json:"entry_id,omitempty"`
	// Before leaves out Entry itself, which has to be a user's message.
	Before bool `json:"before,omitempty"`
	// All copies the whole tree.
	All bool `json:"all,omitempty"`
	// Title is that of the new session; "" is the other one's.
	Title    string          `json:"title,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// IdempotencyKey makes a repetition give the first session.
	IdempotencyKey string `json:"-"`
}

// ExportOptions say what of a session is in its file.
type ExportOptions struct {
	// NoArtifacts leaves them out.
	NoArtifacts bool
}

// ImportOptions say how a file becomes a session.
type ImportOptions struct {
	// Title is that of the session; "" is the file's.
	Title string
	// IdempotencyKey makes a repetition give the first session.
	IdempotencyKey string
}

// Imported is a session that was made of a file.
type Imported struct {
	*Session
	// Format is "agentd" or "pi".
	Format  string `json:"format"`
	Entries int    `json:"entries"`
	// Artifacts is how many came with their contents.
	Artifacts int      `json:"artifacts,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
}

// Tree gives a session with all its entries.
func (c *Client) Tree(ctx context.Context, sessionID string) (*Tree, error) {
	var v Tree
	if err := c.call(ctx, &v, http.MethodGet, nil, nil, "sessions", sessionID, "tree"); err != nil {
		return nil, err
	}
	return &v, nil
}

// Append writes an entry behind a session's leaf. An active run is a conflict.
func (c *Client) Append(ctx context.Context, sessionID string, req AppendRequest) (*Entry, error) {
	var v Entry
	if err := c.call(ctx, &v, http.MethodPost, &req, nil, "sessions", sessionID, "entries"); err != nil {
		return nil, err
	}
	return &v, nil
}

// Navigate moves a session's leaf to one of its entries; nothing is deleted. An active
// run is a conflict.
func (c *Client) Navigate(ctx context.Context, sessionID string, req NavigateRequest) (*Moved, error) {
	var v Moved
	if err := c.create(ctx, &v, req.IdempotencyKey, &req, "sessions", sessionID, "navigate"); err != nil {
		return nil, err
	}
	return &v, nil
}

// Fork makes a session of the way to an entry of another one, or of all of it.
func (c *Client) Fork(ctx context.Context, sessionID string, req ForkRequest) (*Session, error) {
	hr, err := c.request(ctx, http.MethodPost, &req, nil, "sessions", sessionID, "fork")
	if err != nil {
		return nil, err
	}
	if req.IdempotencyKey != "" {
		hr.Header.Set("Idempotency-Key", req.IdempotencyKey)
	}
	var v Session
	if err := c.do(hr, &v); err != nil {
		return nil, err
	}
	return &v, nil
}

// Export writes a session to w as a file of one JSON object a line.
func (c *Client) Export(ctx context.Context, sessionID string, w io.Writer, o ExportOptions) (err error) {
	q := url.Values{}
	if o.NoArtifacts {
		q.Set("artifacts", "false")
	}
	req, err := c.request(ctx, http.MethodGet, nil, q, "sessions", sessionID, "export")
	if err != nil {
		return err
	}
	resp, err := c.opts.HTTP.Do(req)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode/100 != 2 {
		return problem(resp)
	}
	if _, err := io.Copy(w, resp.Body); err != nil {
		return &fault.Error{Kind: fault.Unavailable, Err: fmt.Errorf("the file broke off: %w", err), Hint: "Try again."}
	}
	return nil
}

// Import makes a session of a file of Export, or of Pi.
func (c *Client) Import(ctx context.Context, file io.Reader, o ImportOptions) (*Imported, error) {
	q := url.Values{}
	set(q, "title", o.Title)
	req, err := c.request(ctx, http.MethodPost, nil, q, "sessions", "import")
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(file)
	req.ContentLength = -1
	req.Header.Set("Content-Type", "application/x-ndjson")
	if o.IdempotencyKey != "" {
		req.Header.Set("Idempotency-Key", o.IdempotencyKey)
	}
	var v Imported
	if err := c.do(req, &v); err != nil {
		return nil, err
	}
	return &v, nil
}
