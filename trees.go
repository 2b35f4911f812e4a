package agentd

import (
	"context"
	"io"

	"agentd/internal/engine"
	"agentd/internal/profile"
)

type (
	// Tree is a session with all its entries.
	Tree = engine.TreeView
	// Node is an entry of a [Tree], without all that it says.
	Node = engine.NodeView
	// AppendRequest writes an entry behind a session's leaf.
	AppendRequest = engine.AppendRequest
	// NavigateRequest moves a session's leaf.
	NavigateRequest = engine.NavigateRequest
	// Moved is a session whose leaf moved.
	Moved = engine.Moved
	// ForkRequest makes a session of what another one has.
	ForkRequest = engine.ForkRequest
	// ExportOptions say what of a session is in its file.
	ExportOptions = engine.ExportOptions
	// ImportRequest makes a session of a file.
	ImportRequest = engine.ImportRequest
	// Imported is a session that was made of a file.
	Imported = engine.Imported
)

// EntryRoot names the beginning of a session where an entry is named.
const EntryRoot = engine.Root

func treeLimits(s *profile.Sessions) engine.TreeLimits {
	return engine.TreeLimits{Entries: s.MaxEntries, FileBytes: s.MaxFileBytes, LineBytes: s.MaxLineBytes, ArtifactBytes: s.MaxArtifactBytes}
}

// Tree gives a session with all its entries, in the order of their ids.
func (rt *Runtime) Tree(ctx context.Context, sessionID string) (*Tree, error) {
	return rt.engine.Tree(ctx, rt.ref(sessionID))
}

// AppendEntry writes an entry behind a session's leaf. An active run is a conflict.
func (rt *Runtime) AppendEntry(ctx context.Context, req AppendRequest) (*Entry, error) {
	if err := rt.writable("AppendEntry"); err != nil {
		return nil, err
	}
	req.Tenant = rt.tenant
	return rt.engine.AppendEntry(ctx, req)
}

// Navigate moves a session's leaf to one of its entries; nothing is deleted. An active
// run is a conflict.
func (rt *Runtime) Navigate(ctx context.Context, req NavigateRequest) (*Moved, error) {
	if err := rt.writable("Navigate"); err != nil {
		return nil, err
	}
	req.Tenant = rt.tenant
	return rt.engine.Navigate(ctx, req)
}

// Fork makes a session of the way to an entry of another one, or of all of it.
func (rt *Runtime) Fork(ctx context.Context, req ForkRequest) (*Session, error) {
	if err := rt.writable("Fork"); err != nil {
		return nil, err
	}
	req.Tenant = rt.tenant
	return rt.engine.Fork(ctx, req)
}

// Export writes a session as a file of one JSON object a line.
func (rt *Runtime) Export(ctx context.Context, sessionID string, w io.Writer, o ExportOptions) error {
	write, err := rt.engine.Export(ctx, rt.ref(sessionID), o)
	if err != nil {
		return err
	}
	return write(w)
}

// Import makes a session of a file of Export, or of Pi.
func (rt *Runtime) Import(ctx context.Context, req ImportRequest) (*Imported, error) {
	if err := rt.writable("Import"); err != nil {
		return nil, err
	}
	req.Tenant = rt.tenant
	return rt.engine.Import(ctx, req)
}
