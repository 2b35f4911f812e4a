package engine

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"agentd/fault"
	"agentd/internal/run"
)

// steerable refuses a request with when_busy: steer that asks for more than the
// active run can give: its input alone reaches that run, and whoever asked for
// another agent, mode or limit must not believe to have it. Nothing that was left
// out is asked for.
func (e *Engine) steerable(ctx context.Context, req *StartRequest, active Ref) error {
	row, err := e.store.Run(ctx, active.Tenant, active.ID)
	if err != nil || run.Status(row.Status).Ended() {
		return nil // it starts a run of its own, or the steering says what is wrong
	}
	refused := func(field, format string, args ...any) error {
		return &fault.Error{Kind: fault.Conflict, Field: field, Err: fmt.Errorf("run "+row.ID+", which is active in the session, "+format, args...),
			Hint: "Leave it out to steer that run, or start one of its own with when_busy: enqueue or interrupt."}
	}
	if !req.Defaulted && req.Profile != "" {
		name, version, _ := strings.Cut(req.Profile, "@")
		if name != row.Profile || version != "" && version != row.Version {
			return refused("profile", "is of profile %s, not %s", profileRef(row.Profile, row.Version), req.Profile)
		}
	}
	o, none := req.Overrides, Overrides{}
	switch {
	case !req.anyMode && req.Mode != row.Mode:
		return refused("mode", "is %s, not %s", row.Mode, req.Mode)
	case req.SessionMode != "" && modeOf(row) == "":
		return refused("session_mode", "did not start yet, so its mode is not known")
	case req.SessionMode != "" && req.SessionMode != modeOf(row):
		return refused("session_mode", "is in mode %s, which a message can not change", modeOf(row))
	case o.MaxSteps != 0 || o.MaxToolCalls != 0 || o.MaxRunTimeSeconds != 0 || o.MaxOutputTokens != 0 || o.MaxCostUSD != 0 || o.MaxTokens != 0:
		return refused("budget", "has its own budget, which a message can not change")
	case o.NoTools || len(o.ClientTools) > 0 || o.ToolChoice != "" || o.SingleToolCall:
		return refused("tools", "has its own tools, which a message can not change")
	case !reflect.DeepEqual(o, none):
		return refused("overrides", "has its own settings, which a message can not change")
	}
	return nil
}
