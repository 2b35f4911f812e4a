package sqlite

import (
	"agentd/internal/store"
)

func (a *applier) newRun(t int64, r *store.Run, state, spec []byte) error {
	s, err := a.session(t, r.SessionID)
	if err != nil {
		return err
	}
	_, k, err := a.c.exec(`INSERT INTO runs (tenant, session, id, status, epoch, seq, steps, created, started, ended,
			stop_reason, output_entry, root_id, parent_id, parent_call, profile, version, mode,
			idempotency_key, request_hash, error, usage, state, user)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		t, s.key, r.ID, r.Status, r.Epoch, r.Seq, r.Steps, r.Created, r.Started, r.Ended,
		text(r.StopReason), text(r.OutputEntry), text(r.RootID), text(r.ParentID), text(r.ParentCall),
		text(r.Profile), text(r.Version), text(r.Mode),
		text(r.IdempotencyKey), text(r.RequestHash), blob(r.Error), blob(r.Usage), blob(state), text(r.User))
	if primary(err) == codeConstraint {
		return a.whyNoRun(t, s, r)
	}
	if err != nil {
		return err
	}
	if len(spec)+len(r.Metadata) > 0 {
		if _, _, err := a.c.exec("INSERT INTO run_specs (run, spec, metadata) VALUES (?, ?, ?)", k, blob(spec), blob(r.Metadata)); err != nil {
			return err
		}
	}
	remember(a.runs, rowName{t, r.ID}, &runRow{key: k, session: s.key, epoch: r.Epoch, status: r.Status})
	return nil
}

// whyNoRun finds out which of the unique indexes refused a run.
func (a *applier) whyNoRun(t int64, s *sessionRow, r *store.Run) error {
	if r.IdempotencyKey != "" {
		var id, hash string
		ok, err := a.c.get("SELECT id, request_hash FROM runs WHERE tenant = ? AND idempotency_key = ?", []any{&id, &hash}, t, r.IdempotencyKey)
		if err != nil {
			return err
		}
		if ok {
			return refuse(&store.ExistsError{RunID: id, SameRequest: hash == r.RequestHash}, "idempotency key %q", r.IdempotencyKey)
		}
	}
	old, err := a.findRun(t, r.ID)
	if err != nil {
		return err
	}
	if old != nil {
		return refuse(store.ErrConflict, "run %s exists", r.ID)
	}
	return a.busy(s.key, r.SessionID)
}

func (a *applier) busy(session int64, sessionID string) error {
	var id string
	if _, err := a.c.get("SELECT id FROM runs WHERE session = ? AND status IN ('running', 'paused_checkpoint')", []any{&id}, session); err != nil {
		return err
	}
	return refuse(store.ErrSessionBusy, "session %s, run %s", sessionID, id)
}

func (a *applier) changeRun(t int64, r *store.RunChange, state []byte) error {
	old, err := a.runRow(t, r.ID)
	if err != nil {
		return err
	}
	if r.Status == old.status {
		// Without status in the statement its indexes are left alone.
		_, _, err = a.c.exec(`UPDATE runs SET stop_reason = ?, epoch = ?, seq = ?, state = ?, output_entry = ?, error = ?, usage = ?,
			steps = ?, started = ?, ended = ? WHERE key = ?`,
			text(r.StopReason), r.Epoch, r.Seq, blob(state), text(r.OutputEntry), blob(r.Error), blob(r.Usage),
			r.Steps, r.Started, r.Ended, old.key)
	} else {
		_, _, err = a.c.exec(`UPDATE runs SET stop_reason = ?, epoch = ?, seq = ?, state = ?, output_entry = ?, error = ?, usage = ?,
			steps = ?, started = ?, ended = ?, status = ? WHERE key = ?`,
			text(r.StopReason), r.Epoch, r.Seq, blob(state), text(r.OutputEntry), blob(r.Error), blob(r.Usage),
			r.Steps, r.Started, r.Ended, r.Status, old.key)
		if primary(err) == codeConstraint {
			var session string
			if _, err := a.c.get("SELECT id FROM sessions WHERE key = ?", []any{&session}, old.session); err != nil {
				return err
			}
			return a.busy(old.session, session)
		}
	}
	if err != nil {
		return err
	}
	if r.Ended > 0 && r.Status != old.status {
		// Who ends gives itself back.
		if _, _, err = a.c.exec("DELETE FROM claims WHERE run = ?", old.key); err != nil {
			return err
		}
	}
	old.epoch, old.status = r.Epoch, r.Status
	return nil
}

func (a *applier) inputs(t int64, tx *store.Tx) error {
	for _, in := range tx.Inputs {
		r, err := a.runRow(t, in.RunID)
		if err != nil {
			return err
		}
		_, _, err = a.c.exec("INSERT INTO inputs (run, id, kind, created, body) VALUES (?, ?, ?, ?, ?)",
			r.key, in.ID, in.Kind, in.Created, blob(in.Body))
		if primary(err) == codeConstraint {
			return refuse(store.ErrConflict, "input %s of run %s exists", in.ID, in.RunID)
		}
		if err != nil {
			return err
		}
	}
	for _, in := range tx.DropInputs {
		r, err := a.runRow(t, in.RunID)
		if err != nil {
			return err
		}
		n, _, err := a.c.exec("DELETE FROM inputs WHERE run = ? AND id = ?", r.key, in.ID)
		if err != nil {
			return err
		}
		if n == 0 {
			// Somebody has taken it already: to go on would take it twice.
			return refuse(store.ErrNotFound, "input %s of run %s", in.ID, in.RunID)
		}
	}
	return nil
}

func (a *applier) interrupts(t int64, tx *store.Tx) error {
	for _, i := range tx.NewInterrupts {
		r, err := a.runRow(t, i.RunID)
		if err != nil {
			return err
		}
		if i.SessionID != "" {
			s, err := a.session(t, i.SessionID)
			if err != nil {
				return err
			}
			if s.key != r.session {
				return invalid("interrupt %s: run %s is not of session %s", i.ID, i.RunID, i.SessionID)
			}
		}
		_, _, err = a.c.exec(`INSERT INTO interrupts (tenant, run, id, root_id, call_id, kind, prompt, schema, tool_call,
				created, expires, status, decision, answer, reason, answered_by, answered)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			t, r.key, i.ID, text(i.RootID), text(i.CallID), i.Kind, text(i.Prompt), blob(i.Schema), blob(i.ToolCall),
			i.Created, i.Expires, i.Status, text(i.Decision), blob(i.Answer), text(i.Reason), text(i.AnsweredBy), i.Answered)
		if primary(err) == codeConstraint {
			return refuse(store.ErrConflict, "interrupt %s exists", i.ID)
		}
		if err != nil {
			return err
		}
	}
	for _, c := range tx.Answers {
		n, _, err := a.c.exec(`UPDATE interrupts SET status = ?, decision = ?, answer = ?, reason = ?, answered_by = ?, answered = ?
			WHERE tenant = ? AND id = ? AND status = 'open'`,
			c.Status, text(c.Decision), blob(c.Answer), text(c.Reason), text(c.AnsweredBy), c.Answered, t, c.ID)
		if err != nil {
			return err
		}
		if n == 1 {
			continue
		}
		var status string
		ok, err := a.c.get("SELECT status FROM interrupts WHERE tenant = ? AND id = ?", []any{&status}, t, c.ID)
		if err != nil {
			return err
		}
		if !ok {
			return refuse(store.ErrNotFound, "interrupt %s", c.ID)
		}
		return refuse(store.ErrConflict, "interrupt %s is %s", c.ID, status)
	}
	return nil
}
