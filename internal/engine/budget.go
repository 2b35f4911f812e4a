package engine

import (
	"encoding/json"

	"agentd/internal/run"
	"agentd/internal/store"
)

// Budget is what a request allowed its run, and what of it is used.
type Budget struct {
	Limits BudgetLimits `json:"limits"`
	Used   BudgetUsed   `json:"used"`
}

// BudgetLimits are the limits that the request gave; 0 is none. A lower one of the
// profile applies all the same.
type BudgetLimits struct {
	MaxSteps          int `json:"max_steps,omitempty"`
	MaxToolCalls      int `json:"max_tool_calls,omitempty"`
	MaxRunTimeSeconds int `json:"max_run_time_seconds,omitempty"`
	// MaxOutputTokens bounds each reply: of it nothing is used up.
	MaxOutputTokens int `json:"max_output_tokens,omitempty"`
}

// BudgetUsed is what counts against the limits.
type BudgetUsed struct {
	// Steps are those since the last message of a person.
	Steps int `json:"steps"`
	// ToolCalls includes those that were refused.
	ToolCalls int `json:"tool_calls"`
	// RunTimeSeconds leaves waits for people out. 0 where the run has no
	// clock, or has not started.
	RunTimeSeconds float64 `json:"run_time_seconds,omitempty"`
}

func (o *Overrides) limits() BudgetLimits {
	return BudgetLimits{MaxSteps: o.MaxSteps, MaxToolCalls: o.MaxToolCalls, MaxRunTimeSeconds: o.MaxRunTimeSeconds, MaxOutputTokens: o.MaxOutputTokens}
}

// budget is that of a run whose request gave one, else nil. What can not be read
// is not shown: the run's driver is who complains.
func (e *Engine) budget(row *store.Run) *Budget {
	var sp spec
	if json.Unmarshal(row.Spec, &sp) != nil || sp.Overrides.limits() == (BudgetLimits{}) {
		return nil
	}
	s, err := run.Decode(row.State)
	if err != nil {
		return nil
	}
	return &Budget{Limits: sp.Overrides.limits(), Used: BudgetUsed{Steps: s.TurnSteps, ToolCalls: s.ToolCalls, RunTimeSeconds: e.ran(&s)}}
}

// ran is the time in seconds that counts against max_run_time_seconds.
func (e *Engine) ran(s *run.State) float64 {
	left := s.Remaining
	switch {
	case s.Settings.MaxRunMS == 0 || s.Status == run.Queued:
		return 0
	case s.Deadline != 0:
		left = max(s.Deadline-e.now(), 0)
	case left == 0 && s.StopReason != "max_run_time":
		return 0 // it ended before what was left was kept
	}
	return float64(s.Settings.MaxRunMS-left) / 1000
}
