package peers

import (
	"fmt"
	"testing"

	"agentd"
	"agentd/message"
)

// 7. One pot of money for a run and all below it, and one of its tenant for the day:
// however many calls are made side by side, and whatever they could cost, a cap is not
// passed by a cent, and a run that meets it ends with what it has.
func TestPeers07BudgetsAreHard(t *testing.T) {
	ctx := deadline(t)
	const tree, day = 50 * message.Dollar / 100, 120 * message.Dollar / 100
	price := "price: {input: 20, output: 100}" // dollars for a million tokens
	agent := func(name, more string) string {
		return fmt.Sprintf("profile_name: %s\nprimary_model: {provider: script, model: %s, script: %s.yaml, %s}\nmax_output_tokens: 60\napproval_mode: never\n%s", name, name, name, price, more)
	}
	w := newWorld(t, map[string]string{
		"agentd.yaml":      "budgets:\n  per_tenant_day: {max_cost_usd: 1.20}\n  min_reply_tokens: 20\n  closing_tokens: 20\n  closing_input_tokens: 100\n",
		"agents/boss.yaml": agent("boss", "subagents: [leaf]\nmax_cost_usd: 0.50\nmax_same_failures: 0\n"),
		"agents/leaf.yaml": agent("leaf", "tools: {builtin: [glob]}\n"),
		"boss.yaml":        "turns:\n- repeat: 20\n  tool_calls: [{name: create_subagent, arguments: {subagent_type: leaf, prompt: a}}, {name: create_subagent, arguments: {subagent_type: leaf, prompt: b}}]\n- text: All is done.\nfallthrough: As far as I got.\n",
		"leaf.yaml":        "turns:\n- repeat: 5\n  tool_calls: [{name: glob, arguments: {pattern: '*.none'}}]\n- text: Nothing.\nfallthrough: Enough.\n",
	})
	var runs []*agentd.Run
	for range 4 { // of which the tenant can pay for two and a bit
		r, err := w.rt.Start(ctx, agentd.StartRequest{Profile: "boss", Input: agentd.Text("go")})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
	}
	var all message.Money
	for _, r := range runs {
		end, err := w.rt.Wait(ctx, r.ID)
		if err != nil {
			t.Fatal(err)
		}
		if end.StopReason != "max_cost" {
			t.Errorf("%s ended for %q: %s", end.Status, end.StopReason, end.Output)
		}
	}
	pots, _, err := w.rt.Budgets(ctx, agentd.PotFilter{})
	if err != nil {
		t.Fatal(err)
	}
	trees := 0
	for _, p := range pots {
		t.Logf("%s %s: %s of %s, held %s", p.Kind, p.ID, p.Used.CostUSD, p.Limits.CostUSD, p.Held.CostUSD)
		limit := message.Money(tree)
		if p.Kind == "tenant_day" {
			limit = day
			all = p.Used.CostUSD
		} else {
			trees++
		}
		if p.Used.CostUSD > limit || p.Held.CostUSD != 0 {
			t.Errorf("%s %s has used %s of %s and holds %s", p.Kind, p.ID, p.Used.CostUSD, limit, p.Held.CostUSD)
		}
	}
	if trees == 0 || all < day/2 {
		t.Errorf("%d trees used %s: that shows nothing", trees, all)
	}
}
