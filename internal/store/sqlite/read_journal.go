package sqlite

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/internal/store/form"
)

// journalChunk is how many rows of the journal are in memory at a time while
// events are read: a row is as large as a commit was.
const journalChunk = 64

// errEnough ends the reading of rows.
var errEnough = errors.New("enough")

// Events implements store.JournalReader. What it holds in memory is a chunk of
// the journal and its answer, however long the run is.
func (s *Store) Events(ctx context.Context, tenant, runID string, after int64, limit int) ([]*store.Event, error) {
	var out []*store.Event
	full := func() bool { return limit > 0 && len(out) >= limit }
	err := s.read(ctx, func(c *conn) error {
		k, err := runKey(c, tenant, runID)
		if err != nil {
			return err
		}
		for last := after; ; {
			n, err := s.journalRows(ctx, c, runID, "WHERE run = ? AND last_seq > ? ORDER BY last_seq LIMIT ?", func(_, seq int64, b []byte) error {
				if last = seq; full() {
					return errEnough
				}
				return form.Decode(runID, b, func(e *store.Event) bool {
					if e.Seq > after {
						out = append(out, e)
					}
					return !full()
				}, nil)
			}, k, last, journalChunk)
			if err != nil || n < journalChunk {
				return err
			}
		}
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, s.damaged("events of run "+runID, err)
	}
	return out, nil
}

// Trace implements store.JournalReader. What it holds in memory is a chunk of the
// journal and its answer; what comes before after is read and dropped.
func (s *Store) Trace(ctx context.Context, tenant, runID string, after, limit int) ([]*store.Trace, error) {
	var out []*store.Trace
	full := func() bool { return limit > 0 && len(out) >= limit }
	err := s.read(ctx, func(c *conn) error {
		k, err := runKey(c, tenant, runID)
		if err != nil {
			return err
		}
		// Rows without events have no number, so pages go by the key.
		for last := int64(0); ; {
			n, err := s.journalRows(ctx, c, runID, "WHERE run = ? AND +key > ? ORDER BY key LIMIT ?", func(key, _ int64, b []byte) error {
				if last = key; full() {
					return errEnough
				}
				return form.Decode(runID, b, nil, func(t *store.Trace) {
					if after > 0 {
						after--
					} else if !full() {
						out = append(out, t)
					}
				})
			}, k, last, journalChunk)
			if err != nil || n < journalChunk {
				return err
			}
		}
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, s.damaged("trace of run "+runID, err)
	}
	return out, nil
}

// journalRows calls each with the key, the last number and the content of every row of the
// journal that where selects, and gives how many these are.
func (s *Store) journalRows(ctx context.Context, c *conn, runID, where string, each func(key, lastSeq int64, content []byte) error, args ...any) (n int, err error) {
	type packed struct {
		key, entry, n, seq int64
		body               []byte
	}
	var rows []packed
	err = c.query(ctx, "SELECT entry, entries, body, last_seq, key FROM journal "+where, func(r row) error {
		rows = append(rows, packed{r.int(4), r.int(0), r.int(1), r.int(3), r.blob(2)})
		return nil
	}, args...)
	if err != nil {
		return 0, err
	}
	var dict [][]byte
	for _, p := range rows {
		dict = dict[:0]
		if p.n > 0 {
			if err := c.query(ctx, "SELECT body FROM entries WHERE key >= ? AND key < ? ORDER BY key", func(r row) error {
				b, err := s.codec.UnpackBody(r.blob(0))
				dict = append(dict, b)
				return err
			}, p.entry, p.entry+p.n); err != nil {
				return 0, err
			}
			if int64(len(dict)) != p.n {
				return 0, form.ErrDamaged
			}
		}
		b, err := s.codec.Unpack(p.body, append(dict, form.JournalKey(p.body, runID))...)
		if err != nil {
			return 0, err
		}
		if err := each(p.key, p.seq, b); err != nil {
			return 0, err
		}
	}
	return len(rows), nil
}

// damaged names what could not be read, where the value itself is at fault.
func (s *Store) damaged(what string, err error) error {
	if !errors.Is(err, form.ErrDamaged) {
		return err
	}
	return &fault.Error{Op: "sqlite", Kind: fault.Internal, Err: fmt.Errorf("%s: %s: %w", s.path, what, err),
		Hint: "the file is damaged: restore it from a backup"}
}

const interruptColumns = `SELECT i.id, r.id, i.root_id, s.id, i.call_id, i.kind, i.prompt, i.schema, i.tool_call, i.created, i.expires,
	i.status, i.decision, i.answer, i.reason, i.answered_by, i.answered, i.key
	FROM interrupts i JOIN runs r ON r.key = i.run JOIN sessions s ON s.key = r.session
	WHERE i.tenant = (SELECT key FROM tenants WHERE id = ?)`

func interruptOf(r row) *store.Interrupt {
	return &store.Interrupt{ID: r.text(0), RunID: r.text(1), RootID: r.text(2), SessionID: r.text(3), CallID: r.text(4), Kind: r.text(5),
		Prompt: r.text(6), Schema: r.blob(7), ToolCall: r.blob(8), Created: r.int(9), Expires: r.int(10),
		InterruptAnswer: store.InterruptAnswer{Status: r.text(11), Decision: r.text(12), Answer: r.blob(13), Reason: r.text(14),
			AnsweredBy: r.text(15), Answered: r.int(16)}}
}

// Interrupt implements store.InterruptReader.
func (s *Store) Interrupt(ctx context.Context, tenant, id string) (*store.Interrupt, error) {
	var out *store.Interrupt
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, interruptColumns+" AND i.id = ?", func(r row) error {
			out = interruptOf(r)
			return nil
		}, tenant, id)
	})
	if err == nil && out == nil {
		err = refuse(store.ErrNotFound, "interrupt %s", id)
	}
	return out, err
}

