package postgres

import (
	"context"
	"encoding/binary"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

// journalChunk is how many rows of the journal are asked for at a time: a row is as
// large as a commit was, and an answer that nobody wants is still sent whole.
const journalChunk = 128

// journalColumns brings the dictionary of a row along, where it has one.
const journalColumns = `SELECT j.key, j.last_seq, j.body, j.entries, CASE WHEN j.entries > 0
	THEN (SELECT string_agg(int4send(length(coalesce(e.body, ''))) || coalesce(e.body, ''), ''::bytea ORDER BY e.key)
		FROM entries e WHERE e.key >= j.entry AND e.key < j.entry + j.entries) END FROM journal j `

// journalRows calls each with the key, the last number and the content of every row of
// the journal that where selects, and gives how many these are. io.EOF from each ends it.
func (s *Store) journalRows(ctx context.Context, q querier, runID, where string, each func(key, lastSeq int64, content []byte) error, args ...any) (n int, err error) {
	err = query(ctx, q, journalColumns+where, func(r row) error {
		n++
		body := r.Blob(2)
		var dict [][]byte
		if entries := r.Int(3); entries > 0 {
			if dict = pieces(r.Blob(4)); int64(len(dict)) != entries {
				return form.ErrDamaged
			}
			for i, d := range dict {
				var err error
				if dict[i], err = s.codec.UnpackBody(d); err != nil {
					return err
				}
			}
		}
		content, err := s.codec.Unpack(body, append(dict, form.JournalKey(body, runID))...)
		if err != nil {
			return err
		}
		return each(r.Int(0), r.Int(1), content)
	}, args...)
	return n, err
}

// Events implements store.JournalReader. What it holds in memory is a chunk of the
// journal and its answer, however long the run is.
func (s *Store) Events(ctx context.Context, tenant, runID string, after int64, limit int) ([]*store.Event, error) {
	const where = `WHERE j.run = (SELECT key FROM runs WHERE tenant = (SELECT key FROM tenants WHERE id = $1) AND id = $2) AND j.last_seq > $3 ORDER BY j.last_seq LIMIT $4`
	var out []*store.Event
	full := func() bool { return limit > 0 && len(out) >= limit }
	chunk := journalChunk
	if limit > 0 {
		chunk = min(chunk, limit) // a row has an event at least
	}
	for last := after; ; {
		var part []*store.Event
		var n int
		at := last
		err := s.read(ctx, func() (err error) {
			part, at = part[:0], last
			n, err = s.journalRows(ctx, s.pool, runID, where, func(_, seq int64, b []byte) error {
				at = seq
				return form.Decode(runID, b, func(e *store.Event) bool {
					if e.Seq > after {
						part = append(part, e)
					}
					return true
				}, nil)
			}, tenant, runID, last, chunk)
			return err
		})
		if err != nil {
			return nil, s.damaged("events of run "+runID, err)
		}
		last = at
		out = append(out, part...)
		if full() {
			return out[:limit], nil
		}
		if n < chunk {
			break
		}
	}
	if len(out) == 0 {
		return nil, s.exists(ctx, "runs", "run", tenant, runID)
	}
	return out, nil
}

// Trace implements store.JournalReader. What it holds in memory is a chunk of the
// journal and its answer; what comes before after is read and dropped.
func (s *Store) Trace(ctx context.Context, tenant, runID string, after, limit int) ([]*store.Trace, error) {
	// Rows without events have no number, so pages go by the key.
	const where = `WHERE j.run = (SELECT key FROM runs WHERE tenant = (SELECT key FROM tenants WHERE id = $1) AND id = $2) AND j.key > $3 ORDER BY j.key LIMIT $4`
	var out []*store.Trace
	seen := 0
	for last := int64(0); ; {
		var part []*store.Trace
		var n int
		at := last
		err := s.read(ctx, func() (err error) {
			part, at = part[:0], last
			n, err = s.journalRows(ctx, s.pool, runID, where, func(key, _ int64, b []byte) error {
				at = key
				return form.Decode(runID, b, nil, func(t *store.Trace) { part = append(part, t) })
			}, tenant, runID, last, journalChunk)
			return err
		})
		if err != nil {
			return nil, s.damaged("trace of run "+runID, err)
		}
		last = at
		for _, t := range part {
			if seen++; seen > after {
				out = append(out, t)
			}
		}
		if limit > 0 && len(out) >= limit {
			return out[:limit], nil
		}
		if n < journalChunk {
			break
		}
	}
	if seen == 0 {
		return nil, s.exists(ctx, "runs", "run", tenant, runID)
	}
	return out, nil
}

// pieces takes apart what is written one behind the other, each behind its length.
func pieces(v []byte) (out [][]byte) {
	for len(v) >= 4 {
		n := binary.BigEndian.Uint32(v)
		if v = v[4:]; uint64(n) > uint64(len(v)) {
			return nil
		}
		out = append(out, v[:n:n])
		v = v[n:]
	}
	return out
}
