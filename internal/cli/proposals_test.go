package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"agentd/client"
	"agentd/event"
)

// The commands know which proposals they are told about.
func TestProposals(t *testing.T) {
	b := newBench(t)
	b.agent("talk", "x").exits(0)
	b.here("runs", "proposals", "run_x").exits(1).complains("there is no run run_x")
	b.here("runs", "proposals", "run_x", "--apply", "--discard").exits(2).complains("not both")
	b.here("runs", "proposals", "run_x", "run_x.p1").exits(2).complains("--apply or --discard")
	b.here("runs", "proposals", "run_x", "--uncertain", "done").exits(2).complains("go with --apply")
	b.here("runs", "proposals", "run_x", "--apply").exits(1).complains("there is no run run_x")
}

// TestProposalsAreDecided: what a person does with what an autonomous run proposed,
// in the data folder and at a server, read by people and by programs.
func TestProposalsAreDecided(t *testing.T) {
	for _, remote := range []bool{false, true} {
		b := newBench(t)
		saved := b.proposing()
		var runs []string
		for range 2 {
			r := lines[event.Event](b.asJSON(func() *result { return b.agent("write", "Write it", "--mode", "autonomous") }).exits(0))
			runs = append(runs, r[0].RunID)
		}
		there := b.here
		if remote {
			url, _ := b.serving(nil)
			there = func(args ...string) *result { t.Helper(); return b.run(append(args, "--server", url)...) }
		}
		proposals := func(args ...string) []*client.Proposal {
			t.Helper()
			return lines[*client.Proposal](b.asJSON(func() *result { return there(append([]string{"runs", "proposals"}, args...)...) }).exits(0))
		}
		first, second := runs[0], runs[1]
		there("runs", "proposals", first).exits(0).says("PROPOSAL", "STATUS", first+".p1", first+".p2", "proposed", "save", `"one"`)
		if p := proposals(first); len(p) != 2 || p[0].Status != "proposed" || p[0].Tool != "save" || string(p[0].Args) != `{"name":"one"}` || p[0].Reason == "" {
			t.Errorf("%+v", p)
		}
		// One, then the rest, whose temporary id is replaced.
		if p := proposals(first, first+".p1", "--apply"); len(p) != 2 || p[0].Status != "applied" || p[0].Result == "" || p[1].Status != "proposed" {
			t.Errorf("%+v", p)
		}
		there("runs", "proposals", first, "--apply").exits(0).says("applied")
		p := proposals(first)
		if p[1].Status != "applied" || p[1].Result != "saved below "+strings.Trim(string(p[0].RealID), `"`) {
			t.Errorf("%+v %+v", p[0], p[1])
		}
		there("runs", "proposals", first, first+".p1", "--apply").exits(1).complains("is applied already")
		there("runs", "proposals", first, "--apply").exits(0) // nothing is left
		// Discarded, they are never made.
		there("runs", "proposals", second, second+".p1", "--discard").exits(0).says("discarded")
		there("runs", "proposals", second, "--apply").exits(1).complains("needs the id", "Apply that one first, or discard this one too.")
		if p := proposals(second, "--discard"); len(p) != 2 || p[0].Status != "discarded" || p[1].Status != "discarded" {
			t.Errorf("%+v", p)
		}
		there("runs", "proposals", second, second+".p9", "--discard").exits(1).complains("there is no proposal")
		if n := saved.Load(); n != 2 {
			t.Errorf("%d were made", n)
		}
	}
}

// proposing adds a profile that saves two things, the second below the first, by way
// of a server whose calls need approval, and counts what is saved.
func (b *bench) proposing() *atomic.Int64 {
	b.t.Helper()
	saved := &atomic.Int64{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments struct{ Name, Below string } }
		}
		result := `{}`
		switch err := json.NewDecoder(r.Body).Decode(&m); {
		case err != nil:
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
			return
		case m.Method == "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
		case m.Method == "tools/list":
			result = `{"tools":[{"name":"save","inputSchema":{"type":"object","properties":{"name":{"type":"string"},"below":{"type":"string"}}}}]}`
		case m.Method == "tools/call":
			text := fmt.Sprintf("id-%d", saved.Add(1))
			if m.Params.Arguments.Below != "" {
				text = "saved below " + m.Params.Arguments.Below
			}
			result = fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	b.t.Cleanup(srv.Close)
	b.add("agents/write.yaml", "profile_name: write\nprimary_model: {provider: script, model: m, script: write.yaml}\ntools: {mcp_servers: [saver]}\n")
	b.add("write.yaml", "turns:\n- tool_calls:\n  - {name: save, arguments: {name: one}}\n"+
		"- tool_calls:\n  - {name: save, arguments: {name: two, below: '{{json \"id\" .Last.Text}}'}}\n- text: Proposed.\n")
	b.add("mcp/servers.yaml", fmt.Sprintf("servers:\n  saver: {transport: http, url: %q, protocol: '2025-11-25'}\n", srv.URL))
	return saved
}