// Interrupts implements store.InterruptReader.
func (s *Store) Interrupts(ctx context.Context, tenant string, f store.InterruptFilter) ([]*store.Interrupt, string, error) {
	limit, last := limitOr(f.Limit, 50), int64(0)
	if f.Cursor != "" {
		if err := form.PlaceOf(form.InterruptList, f.Cursor, &last); err != nil {
			return nil, "", err
		}
	}
	sql, args := interruptColumns+" AND i.key > ?", []any{tenant, last}
	if f.Status != "" {
		sql, args = sql+" AND i.status = ?", append(args, f.Status)
	}
	if f.RunID != "" {
		sql += ` AND i.key IN (
			SELECT key FROM interrupts WHERE run = (SELECT key FROM runs WHERE tenant = (SELECT key FROM tenants WHERE id = ?) AND id = ?)
			UNION ALL SELECT key FROM interrupts WHERE tenant = (SELECT key FROM tenants WHERE id = ?) AND root_id = ?)`
		args = append(args, tenant, f.RunID, tenant, f.RunID)
	}
	if f.Within != "" {
		sql, args = sql+" AND (r.id = ? OR substr(r.id, 1, length(?) + 1) = ? || '.')", append(args, f.Within, f.Within, f.Within)
	}
	var out []*store.Interrupt
	var next string
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, sql+" ORDER BY i.key LIMIT ?", func(r row) error {
			if len(out) == limit {
				next = form.Cursor(form.InterruptList, last)
				return nil
			}
			out = append(out, interruptOf(r))
			last = r.int(17)
			return nil
		}, append(args, limit+1)...)
	})
	if err != nil {
		return nil, "", err
	}
	return out, next, nil
}

// Blob implements store.BlobReader.
func (s *Store) Blob(ctx context.Context, tenant, id string) (*store.Blob, error) {
	hash, err := hex.DecodeString(id)
	if err != nil {
		return nil, refuse(store.ErrNotFound, "blob %q", id)
	}
	var out *store.Blob
	err = s.read(ctx, func(c *conn) error {
		return c.query(ctx, `SELECT mime_type, name, created, data FROM blobs
			WHERE tenant = (SELECT key FROM tenants WHERE id = ?) AND hash = ?`, func(r row) error {
			out = &store.Blob{ID: hex.EncodeToString(hash), MimeType: r.text(0), Name: r.text(1), Created: r.int(2), Data: r.blob(3)}
			return nil
		}, tenant, hash)
	})
	if err == nil && out == nil {
		err = refuse(store.ErrNotFound, "blob %s", id)
	}
	return out, err
}
