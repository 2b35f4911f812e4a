package check

import (
	"encoding/json"
	"fmt"
	"strings"

	"agentd/event"
	"agentd/internal/store"
	"agentd/internal/store/form"
	"agentd/message"
)

// ended are the statuses after which nothing follows. The store knows them from
// its schema, which has them in its indexes.
func ended(status string) bool {
	return status == "completed" || status == "failed" || status == "cancelled"
}

// checkedRun is what the checks need of a run.
type checkedRun struct {
	key, session   int64
	row            store.Run
	where          string
	packed         []byte
	tenant         int64
	orphanedParent bool
}

// runs: status, numbers, state and journal of each agree.
func (k *checker) runs() error {
	var all []*checkedRun
	err := k.query(`SELECT r.key, r.session, r.id, r.status, r.epoch, r.seq, r.steps, r.created, r.started, r.ended, r.output_entry, r.state, t.id, s.id, r.tenant,
		r.parent_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM runs p WHERE p.tenant = r.tenant AND p.id = r.parent_id), r.usage
		FROM runs r JOIN sessions s ON s.key = r.session LEFT JOIN tenants t ON t.key = r.tenant ORDER BY r.key`, func(r Row) error {
		c := &checkedRun{key: r.Int(0), session: r.Int(1), packed: r.Blob(11), where: r.Text(12) + ": run " + r.Text(2), tenant: r.Int(14), orphanedParent: r.Int(15) != 0}
		c.row = store.Run{ID: r.Text(2), SessionID: r.Text(13), Created: r.Int(7)}
		c.row.Status, c.row.Epoch, c.row.Seq, c.row.Steps = r.Text(3), r.Int(4), r.Int(5), int(r.Int(6))
		c.row.Started, c.row.Ended, c.row.OutputEntry, c.row.Usage = r.Int(8), r.Int(9), r.Text(10), r.Blob(16)
		all = append(all, c)
		return k.ctx.Err()
	})
	if err != nil {
		return err
	}
	for _, c := range all {
		if err := k.run(c); err != nil {
			return err
		}
	}
	return nil
}

func (k *checker) run(c *checkedRun) error {
	bad := func(check, severity, advice, format string, args ...any) {
		k.found(store.Finding{Check: check, Severity: severity, Where: c.where, What: fmt.Sprintf(format, args...), Advice: advice}, "")
	}
	over := ended(c.row.Status)
	switch {
	case over && c.row.Ended == 0:
		bad("runs", store.SeverityWarning, "", "it is %s and has no time of its end", c.row.Status)
	case !over && c.row.Ended != 0:
		bad("runs", store.SeverityWarning, "", "it is %s and has a time of its end", c.row.Status)
	}
	if c.orphanedParent {
		bad("runs", store.SeverityNotice, "", "the run that started it is gone")
	}
	if c.row.OutputEntry != "" {
		var n int64
		if err := k.get("SELECT count(*) FROM entries WHERE session = ? AND id = ?", []*int64{&n}, c.session, c.row.OutputEntry); err != nil {
			return err
		}
		if n == 0 {
			bad("runs", store.SeverityError, "Its answer is lost; ask again in the session.", "the entry of its answer, %s, is gone", c.row.OutputEntry)
		}
	}
	if over {
		// The prompt of a run that was cancelled in the queue is the only record of
		// what it was asked: it stays with the run.
		var n int64
		if err := k.get("SELECT count(*) FROM inputs WHERE run = ? AND kind <> 'prompt'", []*int64{&n}, c.key); err != nil {
			return err
		}
		if n > 0 {
			k.found(store.Finding{Check: "inputs", Severity: store.SeverityWarning, Where: c.where,
				What: fmt.Sprintf("it has ended and has %d queued messages, which no model will see", n), Repair: "delete them"},
				"DELETE FROM inputs WHERE run = ? AND kind <> 'prompt'", c.key)
		}
	}
	if err := k.state(c); err != nil {
		return err
	}
	return k.journal(c)
}

// state: it can be unpacked, and says the same as the row.
func (k *checker) state(c *checkedRun) error {
	if len(c.packed) == 0 {
		return nil
	}
	state, err := k.codec.Unpack(c.packed)
	what := ""
	if err != nil {
		what = "its control state can not be unpacked"
	} else if k.o.State != nil {
		var open []string
		if err := k.query("SELECT id FROM interrupts WHERE run = ? AND status = 'open' ORDER BY key", func(r Row) error {
			open = append(open, r.Text(0))
			return nil
		}, c.key); err != nil {
			return err
		}
		c.row.State = state
		what = k.o.State(&c.row, open)
		c.row.State = nil
	}
	if what == "" {
		return nil
	}
	f := store.Finding{Check: "state", Severity: store.SeverityError, Where: c.where, What: what}
	if ended(c.row.Status) {
		f.Severity, f.Advice = store.SeverityNotice, "The run has ended: nothing needs its state any more."
	} else {
		f.Advice = "The run can not go on as it is. Start agentd: it ends a run whose state is unusable. Else: agentd runs cancel " + c.row.ID
	}
	k.found(f, "")
	return nil
}

