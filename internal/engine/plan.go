package engine

import (
	"context"
	_ "embed"
	"encoding/json"
	"strings"

	"agentd/tool"
)

// ProposePlan is the tool by which a model has a plan approved.
const ProposePlan = "propose_plan"

//go:embed propose_plan.md
var planDescription string

// proposePlan shows a person a plan and waits, durably, for their word.
type proposePlan struct{}

func (proposePlan) Spec() tool.Spec {
	return tool.Spec{Name: ProposePlan, Label: "Propose a plan", Description: strings.TrimSpace(planDescription), Kind: "plan",
		Effect: tool.Read, Source: "builtin", Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"plan":{"type":"string","minLength":1,"description":"The plan, in Markdown, complete in itself."}` +
			`},"required":["plan"],"additionalProperties":false}`)}
}

func (proposePlan) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, errMachine
}

// planOf is the text of a plan.
func planOf(args json.RawMessage) string {
	var a struct {
		Plan string `json:"plan"`
	}
	if json.Unmarshal(args, &a) != nil || a.Plan == "" {
		return string(args)
	}
	return a.Plan
}
