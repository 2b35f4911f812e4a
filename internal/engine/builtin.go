package engine

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"strings"

	"agentd/tool"
)

// Names of the tools that the run machine itself performs.
const (
	AskUserQuestion = "ask_user_question"
	CreateSubagent  = "create_subagent"
)

//go:embed ask_user_question.md
var askDescription string

//go:embed create_subagent.md
var spawnDescription string

var errMachine = errors.New("this tool is performed by the run machine")

// askUserQuestion asks a person and waits, durably, for the answer.
type askUserQuestion struct{ freeform bool }

func (a askUserQuestion) Spec() tool.Spec {
	form := `,"schema":{"type":"object","description":"A JSON Schema, when the answer is a form."}`
	if a.freeform {
		form = ""
	}
	return tool.Spec{Name: AskUserQuestion, Label: "Ask the user", Description: strings.TrimSpace(askDescription), Kind: "ask",
		Effect: tool.Read, Source: "builtin", Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"question":{"type":"string","minLength":1,"description":"The question, complete in itself."},` +
			`"choices":{"type":"array","items":{"type":"string"},"description":"Answers to choose from; the user may still write another."}` + form +
			`},"required":["question"],"additionalProperties":false}`)}
}

func (askUserQuestion) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, errMachine
}

// question gives the prompt and the schema of the answer. A freeform one has its
// choices in the prompt and no schema.
func question(args json.RawMessage, freeform bool) (prompt string, schema json.RawMessage) {
	var q struct {
		Question string          `json:"question"`
		Choices  []string        `json:"choices"`
		Schema   json.RawMessage `json:"schema"`
	}
	if json.Unmarshal(args, &q) != nil {
		return string(args), nil
	}
	if freeform {
		for i, c := range q.Choices {
			if i == 0 {
				q.Question += "\n"
			}
			q.Question += "\n- " + c
		}
		return q.Question, nil
	}
	if len(q.Schema) == 0 && len(q.Choices) > 0 {
		examples, err := json.Marshal(q.Choices)
		if err == nil {
			q.Schema = json.RawMessage(`{"type":"string","examples":` + string(examples) + `}`)
		}
	}
	return q.Question, q.Schema
}

// createSubagent starts a child run and waits for its answer.
type createSubagent struct{ profiles []string }

func (c createSubagent) Spec() tool.Spec {
	names, err := json.Marshal(c.profiles)
	if err != nil {
		names = []byte("[]")
	}
	return tool.Spec{Name: CreateSubagent, Label: "Delegate", Description: strings.TrimSpace(spawnDescription), Kind: "spawn",
		Effect: tool.Idempotent, Source: "builtin", Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"subagent_type":{"type":"string","enum":` + string(names) + `,"description":"Which agent does it."},` +
			`"prompt":{"type":"string","minLength":1,"description":"The task, complete in itself: the subagent sees nothing else."}` +
			`},"required":["subagent_type","prompt"],"additionalProperties":false}`)}
}

func (createSubagent) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, errMachine
}

type subagentArgs struct {
	Type   string `json:"subagent_type"`
	Prompt string `json:"prompt"`
}

func subagentOf(args json.RawMessage) string {
	var a subagentArgs
	if json.Unmarshal(args, &a) != nil {
		return ""
	}
	return a.Type
}

// clientTool is declared by the client of the run, who performs it.
type clientTool struct{ c ClientTool }

func (t clientTool) Spec() tool.Spec {
	schema := t.c.Schema
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	return tool.Spec{Name: t.c.Name, Description: t.c.Description, Schema: schema, Kind: "client", Source: "client"}
}

func (clientTool) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, errors.New("this tool runs on the client")
}
