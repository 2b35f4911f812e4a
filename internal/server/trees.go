package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/server/wire"
	"agentd/message"
)

// Trees are sessions as trees.
type Trees interface {
	Tree(ctx context.Context, ref engine.Ref) (*engine.TreeView, error)
	AppendEntry(ctx context.Context, req engine.AppendRequest) (*engine.EntryView, error)
	// Navigate, Fork and Import are idempotent for requests with a key, like CreateSession.
	Navigate(ctx context.Context, req engine.NavigateRequest) (*engine.Moved, error)
	Fork(ctx context.Context, req engine.ForkRequest) (*engine.SessionView, error)
	Import(ctx context.Context, req engine.ImportRequest) (*engine.Imported, error)
	// Export gives what writes the session as a file.
	Export(ctx context.Context, ref engine.Ref, o engine.ExportOptions) (func(w io.Writer) error, error)
	// Converse finds where a client's own history goes on.
	Converse(ctx context.Context, c *engine.Conversation) (engine.Place, error)
}

func (s *Server) getTree(w http.ResponseWriter, r *http.Request) error {
	v, err := s.engine.Tree(r.Context(), ref(r))
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, v)
	return nil
}

func (s *Server) appendEntry(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		Kind    string          `json:"kind"`
		Message json.RawMessage `json:"message"`
		Data    json.RawMessage `json:"data"`
		Profile string          `json:"profile"`
	}
	if err := s.readOptional(w, r, &b); err != nil {
		return err
	}
	req := engine.AppendRequest{Tenant: tenant(r), SessionID: r.PathValue("id"), Kind: b.Kind, Data: given(b.Data), Profile: b.Profile}
	if wire.Given(b.Message) {
		m, err := decodeMessage(b.Message)
		if err != nil {
			return err
		}
		req.Message = m
	}
	v, err := s.engine.AppendEntry(r.Context(), req)
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusCreated, v)
	return nil
}

// decodeMessage reads a message whose content may be a string.
func decodeMessage(raw json.RawMessage) (*message.Message, error) {
	var b struct {
		Role      message.Role    `json:"role"`
		Content   json.RawMessage `json:"content"`
		Timestamp int64           `json:"timestamp"`
		Details   json.RawMessage `json:"details"`
	}
	if err := wire.Decode(raw, &b); err != nil {
		var f *fault.Error
		if errors.As(err, &f) && f.Field != "" {
			f.Field = "message." + f.Field
		}
		return nil, err
	}
	content, err := message.UnmarshalContent(b.Content)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Field: "message.content", Err: err}
	}
	return &message.Message{Role: b.Role, Content: content, Timestamp: b.Timestamp, Details: given(b.Details)}, nil
}

func (s *Server) navigate(w http.ResponseWriter, r *http.Request) error {
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	var b struct {
		Entry        string  `json:"entry_id"`
		Before       bool    `json:"before"`
		Label        string  `json:"label"`
		Summary      string  `json:"summary"`
		Summarize    bool    `json:"summarize"`
		Instructions string  `json:"instructions"`
		Profile      string  `json:"profile"`
		IfLeaf       *string `json:"if_leaf"`
	}
	if err := s.readOptional(w, r, &b); err != nil {
		return err
	}
	v, err := s.engine.Navigate(r.Context(), engine.NavigateRequest{Tenant: tenant(r), SessionID: r.PathValue("id"), Entry: b.Entry, Before: b.Before,
		Label: b.Label, Summary: b.Summary, Summarize: b.Summarize, Instructions: b.Instructions, Profile: b.Profile, IfLeaf: b.IfLeaf, IdempotencyKey: key,
		User: wire.UserOf(r, s.opts.UserHeader), Caller: engine.CallerOf(wire.RequestOf(r.Context()).Key)})
	if err != nil {
		return err
	}
	wire.RequestOf(r.Context()).Run = v.RunID
	wire.WriteJSON(w, http.StatusOK, v)
	return nil
}

func (s *Server) fork(w http.ResponseWriter, r *http.Request) error {
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	var b struct {
		Entry    string          `json:"entry_id"`
		Before   bool            `json:"before"`
		All      bool            `json:"all"`
		Title    string          `json:"title"`
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := s.readOptional(w, r, &b); err != nil {
		return err
	}
	if err := object("metadata", b.Metadata); err != nil {
		return err
	}
	v, err := s.engine.Fork(r.Context(), engine.ForkRequest{Tenant: tenant(r), SessionID: r.PathValue("id"), Entry: b.Entry, Before: b.Before, All: b.All,
		Title: b.Title, Metadata: given(b.Metadata), IdempotencyKey: key})
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/sessions/"+url.PathEscape(v.ID))
	wire.WriteJSON(w, http.StatusCreated, v)
	return nil
}

// exportSession gives a session as a file.
func (s *Server) exportSession(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "artifacts")
	if err != nil {
		return err
	}
	var o engine.ExportOptions
	switch v := q.Get("artifacts"); v {
	case "", "true":
	case "false":
		o.NoArtifacts = true
	default:
		return &fault.Error{Kind: fault.Invalid, Field: "artifacts", Err: fmt.Errorf("%q is not true or false", wire.Clip(v, 80))}
	}
	write, err := s.engine.Export(r.Context(), ref(r), o)
	if err != nil {
		return err
	}
	var file bytes.Buffer
	if err := write(&file); err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", `attachment; filename="`+url.PathEscape(r.PathValue("id"))+`.jsonl"`)
	wire.WriteRaw(w, http.StatusOK, "application/x-ndjson", file.Bytes())
	return nil
}

func (s *Server) importSession(w http.ResponseWriter, r *http.Request) error {
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	q, err := query(r, "title")
	if err != nil {
		return err
	}
	body, err := wire.ReadFile(w, r, s.limits(), s.opts.MaxFile, "Raise sessions.max_file_bytes in agentd.yaml.")
	if err != nil {
		return err
	}
	v, err := s.engine.Import(r.Context(), engine.ImportRequest{Tenant: tenant(r), File: bytes.NewReader(body), Title: q.Get("title"), IdempotencyKey: key})
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/sessions/"+url.PathEscape(v.ID))
	wire.WriteJSON(w, http.StatusCreated, v)
	return nil
}
