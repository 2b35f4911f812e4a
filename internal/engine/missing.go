package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"agentd/internal/store"
	"agentd/tool"
)

// warnings say what the run has to do without.
func (d *driver) warnings() []string {
	var w []string
	for _, u := range d.agent.Unreachable {
		w = append(w, u.String())
	}
	return slices.Concat(w, d.conv.unheeded, d.conv.warnings())
}

// missing says it on one line, "" if nothing is.
func missing(a *Agent) string {
	var w []string
	for _, u := range a.Unreachable {
		w = append(w, u.String()+".")
	}
	return strings.Join(w, " ")
}

// lostTool is the search for the tool of an open call that the run's agent does
// not have: after a restart its server may not be back yet. It is used outside
// the driver's goroutine and holds what it needs.
type lostTool struct {
	d     *driver
	agent *Agent
	row   store.Run
}

// find tries to reach the servers that gave no tools, and gives the tool with the
// call's arguments, or why there is none. The run goes on with what was found.
func (l *lostTool) find(ctx context.Context, name string, raw json.RawMessage) (t tool.Tool, spec tool.Spec, args json.RawMessage, why string) {
	const gone = "The tool is no longer available."
	if l.agent.Reach == nil {
		return nil, spec, nil, gone
	}
	l.agent.Reach(ctx)
	if ctx.Err() != nil {
		return nil, spec, nil, "Not executed: " + context.Cause(ctx).Error()
	}
	e, tenant := l.d.e, l.d.ref.Tenant
	a, err := e.agentOf(ctx, tenant, &l.row)
	if err != nil {
		return nil, spec, nil, "Not executed: " + describe(err)
	}
	t, spec, found := a.Tools.Lookup(name)
	switch {
	case !found && len(a.Unreachable) > 0:
		return nil, spec, nil, "Not executed: " + missing(a)
	case !found:
		return nil, spec, nil, gone
	}
	l.d.put(item{agent: a})
	l.agent = a
	args, aerr := e.validator.Prepare(spec, raw)
	if aerr != nil {
		return nil, spec, nil, aerr.Error() // the server changed its mind about them
	}
	return t, spec, args, ""
}

// adopt goes on with an agent of the run's profile that has more tools.
func (d *driver) adopt(a *Agent) {
	box, err := d.e.newToolbox(a, &d.spec.Overrides, d.row.Mode == Autonomous)
	if err != nil {
		d.e.log.Error("the tools of a server that is back can not be used", "run", d.ref.ID, "error", err)
		return
	}
	box.depth, box.deepest, box.mode = d.tools.depth, d.tools.deepest, d.tools.mode
	box.recall, box.recalled, box.untrusted = d.tools.recall, d.tools.recalled, d.tools.untrusted
	box.raw, box.prepared, box.amended = d.tools.raw, d.tools.prepared, d.tools.amended
	box.late = d.tools.late
	d.agent, d.tools = d.lead(a), box
	if late := d.tools.late; late != nil && late.Missing && len(a.Unreachable) == 0 {
		d.relist() // it was made without them
	}
	d.measured = measured{} // that was with fewer tools
}
