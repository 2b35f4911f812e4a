package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"agentd"
	"agentd/event"
	"agentd/internal/sim"
	"agentd/model/script"
	"agentd/tool"
)

// The session that caching is measured by: ten turns, each with three steps of a tool and
// an answer, which are forty requests.
const (
	cacheTurns  = 10
	cacheScript = `name: cache
turns:
  - repeat: 3
    text: "I look at the next one, and say why: it comes after the one before it."
    tool_calls: [{name: record, arguments: {id: "record-{{.Step}}"}}]
  - text: "These are the three records, and what they have in common is that they were looked up."
`
)

// record is lookup with results as long as those of the session that peers were measured
// by: forty requests of 312,000 tokens, of which 11,500 are in the last one.
type record struct{ lookup }

func (record) Spec() tool.Spec {
	s := lookup{}.Spec()
	s.Name = "record"
	return s
}

func (r record) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	res, err := r.lookup.Run(ctx, call)
	if err == nil {
		res = tool.TextResult(res.Content[0].Text[:recordBytes])
	}
	return res, err
}

const recordBytes = 620

// cacheRow is one session.
type cacheRow struct {
	name, provider, model string
	living                bool   // page, mode, environment and memory change with every turn
	tools                 bool   // so do the tools: in turn 6 one is new, in 7 one is gone, in 8 one is another
	late                  string // tools.late of the profile
}

