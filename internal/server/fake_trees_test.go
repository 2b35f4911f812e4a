package server_test

import (
	"context"
	"fmt"
	"io"
	"strings"

	"agentd/fault"
	"agentd/internal/engine"
)

// Tree implements server.Trees: the fake's sessions have one entry, "e1".
func (e *fake) Tree(ctx context.Context, ref engine.Ref) (*engine.TreeView, error) {
	v, err := e.Session(ctx, ref)
	if err != nil {
		return nil, err
	}
	return &engine.TreeView{SessionView: v, Entries: []*engine.NodeView{{ID: "e1", Kind: "message", Role: "user", Preview: "hello", OnPath: true, CreatedAt: stamp}}}, nil
}

// AppendEntry implements server.Trees.
func (e *fake) AppendEntry(ctx context.Context, req engine.AppendRequest) (*engine.EntryView, error) {
	if _, err := e.Session(ctx, engine.Ref{Tenant: req.Tenant, ID: req.SessionID}); err != nil {
		return nil, err
	}
	return &engine.EntryView{ID: "e2", Parent: "e1", Kind: req.Kind, CreatedAt: stamp, Message: req.Message, Data: req.Data}, nil
}

// Navigate implements server.Trees.
func (e *fake) Navigate(ctx context.Context, req engine.NavigateRequest) (*engine.Moved, error) {
	v, err := e.Session(ctx, engine.Ref{Tenant: req.Tenant, ID: req.SessionID})
	switch {
	case err != nil:
		return nil, err
	case req.IfLeaf != nil && *req.IfLeaf != v.Leaf:
		return nil, fault.New(fault.Conflict, "it stands elsewhere")
	case req.Summarize && req.Instructions == "dwell" && req.Profile == "helper":
		return &engine.Moved{SessionView: v, RunID: "run_1"}, nil
	}
	return &engine.Moved{SessionView: v, Entry: &engine.EntryView{ID: "e2", Parent: req.Entry, Kind: "branch", CreatedAt: stamp}}, nil
}

// Fork implements server.Trees.
func (e *fake) Fork(ctx context.Context, req engine.ForkRequest) (*engine.SessionView, error) {
	if _, err := e.Session(ctx, engine.Ref{Tenant: req.Tenant, ID: req.SessionID}); err != nil {
		return nil, err
	}
	return e.CreateSession(ctx, engine.SessionRequest{Tenant: req.Tenant, Title: req.Title, Metadata: req.Metadata, IdempotencyKey: req.IdempotencyKey})
}

// Import implements server.Trees.
func (e *fake) Import(ctx context.Context, req engine.ImportRequest) (*engine.Imported, error) {
	raw, err := io.ReadAll(req.File)
	if err != nil || !strings.HasPrefix(string(raw), "{") {
		return nil, &fault.Error{Kind: fault.Invalid, Field: "file", Err: fmt.Errorf("line 1: %q", raw)}
	}
	v, err := e.CreateSession(ctx, engine.SessionRequest{Tenant: req.Tenant, Title: req.Title})
	if err != nil {
		return nil, err
	}
	return &engine.Imported{SessionView: v, Format: "agentd", Entries: strings.Count(string(raw), "\n") - 1}, nil
}

// Export implements server.Trees.
func (e *fake) Export(ctx context.Context, ref engine.Ref, o engine.ExportOptions) (func(io.Writer) error, error) {
	if _, err := e.Session(ctx, ref); err != nil {
		return nil, err
	}
	return func(w io.Writer) error {
		_, err := io.WriteString(w, `{"type":"session"}`+"\n")
		if err == nil && !o.NoArtifacts {
			_, err = io.WriteString(w, `{"type":"artifact"}`+"\n")
		}
		return err
	}, nil
}

// Converse implements server.Trees: nothing is known of any conversation.
func (e *fake) Converse(ctx context.Context, c *engine.Conversation) (engine.Place, error) {
	v, err := e.CreateSession(ctx, engine.SessionRequest{Tenant: c.Tenant, IdempotencyKey: "c" + c.User + "/" + c.Name})
	if err != nil {
		return engine.Place{}, err
	}
	return engine.Place{SessionID: v.ID, From: engine.Root}, nil
}
