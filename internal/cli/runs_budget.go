package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"agentd/client"
	"agentd/event"
	"agentd/message"
)

// warned says that much of a limit is used.
func warned(d *event.Budget) string {
	return fmt.Sprintf("%s of %s %s is used: %s", share(d.Used, d.Cap), d.Limit, whose(d.Pot), ofCap(d.Limit, d.Used, d.Cap))
}

// share is a part in percent.
func share(part, whole json.Number) string {
	p, err1 := part.Float64()
	w, err2 := whole.Float64()
	if err1 != nil || err2 != nil || w <= 0 {
		return "much"
	}
	return strconv.Itoa(int(p*100/w)) + "%"
}

// whose names a pot.
func whose(pot string) string {
	switch pot {
	case "run":
		return "of the run and those below it"
	case "session":
		return "of the session"
	case "tenant_day":
		return "of the tenant's day"
	}
	return "of the run"
}

func ofCap(limit string, used, limited json.Number) string {
	if limit == "max_cost" {
		return "$" + used.String() + " of $" + limited.String()
	}
	return used.String() + " of " + limited.String()
}

// spent notes from the trace that a limit was in the way of the next call of the
// model, and what became of it. Events tell only of those that a person is asked about.
func (t *timeline) spent(r *client.Trace) {
	at, err := time.Parse(time.RFC3339, r.Time)
	if r.Input != "Exhausted" || err != nil {
		return
	}
	var v struct {
		Pot, Limit      string
		Cap, Used, Held int64
		Need            int64
		Final           bool
	}
	if json.Unmarshal(r.Data, &v) != nil {
		return
	}
	amount := func(n int64) json.Number {
		if v.Limit == "max_cost" {
			return json.Number(message.Money(n).String())
		}
		return json.Number(strconv.FormatInt(n, 10))
	}
	unit := ""
	if v.Limit == "max_cost" {
		unit = "$"
	}
	text := fmt.Sprintf("%s %s is in the way: %s used", v.Limit, whose(v.Pot), ofCap(v.Limit, amount(v.Used), amount(v.Cap)))
	if v.Held > 0 {
		text += ", " + unit + amount(v.Held).String() + " held by others"
	}
	if v.Need > 0 {
		text += ", the next call may need " + unit + amount(v.Need).String()
	}
	for _, e := range r.Effects {
		var d struct{ Closing string }
		if e.Kind == "Reserve" && json.Unmarshal(e.Data, &d) == nil && d.Closing != "" {
			text += "; the answer is closed, without tools"
		}
	}
	if v.Final {
		text += "; not even the end can be paid"
	}
	t.place(max(0, at.UnixMilli()-t.start), text)
}

// addProposals fills in the arguments of calls that were not made but proposed.
func addProposals(rows []*client.Proposal, t *timeline) {
	args := map[string]json.RawMessage{}
	for _, p := range rows {
		args[p.ToolCallID] = p.Args
	}
	for _, s := range t.Steps {
		for _, c := range s.Calls {
			if c.Outcome == "proposed" && len(c.Args) == 0 {
				c.Args = args[c.ID]
			}
		}
	}
}