// cache measures what providers' caches do for a session, by the simulator's rules.
func (b *bench) cache(ctx context.Context) error {
	for _, r := range []cacheRow{
		{name: "quiet, Anthropic", provider: "anthropic", model: "claude-sonnet-5"},
		{name: "quiet, OpenAI in steps of 128", provider: "openai", model: "gpt-5.4"},
		{name: "quiet, OpenAI since GPT-5.6", provider: "openai", model: "gpt-6-sol"},
		{name: "living, Anthropic", provider: "anthropic", model: "claude-sonnet-5", living: true},
		{name: "living, OpenAI in steps of 128", provider: "openai", model: "gpt-5.4", living: true},
		{name: "living, OpenAI since GPT-5.6", provider: "openai", model: "gpt-6-sol", living: true},
		{name: "quiet, Gemini", provider: "gemini", model: "gemini-3.8-flash"},
		{name: "living, Gemini", provider: "gemini", model: "gemini-3.8-flash", living: true},
		{name: "living with other tools, Anthropic", provider: "anthropic", model: "claude-sonnet-5", living: true, tools: true, late: "gateway"},
		{name: "living with other tools, OpenAI in steps of 128", provider: "openai", model: "gpt-5.4", living: true, tools: true, late: "gateway"},
		{name: "living with other tools, OpenAI since GPT-5.6", provider: "openai", model: "gpt-6-sol", living: true, tools: true, late: "gateway"},
		{name: "living with other tools, Gemini", provider: "gemini", model: "gemini-3.8-flash", living: true, tools: true, late: "gateway"},
		{name: "living with other tools in the list (late: append), Anthropic", provider: "anthropic", model: "claude-sonnet-5", living: true, tools: true, late: "append"},
	} {
		if err := b.cacheSession(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

func (b *bench) cacheSession(ctx context.Context, r cacheRow) error {
	s, err := script.Parse("cache.yaml", []byte(cacheScript))
	if err != nil {
		return err
	}
	server := httptest.NewServer(sim.New(sim.Options{Scripts: []*script.Script{s}}))
	defer server.Close()
	dir, err := b.cacheConfigs(r, server.URL)
	if err != nil {
		return err
	}
	rt, err := agentd.Open(ctx, agentd.Config{Configs: dir, Data: ":memory:", Tools: []tool.Tool{record{}}})
	if err != nil {
		return err
	}
	defer rt.Close()
	session := ""
	for turn := range cacheTurns {
		run, err := rt.Start(ctx, cacheTurn(r, session, turn))
		if err != nil {
			return err
		}
		if run, err = rt.Wait(ctx, run.ID); err != nil {
			return err
		} else if run.Status != "completed" {
			return fmt.Errorf("turn %d is %s: %+v", turn, run.Status, run.Error)
		}
		session = run.SessionID
	}
	history, err := rt.Cache(ctx, session, "", 0)
	if err != nil {
		return err
	}
	b.cacheFigures(r, history)
	return nil
}

// cacheFigures compares what was read with what there was to read: all that the request
// before had sent.
func (b *bench) cacheFigures(r cacheRow, h *agentd.Cache) {
	var prompt, read, possible, before, reachable int64
	var breaks []*event.CacheBreak
	price := 0.0
	for i := range h.Steps {
		s := &h.Steps[i]
		all := s.Input + s.CacheRead + s.CacheWrite
		left := before
		if r.model == "gpt-5.4" || r.provider == "gemini" { // caches of these end at steps of 128
			left -= left % 128
		}
		possible += left
		if s.Broken == nil || s.Broken.Part != "tool" {
			reachable += left
		} else {
			breaks = append(breaks, s.Broken)
		}
		prompt, read, before = prompt+all, read+s.CacheRead, all
		price += float64(s.Input) + 0.1*float64(s.CacheRead) + 1.25*float64(s.CacheWrite)
	}
	name := "cache, " + r.name
	b.note(name+": requests, tokens of prompts, read", "%d, %d, %.1f %%", len(h.Steps), prompt, 100*float64(read)/float64(prompt))
	part := 100 * float64(read) / float64(possible)
	switch {
	case r.tools && r.late == "append":
		b.note(name+": read of what was sent before", "%.2f %% (broken by: %s)", part, breakNames(breaks))
		b.atLeast(name+": of what was sent before with the same tools", 100*float64(read)/float64(reachable), 98, "%")
	case r.living:
		b.atLeast(name+": read of what was sent before", part, 98, "%")
	default:
		b.atLeast(name+": read of what was sent before", part, 99.5, "%")
	}
	if r.provider == "anthropic" && !r.living {
		of := price / float64(prompt)
		b.rows = append(b.rows, row{name + ": price of prompts against uncached", fmt.Sprintf("%.4f", of), "≤ 0.142", verdict(of < 0.1425)})
	} else {
		b.note(name+": price of prompts against uncached (written 1.25x, read 0.1x)", "%.3f", price/float64(prompt))
	}
	if r.provider == "anthropic" {
		b.note(name+": saved, as agentd bills it", "$%s of $%s", h.Total.Saved, h.Total.Saved+h.Total.Cost)
	}
}

func breakNames(breaks []*event.CacheBreak) string {
	var names []string
	for _, b := range breaks {
		names = append(names, b.Part+" "+b.Name+" "+b.Change)
	}
	return strings.Join(names, ", ")
}

// cacheTurn is the request of a turn.
func cacheTurn(r cacheRow, session string, turn int) agentd.StartRequest {
	req := agentd.StartRequest{Profile: "cache", SessionID: session,
		Input: agentd.Text(fmt.Sprintf("Turn %d: look at the next three records and tell me what they have in common, please.", turn+1))}
	if !r.living {
		return req
	}
	req.Page = json.RawMessage(fmt.Sprintf(`{"url": "/records/%d", "title": "Record %d", "selected": [%d, %d]}`, turn, turn, turn, turn+7))
	req.Context = json.RawMessage(fmt.Sprintf(`{"mode": %q, "environment": {"branch": "work-%d", "changed": %d}, "memory": "the person prefers answer %d"}`,
		[]string{"ask", "edit", "plan"}[turn%3], turn, turn*3, turn))
	if !r.tools {
		return req
	}
	client := func(name, description string) {
		req.Overrides.ClientTools = append(req.Overrides.ClientTools, agentd.ClientTool{Name: name, Description: description,
			Schema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"}}}`)})
	}
	if turn >= 5 {
		client("zoom", "Shows a record larger.")
	}
	if turn < 6 {
		client("sketch", "Draws a record.")
	}
	client("select", []string{"Selects a record.", "Selects a record, and scrolls to it."}[turn/7])
	return req
}

func (b *bench) cacheConfigs(r cacheRow, url string) (string, error) {
	dir, err := b.folder("cache")
	if err != nil {
		return "", err
	}
	for _, sub := range []string{"agents", "mcp"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			return "", err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "mcp", "servers.yaml"), []byte("servers: {}\n"), 0o600); err != nil {
		return "", err
	}
	if r.provider == "openai" {
		url += "/v1"
	}
	// Some 4,000 tokens, as the prompts of the peers' measurement had.
	var system strings.Builder
	for i := 0; system.Len() < 15_500; i++ {
		fmt.Fprintf(&system, "Rule %d of this house is that record %d is looked up before anything is said about it. ", i, i*i)
	}
	tools := "builtin: [record]"
	if r.late != "" {
		tools += ", late: " + r.late
	}
	text := fmt.Sprintf("profile_name: cache\nsystem_prompt: %q\ntools: {%s}\napproval_mode: never\nmax_same_calls: 0\n"+
		"primary_model: {provider: %s, model: %s, base_url: %q, prompt_cache_key: yes}\n", system.String(), tools, r.provider, r.model, url)
	return dir, os.WriteFile(filepath.Join(dir, "agents", "cache.yaml"), []byte(text), 0o600)
}
