package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"agentd/internal/session"
	"agentd/internal/store"
)

// ExportOptions say what of a session is in its file.
type ExportOptions struct {
	// NoArtifacts leaves them out. Else the newest are in it, within [TreeLimits]; what does
	// not fit, or has no content any more, is named with the reason.
	NoArtifacts bool
}

// Export gives a session as a file (see [session.Write]): what is committed, also
// while a run is active.
func (e *Engine) Export(ctx context.Context, ref Ref, o ExportOptions) (func(w io.Writer) error, error) {
	ses, err := e.store.Session(ctx, ref.Tenant, ref.ID)
	if err != nil {
		return nil, notFound("session", ref.ID, err)
	}
	rows, err := e.store.Entries(ctx, ref.Tenant, ref.ID, "", 0)
	if err != nil {
		return nil, notFound("session", ref.ID, err)
	}
	left, err := e.store.Quarantined(ctx, ref.Tenant, ref.ID)
	if err != nil {
		return nil, notFound("session", ref.ID, err)
	}
	var artifacts []*store.Artifact
	if !o.NoArtifacts {
		if artifacts, err = e.store.Artifacts(ctx, ref.Tenant, ref.ID); err != nil {
			return nil, notFound("session", ref.ID, err)
		}
	}
	return func(w io.Writer) error {
		c := &counted{w: w}
		if err := session.Write(c, ses, rows); err != nil {
			return err
		}
		for _, q := range left {
			line, err := session.AppendQuarantine(nil, q)
			if err == nil {
				_, err = c.Write(line)
			}
			if err != nil {
				return err
			}
		}
		return e.exportArtifacts(ctx, ref.Tenant, c, artifacts)
	}, nil
}

// exportArtifacts writes artifacts, the newest first: they are what is kept longest, too.
func (e *Engine) exportArtifacts(ctx context.Context, tenant string, w *counted, artifacts []*store.Artifact) error {
	room := e.cfg.Trees.ArtifactBytes
	for _, a := range slices.Backward(artifacts) {
		x := &session.Artifact{ID: a.ID, Name: a.Name, MimeType: a.MimeType, RunID: a.RunID, CallID: a.CallID, Created: a.Created, Size: a.Size}
		switch {
		case a.Expired > 0:
			x.Without = gone(a)
		case e.cfg.Trees.ArtifactBytes > 0 && a.Size > room:
			x.Without = fmt.Sprintf("it does not fit: all of a file have at most %d bytes (sessions.max_artifact_bytes)", e.cfg.Trees.ArtifactBytes)
		default:
			b, err := e.store.Blob(ctx, tenant, a.ID)
			switch {
			case errors.Is(err, store.ErrNotFound):
				x.Without = "it is not stored any more"
			case err != nil:
				return internal("engine.Export", err)
			default:
				if x.Data = b.Data; x.Check() != nil {
					x.Data, x.Without = nil, x.Check().Error()
				}
			}
		}
		line, err := session.AppendArtifact(nil, x)
		if err != nil {
			return internal("engine.Export", err)
		}
		if l := &e.cfg.Trees; x.Without == "" && (l.LineBytes > 0 && int64(len(line)) > l.LineBytes || l.FileBytes > 0 && w.n+int64(len(line)) > l.FileBytes) {
			x.Without = "it does not fit: a line, or the file, would be too large to be read (sessions.max_line_bytes, max_file_bytes)"
			if line, err = session.AppendArtifact(nil, x); err != nil {
				return internal("engine.Export", err)
			}
		}
		if x.Without == "" {
			room -= a.Size
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// counted counts what is written.
type counted struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counted) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// imported adds what belongs to the entries of a file, whose new ids are given, and gives
// the warnings. A content that comes with a file is one that whoever sent it has: it is
// stored for the tenant under what its bytes say, and an id alone opens nothing.
func (e *Engine) imported(f *session.File, tx *store.Tx, to map[string]string, now int64) []string {
	warnings, ses := f.Warnings, tx.NewSessions[0].ID
	for _, q := range f.Quarantine {
		c := *q
		c.SessionID, c.EntryID = ses, to[q.EntryID]
		c.RunID = session.ForeignRun(q.RunID)
		if c.Created == 0 {
			c.Created = now
		}
		tx.Quarantine = append(tx.Quarantine, &c)
	}
	// Of a file that has contents which expired since, all are as new as the session: by
	// their age they would be given up at once. Their order is that in which they come.
	before := e.retention().Before
	anew := slices.ContainsFunc(f.Artifacts, func(a *session.Artifact) bool { return a.Created != 0 && a.Created < before })
	for _, a := range slices.Backward(f.Artifacts) {
		if limit := e.cfg.Artifacts.Bytes; limit > 0 && a.Size > limit {
			warnings = append(warnings, fmt.Sprintf("artifact %s is left out: it has %d bytes, and a session keeps %d (artifacts.max_bytes)", a.ID, a.Size, limit))
			continue
		}
		at := a.Created
		if at == 0 || at > now || anew {
			at = now
		}
		tx.Blobs = append(tx.Blobs, &store.Blob{ID: a.ID, MimeType: a.MimeType, Name: a.Name, Created: at, Data: a.Data})
		tx.BlobUses = append(tx.BlobUses, store.BlobUse{SessionID: ses, BlobID: a.ID, RunID: session.ForeignRun(a.RunID), CallID: a.CallID, Name: a.Name, Created: at})
	}
	return warnings
}
