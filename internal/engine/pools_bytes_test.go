package engine

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// What a provider is sent is the same to the byte whichever node makes the call: what
// models wrote and schemas of tools are sent as they are.
func TestARequestIsTheSameFromEveryNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		args, schema := "{\"q\": \"a < b & c\u2028\", \"n\" : 1.50}", "{ \"type\": \"object\", \"description\": \"<any>\" }"
		var mu sync.Mutex
		var sent []*model.Request
		n := newNodes(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, req)
			if step == 0 {
				return say("", call("a", "look", args))
			}
			return say("done")
		}, toolFunc{tool.Spec{Name: "look", Effect: tool.Read, Schema: json.RawMessage(schema)}, func(context.Context, tool.Call) (tool.Result, error) {
			return tool.TextResult("ok"), nil
		}})
		n.node("maker", false, pooled("model"))
		home := n.node("home", true, pooled("run", "tool"))
		r := n.ended(home, n.started(home, StartRequest{}).ID, "completed")
		last := sent[len(sent)-1]
		i := slices.IndexFunc(last.Tools, func(s model.ToolSpec) bool { return s.Name == "look" })
		if got := string(last.Tools[i].Schema); got != schema {
			t.Errorf("schema %s", got)
		}
		if got := string(last.Messages[1].Content[0].Arguments); got != args {
			t.Errorf("arguments %s", got)
		}
		if text := n.transcript(r.SessionID); !strings.Contains(text, args) {
			t.Errorf("transcript: %s", text)
		}
	})
}

// olderHome is a store through which a home asks as homes did once: with null for a schema
// that there is none of.
type olderHome struct {
	store.Store
	store.Cluster
}

func (s olderHome) Commit(ctx context.Context, tx *store.Tx) error {
	for i := range tx.Effects {
		body := string(tx.Effects[i].Effect.Body)
		if !strings.HasPrefix(body, `{"model":`) {
			continue
		}
		body = strings.Replace(body, `,"schema":{"type":"object"}`, `,"schema":null`, 1)
		body = strings.Replace(body, `"request":{`, `"request":{"Schema":null,`, 1)
		tx.Effects[i].Effect.Body = []byte(body)
	}
	return s.Store.Commit(ctx, tx)
}

// No provider is sent null for a schema, whichever version the home is of.
func TestAnOlderHomesNullIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan *model.Request, 1)
		n := newNodes(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
			seen <- req
			return say("done")
		}, toolFunc{tool.Spec{Name: "a_look", Effect: tool.Read}, nil})
		n.node("maker", false, pooled("model"))
		home := n.node("home", true, pooled("run", "tool"), func(c *Config) { c.Store = olderHome{c.Store, c.Store.(store.Cluster)} })
		n.ended(home, n.started(home, StartRequest{}).ID, "completed")
		req := <-seen
		if len(req.Tools) == 0 || req.Tools[0].Name != "a_look" || req.Tools[0].Schema != nil || req.Schema != nil {
			t.Errorf("schema %q, of the tool %s %q", req.Schema, req.Tools[0].Name, req.Tools[0].Schema)
		}
	})
}

// What is written here reads back as what json.Marshal writes does, whatever there is of it.
func TestCallsOfPoolsReadBack(t *testing.T) {
	half := 0.5
	for _, req := range []*model.Request{
		{},
		{Model: "m", System: []model.SystemPart{{Text: "<s>", Cache: true, Name: "n"}}, Messages: []message.Message{message.User("hi"), message.ToolResult("c", "t", true, message.Text("<r>"))},
			Tools: []model.ToolSpec{{Name: "t"}, {Name: "u", Description: "d", Schema: json.RawMessage(`{"a":1}`)}}, ToolChoice: "u", SingleToolCall: true, MaxTokens: 3, Temperature: &half, TopP: &half,
			Stop: []string{"x"}, Thinking: model.ThinkingLow, JSON: true, Schema: json.RawMessage(`{"b":2}`), CacheLast: true, SessionID: "s"},
	} {
		var want, got poolCall
		plain, err := json.Marshal(poolCall{Model: &poolModel{Name: "n", Request: req}})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := (&poolModel{Name: "n", Request: req}).body()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(json.Unmarshal(plain, &want), json.Unmarshal(raw, &got)); err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		for _, r := range []*model.Request{want.Model.Request, got.Model.Request} {
			if len(r.Messages) == 0 && len(r.Tools) == 0 {
				r.Messages, r.Tools = nil, nil
			}
		}
		for i := range want.Model.Request.Tools { // json.Marshal makes "null" of what is not there, which is a schema
			if s := &want.Model.Request.Tools[i].Schema; string(*s) == "null" {
				*s = nil
			}
		}
		if s := &want.Model.Request.Schema; string(*s) == "null" {
			*s = nil
		}
		if !reflect.DeepEqual(want, got) {
			t.Errorf("got %+v\nwant %+v", got.Model.Request, want.Model.Request)
		}
	}
	for _, res := range []*poolResult{
		{Tool: &poolToolResult{IsError: true}}, {Model: &poolModelResult{Began: true, Error: &poolModelError{Class: model.ClassQuota}}},
		{Model: &poolModelResult{Reply: &message.Message{Role: message.RoleAssistant, Content: []message.Block{message.Text("x")}}}},
		{Model: &poolModelResult{Began: true, Told: 2, Reply: &message.Message{Role: message.RoleAssistant, Content: []message.Block{message.Text("x")}}}},
	} {
		var got poolResult
		if raw, err := res.body(); err != nil || json.Unmarshal(raw, &got) != nil || !reflect.DeepEqual(&got, res) {
			t.Errorf("%s became %+v, %v", raw, got, err)
		}
	}
}
