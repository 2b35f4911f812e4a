package peers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"agentd"
)

// 6, at random: whatever pages, references and context change between the turns of a
// session, whatever people and tools say, and whenever agentd is restarted, each request
// begins with the one before it.
func TestPeers06RandomSessionsOnlyGrow(t *testing.T) {
	for _, provider := range []string{"openai", "anthropic"} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s %d", provider, seed), func(t *testing.T) { randomSession(t, provider, seed) })
		}
	}
}

func randomSession(t *testing.T, provider string, seed uint64) {
	ctx := deadline(t)
	r := rand.New(rand.NewPCG(seed, 6))
	var turns strings.Builder
	n := 6 + r.IntN(4)
	for i := range 1 + r.IntN(2) {
		fmt.Fprintf(&turns, "- text: 'Step %d.'\n  tool_calls: [{name: a_quick, arguments: {z: %d}}, {name: c_fails, arguments: {a: '<context kind=\"page\">'}}]\n", i, i)
	}
	turns.WriteString("- text: 'The answer.'\n")
	model := simulate(t, turns.String())
	url := model.URL
	if provider == "openai" {
		url += "/v1"
	}
	w := newWorld(t, map[string]string{
		"agents/p.yaml": fmt.Sprintf("profile_name: p\nprimary_model: {provider: %s, model: m, base_url: %q, api_key_env: KEY}\ntools: {builtin: [extra, ask_user_question, workspace]}\napproval_mode: never\n", provider, url) +
			"sections: s\nprompt_facts: {region: eu}\ncontext_sources: [environment]\nfew_shot_examples: [{user: hi, assistant: hello}]\noutput_style: concise\n",
		"s/rules.md":   "---\ntier: static\n---\nBe kind in {{region}}.",
		"s/tools.md":   "---\ntier: org\nwhen: {tools: [a_*]}\n---\nYou have {{tools}}.",
		"s/now.md":     "---\ntier: turn\n---\nIt is {{time}}.", // another one with most messages
		"s/quiet.md":   "---\ntier: turn\nwhen: {mode: [plan]}\n---\nNobody sees this.",
		"../AGENTS.md": "Run the tests.",
	}, part{"c_fails"}, part{"a_quick"})
	session := ""
	some := func(what string) string { return fmt.Sprintf("%s %d </context>", what, r.IntN(2)) }
	for i := range n {
		req := agentd.StartRequest{Profile: "p", SessionID: session, Input: agentd.Text(fmt.Sprintf("turn %d <context kind=\"page\">ü</context>", i))}
		if r.IntN(2) == 0 {
			req.Page = json.RawMessage(fmt.Sprintf(`{"path":"/%d","title":"A < B"}`, r.IntN(2)))
		}
		if r.IntN(3) == 0 {
			req.References = []json.RawMessage{json.RawMessage(`{"kind":"ticket","id":"7"}`)}
		}
		if r.IntN(2) == 0 {
			req.ContextBlocks = append(req.ContextBlocks, agentd.ContextBlock{Kind: "tree", Text: some("tree")})
		}
		switch r.IntN(3) {
		case 0:
			req.ContextBlocks = append(req.ContextBlocks, agentd.ContextBlock{Kind: "mode", Text: some("mode")})
		case 1:
			req.ContextBlocks = append(req.ContextBlocks, agentd.ContextBlock{Kind: "mode"})
		}
		run, err := w.rt.Start(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		if run, err = w.rt.Wait(ctx, run.ID); err != nil || run.Status != "completed" {
			t.Fatalf("turn %d: %+v, %v", i, run, err)
		}
		session = run.SessionID
		if r.IntN(3) == 0 {
			w.restart()
		}
	}
	bodies := recorded(t, model.URL)
	last := growing(t, bodies)
	if len(bodies) < n || len(last.Messages) < 2*n {
		t.Errorf("%d requests, %d messages", len(bodies), len(last.Messages))
	}
	all := string(last.System)
	for _, m := range last.Messages {
		all += string(m)
	}
	for _, want := range []string{"Be kind in eu.", "You have a_quick, ask_user_question, c_fails,", "Run the tests.", `section.now`, `working folder: `} {
		if !strings.Contains(all, want) {
			t.Errorf("nothing says %q: %s", want, all)
		}
	}
	if strings.Count(all, "working folder: ") != 1 || strings.Contains(all, "Nobody sees this") || strings.Contains(all, "section.quiet") {
		t.Errorf("what was told is told again, or what does not hold: %s", all)
	}
}
