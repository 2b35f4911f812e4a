package session

import (
	"encoding/json"

	"agentd/internal/store"
)

// Rename gives copies of entries for another session, under ids of next, which has to
// give rising ones: parents come ahead of their children, as in a file. What entries
// say of each other goes with them; what they say of entries that are not among them
// stays as it is. Runs become [Foreign], and what asked for a branch is left out. ids are the new ids by the old ones.
func Rename(entries []*store.Entry, sessionID string, next func() string) (out []*store.Entry, ids map[string]string) {
	ids = make(map[string]string, len(entries))
	for _, e := range entries {
		ids[e.ID] = next()
	}
	out = make([]*store.Entry, len(entries))
	for i, e := range entries {
		c := *e
		c.SessionID, c.ID, c.Parent = sessionID, ids[e.ID], ids[e.Parent]
		c.RunID = ForeignRun(e.RunID)
		c.Body = rename(e.Kind, Unasked(e.Kind, e.Body), ids)
		out[i] = &c
	}
	return out, ids
}

// ForeignRun names a run of another session, or of another store; see [Foreign].
func ForeignRun(run string) string {
	if run == "" || len(run) > len(Foreign) && run[:len(Foreign)] == Foreign {
		return run
	}
	return Foreign + run
}

// naming are the members with which entries of the known kinds name others. All others
// may say the same as an id by chance: names of files in a compaction, for one.
func naming(kind, member string) bool {
	switch kind {
	case KindCompaction:
		return member == "first_kept" || member == "firstKeptId" || member == "shortened"
	case KindBranch, KindBranchSummary:
		return member == "from"
	case KindLabel:
		return member == "target"
	}
	return member != "label" && member != "summary"
}

// rename puts new ids into what an entry says of others: the members of the body that
// are an id, or a list of them; in kinds that this agentd does not know, whatever is one.
// What people and applications wrote is left alone.
func rename(kind string, body json.RawMessage, ids map[string]string) json.RawMessage {
	switch kind {
	case KindMessage, KindCustom, KindFork, KindRollback, KindModelChange, KindModeChange, KindThinkingChange:
		return body
	}
	var with map[string]json.RawMessage
	if json.Unmarshal(body, &with) != nil {
		return body
	}
	changed := false
	if raw := with["shortened"]; kind == KindCompaction && len(raw) > 0 {
		var short []Shortened
		if json.Unmarshal(raw, &short) == nil {
			for i := range short {
				if id, ok := ids[short[i].Entry]; ok {
					short[i].Entry, changed = id, true
				}
			}
			if b, err := json.Marshal(short); err == nil && changed {
				with["shortened"] = b
			}
		}
	}
	for k, raw := range with {
		if !naming(kind, k) || len(raw) == 0 {
			continue
		}
		var one string
		var many []string
		switch {
		case raw[0] == '"' && json.Unmarshal(raw, &one) == nil:
			if id, ok := ids[one]; ok {
				with[k], changed = quoted(id), true
			}
		case raw[0] == '[' && json.Unmarshal(raw, &many) == nil:
			hit := false
			for i, s := range many {
				if id, ok := ids[s]; ok {
					many[i], hit = id, true
				}
			}
			if b, err := json.Marshal(many); hit && err == nil {
				with[k], changed = b, true
			}
		}
	}
	if !changed {
		return body
	}
	switch kind { // in the order that they are written in
	case KindBranch, KindBranchSummary, KindLabel:
		if b, err := json.Marshal(with); err == nil {
			if b, err := CheckData(kind, b); err == nil {
				return b
			}
		}
		return body
	}
	b, err := json.Marshal(with)
	if err != nil {
		return body
	}
	return b
}

func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s)
	return b
}
