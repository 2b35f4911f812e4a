package engine

import (
	"encoding/json"
	"slices"

	"agentd/event"
	"agentd/internal/prompt"
	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
)

// writeCompaction writes the entry, and goes on with what is left of the conversation.
func (d *driver) writeCompaction(tx *store.Tx, w run.AppendCompaction, now int64) {
	made, c := d.compacted, &d.conv
	if d.spec.Leaves != nil {
		d.writeLeft(tx, w, now)
		return
	}
	c.reduced = max(c.reduced, now)
	short := made.body.Shortened[made.before:]
	for i := range short {
		short[i].At = c.reduced
	}
	body, err := json.Marshal(&made.body)
	if err != nil {
		d.e.log.Error("a compaction can not be stored", "run", d.ref.ID, "error", err)
		return
	}
	tx.Entries = append(tx.Entries, &store.Entry{SessionID: d.row.SessionID, ID: w.Entry, Parent: w.Parent, Kind: session.KindCompaction,
		RunID: d.ref.ID, Created: now, Body: body})
	var last replyAt
	if all := d.replies(len(c.messages)); len(all) > 0 {
		last = all[0]
	}
	var msgs []message.Message
	var origins []origin
	if m, ok := made.body.Message(now); ok {
		msgs, origins = append(msgs, prompt.Neutral(m)), append(origins, origin{entry: w.Entry, run: d.ref.ID, own: true})
	}
	for i := made.to; i < len(c.messages); i++ {
		m := c.messages[i]
		if k := slices.IndexFunc(short, func(s session.Shortened) bool { return s.Entry == c.origins[i].entry }); k >= 0 {
			m = short[k].Apply(m)
		}
		o := c.origins[i]
		o.kept = true
		msgs, origins = append(msgs, m), append(origins, o)
	}
	c.messages, c.origins, c.tip = msgs, origins, w.Entry
	c.tell()
	c.made = &session.Made{Compaction: made.body, At: now, Reply: last.entry, ReplyRun: last.run}
	d.measured, d.scratches, d.tooLarge = measured{}, nil, ""
	d.relist()
}

// usage is the sum of what was used; nil if nothing was.
func (m *compactionMade) usage() (sum *message.Usage) {
	for _, u := range m.usages {
		if u.usage == nil {
			continue
		}
		if sum == nil {
			sum = &message.Usage{}
		}
		sum.Add(u.usage)
	}
	return sum
}

// chargeCompaction notes what the compaction used, whatever came of it.
func (d *driver) chargeCompaction(tx *store.Tx, now int64) {
	if d.compacted != nil {
		d.compacted.charge(d, tx, now)
	}
}

func (m *compactionMade) charge(d *driver, tx *store.Tx, now int64) {
	for _, u := range m.usages {
		d.charge(tx, u.provider, u.model, u.usage, now)
	}
	if m.settles != nil {
		tx.Settles = append(tx.Settles, *m.settles)
	}
}

// describeCompaction completes the event.
func (d *driver) describeCompaction(p *event.Compaction) {
	body, count := &d.compacted.body, &d.compacted.count
	p.TokensBefore, p.TokensAfter, p.Model, p.Usage = body.TokensBefore, body.TokensAfter, body.Model, body.Usage
	if body.Reason == reasonBranch {
		p.Reason = body.Reason
	}
	p.Summarised, p.Kept, p.Shortened = count.Summarised, count.Kept, count.Shortened
}
