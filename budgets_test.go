package agentd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentd/message"
)

// Caps and prices are keys of profiles and of agentd.yaml, and hold.
func TestBudgetsAreConfigured(t *testing.T) {
	const priced = "primary_model: {provider: script, model: demo, price: {input: 2, output: 2.5}}\n"
	dir := profiles(t, map[string]string{"p": priced + "max_cost_usd: 1000\nmax_tokens_per_run: 90000\n", "q": priced})
	settings := "budgets: {per_session: {max_cost_usd: 0.05}, per_tenant_day: {max_tokens: 500000}, tenants: {rich: {}}, min_reply_tokens: 16}\n"
	if err := os.WriteFile(filepath.Join(dir, "agentd.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	rt, err := Open(t.Context(), Config{Configs: dir, Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	r, err := rt.Start(t.Context(), StartRequest{Profile: "p", Input: Text("hello")})
	if err != nil {
		t.Fatal(err)
	}
	if r, err = rt.Wait(t.Context(), r.ID); err != nil || r.Status != "completed" || len(r.Budget.Pots) != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	for i, want := range []struct {
		kind  string
		limit message.Money
		token int64
	}{{"tenant_day", 0, 500_000}, {"session", message.Dollar / 20, 0}, {"run", 1000 * message.Dollar, 90_000}} {
		p := r.Budget.Pots[i]
		if p.Kind != want.kind || p.Limits.CostUSD != want.limit || p.Limits.Tokens != want.token || p.Used.CostUSD == 0 || p.Used.Tokens == 0 || p.Held.Tokens != 0 {
			t.Errorf("%+v, want %+v", p, want)
		}
	}
	// Until the session has spent what it may.
	for n := 0; r.Status == "completed" && r.StopReason == "stop"; n++ {
		if n > 2000 {
			t.Fatal("the session's budget does not end")
		}
		if r, err = rt.Start(t.Context(), StartRequest{Profile: "q", SessionID: r.SessionID, Input: Text(strings.Repeat("again ", 500))}); err != nil {
			t.Fatal(err)
		}
		if r, err = rt.Wait(t.Context(), r.ID); err != nil {
			t.Fatal(err)
		}
	}
	pots, _, err := rt.Budgets(t.Context(), PotFilter{Kind: "session"})
	if err != nil || len(pots) != 1 || r.StopReason != "max_cost" || pots[0].Used.CostUSD > message.Dollar/20 || pots[0].Used.CostUSD < message.Dollar/50 {
		t.Errorf("%+v, %v, %+v", pots[0], err, r)
	}
}

// A money cap that can not be held is a problem of the configuration, with what to do.
func TestUnpricedCapsAreProblems(t *testing.T) {
	local := "primary_model: {provider: openai, model: qwen-at-home, base_url: \"http://127.0.0.1:11434/v1\"}\n"
	dir := profiles(t, map[string]string{"capped": local + "max_cost_usd: 1\n", "free": local, "tokens": local + "max_tokens_per_run: 9000\n",
		"known": "primary_model: {provider: openai, model: gpt-5}\nmax_cost_usd: 1\n"})
	of := func() string {
		problems, _ := CheckConfig(dir)
		var lines []string
		for _, p := range problems {
			if p.Key == "max_cost_usd" {
				lines = append(lines, string(p.Severity)+" "+filepath.Base(p.File)+" "+p.Message)
			}
		}
		return strings.Join(lines, "\n")
	}
	if got := of(); got != "error capped.yaml can not be held: the price of openai/qwen-at-home is not known" {
		t.Errorf("got %s", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "agentd.yaml"), []byte("budgets: {tenants: {acme: {per_session: {max_cost_usd: 3}}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := of(); strings.Count(got, "\n") != 2 || strings.Count(got, "warning") != 2 {
		t.Errorf("got %s", got)
	}
	rt, err := Open(t.Context(), Config{Configs: dir, Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if _, err := rt.Start(t.Context(), StartRequest{Profile: "capped", Input: Text("x")}); err == nil || !strings.Contains(err.Error(), "price of openai/qwen-at-home is not known") {
		t.Errorf("got %v", err)
	}
	// With a price it is fine.
	if err := os.WriteFile(filepath.Join(dir, "agents", "capped.yaml"), []byte("profile_name: capped\nmax_cost_usd: 1\n"+
		strings.Replace(local, "v1\"}", "v1\", price: {input: 0, output: 0}}", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "agentd.yaml")); err != nil {
		t.Fatal(err)
	}
	if got := of(); got != "" {
		t.Errorf("got %s", got)
	}
}