// journal: every part can be read; numbers rise and are below the run's; an ended
// run has told so, once and last; what its steps used is in the sums.
func (k *checker) journal(c *checkedRun) error {
	var last, terminal int64
	var used message.Usage
	lastType := ""
	steps := 0
	what := ""
	note := func(format string, args ...any) {
		if what == "" {
			what = fmt.Sprintf(format, args...)
		}
	}
	for key := int64(0); ; {
		n, err := k.db.Journal(k.ctx, c.row.ID, c.key, key, journalChunk, func(at, seq int64, b []byte) error {
			key = at
			first := last
			err := form.Decode(c.row.ID, b, func(e *store.Event) bool {
				k.report.Events++
				if e.Seq <= last {
					note("event %d comes after %d", e.Seq, last)
				}
				if terminal != 0 {
					note("event %d (%s) comes after its end", e.Seq, e.Type)
				}
				last, lastType = e.Seq, e.Type
				if event.Type(e.Type).Terminal() {
					terminal = e.Seq
				}
				if e.Type == string(event.StepCompleted) {
					steps++
					var s struct{ Usage *message.Usage }
					if json.Unmarshal(e.Data, &s) == nil && s.Usage != nil {
						used.Add(s.Usage)
					}
				}
				return true
			}, func(*store.Trace) {})
			if last > first && last != seq {
				note("a part of its journal ends with event %d and says %d", last, seq)
			}
			return err
		})
		if err != nil {
			if k.db.Failed(err) || k.ctx.Err() != nil {
				return err
			}
			k.found(store.Finding{Check: "journal", Severity: store.SeverityError, Where: c.where,
				What:   "a part of its events and trace can not be read (" + err.Error() + "): readers stop there",
				Advice: "The conversation is not touched by it. Restore the file from a backup if the events matter."}, "")
			return nil
		}
		if n < journalChunk {
			break
		}
	}
	switch {
	case last > c.row.Seq:
		note("event %d is above the run's last number, %d", last, c.row.Seq)
	case ended(c.row.Status) && terminal == 0 && last > 0:
		note("it is %s, and its last event is %s: who follows it waits for an end that does not come", c.row.Status, lastType)
	case ended(c.row.Status) && terminal != 0 && !strings.HasSuffix(lastType, c.row.Status):
		note("it is %s, and its last event is %s", c.row.Status, lastType)
	case !ended(c.row.Status) && terminal != 0:
		note("it is %s, and has told its end (%s)", c.row.Status, lastType)
	}
	if what != "" {
		k.found(store.Finding{Check: "events", Severity: store.SeverityError, Where: c.where, What: what, Advice: "Readers may miss something; the conversation is not touched by it."}, "")
	}
	return k.spent(c, &used, steps)
}

// spent: sums and events of a run agree. Calls that failed are in the sums alone.
func (k *checker) spent(c *checkedRun, used *message.Usage, steps int) error {
	if used.TotalTokens == 0 && used.Prompt()+used.Output == 0 {
		return nil
	}
	var calls, in, out, read, write, cost int64
	if err := k.get(`SELECT CAST(coalesce(sum(calls), 0) AS bigint), CAST(coalesce(sum(input), 0) AS bigint), CAST(coalesce(sum(output), 0) AS bigint),
		CAST(coalesce(sum(cache_read), 0) AS bigint), CAST(coalesce(sum(cache_write), 0) AS bigint), CAST(coalesce(sum(cost), 0) AS bigint) FROM usage WHERE tenant = ? AND session = ? AND run = ?`,
		[]*int64{&calls, &in, &out, &read, &write, &cost}, c.tenant, c.session, c.key); err != nil {
		return err
	}
	if calls == 0 || in < used.Input || out < used.Output || read < used.CacheRead || write < used.CacheWrite || cost < int64(used.Cost.Total) {
		k.found(store.Finding{Check: "usage", Severity: store.SeverityWarning, Where: c.where,
			What: fmt.Sprintf("its %d steps say %d tokens in and %d out for $%s, the sums have %d, %d and $%s", steps, used.Prompt(), used.Output, used.Cost.Total,
				in+read+write, out, message.Money(cost)), Advice: "Bills and budgets count the lower number. The events of the run have the true one."}, "")
	}
	return nil
}

// interrupts: open ones belong to runs that wait, and runs that wait have one.
func (k *checker) interrupts() error {
	err := k.query(`SELECT i.key, i.id, r.status, t.id FROM interrupts i JOIN runs r ON r.key = i.run LEFT JOIN tenants t ON t.key = i.tenant
		WHERE i.status = 'open' AND r.status NOT IN ('running', 'paused_checkpoint')`, func(r Row) error {
		f := store.Finding{Check: "interrupts", Severity: store.SeverityWarning, Where: r.Text(3) + ": interrupt " + r.Text(1),
			What: "it is open, but its run is " + r.Text(2) + ": an answer would reach nobody"}
		if !ended(r.Text(2)) {
			k.found(f, "")
			return nil
		}
		f.Repair = "close it as cancelled"
		k.found(f, "UPDATE interrupts SET status = 'cancelled', reason = 'the run had ended', answered = ? WHERE key = ?", k.o.Now, r.Int(0))
		return nil
	})
	if err != nil {
		return err
	}
	// A run that waits for its subagents' people has none of its own.
	return k.query(`SELECT r.id, t.id FROM runs r LEFT JOIN tenants t ON t.key = r.tenant WHERE r.status = 'paused_checkpoint'
		AND NOT EXISTS (SELECT 1 FROM interrupts i WHERE i.run = r.key AND i.status = 'open')
		AND NOT EXISTS (SELECT 1 FROM runs c WHERE c.tenant = r.tenant AND c.parent_id = r.id AND c.status NOT IN ('completed', 'failed', 'cancelled'))`, func(r Row) error {
		k.found(store.Finding{Check: "interrupts", Severity: store.SeverityError, Where: r.Text(1) + ": run " + r.Text(0),
			What: "it waits for a person, but nothing is asked: it would wait for ever", Advice: "agentd runs cancel " + r.Text(0)}, "")
		return nil
	})
}
