package agentd

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"agentd/internal/session"
	"agentd/internal/sim"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model/script"
)

// Sessions as users of other agents lost them, over the wires of all providers: the
// simulator refuses such histories like the real services do.

// bricked is a runtime with a profile for each provider.
func bricked(t *testing.T, more string) (*Runtime, []string) {
	t.Helper()
	s, err := script.Parse("test.yaml", []byte("fallthrough: 'You said {{.User}}'\n"))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(sim.New(sim.Options{Scripts: []*script.Script{s}}))
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "script.yaml"), "fallthrough: 'You said {{.User}}'\n")
	providers := map[string]string{
		"openai":    fmt.Sprintf("{provider: openai, model: m, base_url: %q, api_key_env: KEY}", srv.URL+"/v1"),
		"anthropic": fmt.Sprintf("{provider: anthropic, model: m, base_url: %q, api_key_env: KEY}", srv.URL),
		"gemini":    fmt.Sprintf("{provider: gemini, model: m, base_url: %q, api_key_env: KEY}", srv.URL),
		"ollama":    fmt.Sprintf("{provider: ollama, model: m, base_url: %q}", srv.URL),
		"script":    "{provider: script, model: m, script: script.yaml}",
	}
	for name, m := range providers {
		write(t, filepath.Join(dir, "agents", name+".yaml"), "profile_name: "+name+"\nprimary_model: "+m+"\nretry: {enabled: false}\n")
	}
	write(t, filepath.Join(dir, "agentd.yaml"), "addr: 127.0.0.1:0\n"+more)
	rt, err := Open(t.Context(), Config{Configs: dir, Data: filepath.Join(t.TempDir(), "data"), Workspace: t.TempDir(), Env: func(name string) (string, bool) { return name, name == "KEY" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	})
	return rt, []string{"openai", "anthropic", "gemini", "ollama", "script"}
}

// with writes a session as another program might have.
func (rt *Runtime) with(t *testing.T, bodies ...string) string {
	t.Helper()
	s, err := rt.CreateSession(t.Context(), SessionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	tx := &store.Tx{Tenant: rt.tenant}
	leaf := ""
	for i, body := range bodies {
		id := fmt.Sprintf("%04d", i)
		tx.Entries = append(tx.Entries, &store.Entry{SessionID: s.ID, ID: id, Parent: leaf, Kind: session.KindMessage, Created: 1, Body: json.RawMessage(body)})
		leaf = id
	}
	tx.Leaves = []store.Leaf{{SessionID: s.ID, EntryID: leaf, Updated: 1}}
	if err := rt.store.Commit(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	return s.ID
}

// say sends a message and wants it answered.
func (rt *Runtime) say(t *testing.T, profile, sessionID string, blocks ...message.Block) *Run {
	t.Helper()
	r, err := rt.Start(t.Context(), StartRequest{Profile: profile, SessionID: sessionID, Input: append(Text("hello"), blocks...)})
	if err != nil {
		t.Fatal(err)
	}
	if r, err = rt.Wait(t.Context(), r.ID); err != nil || r.Status != "completed" || !strings.Contains(r.Output, "You said hello") {
		t.Errorf("%s: the session is lost: %s %q %+v, %v", profile, r.Status, r.Output, r.Error, err)
	}
	return r
}

func TestHistoriesOfOthersDoNotBrickTheSession(t *testing.T) {
	rt, profiles := bricked(t, "")
	const user = `{"role":"user","content":[{"type":"text","text":"hi"}]}`
	reply := func(calls string) string {
		return `{"role":"assistant","stopReason":"toolUse","content":[{"type":"text","text":"ok"},` + calls + `]}`
	}
	call := func(id, name, args string) string {
		return fmt.Sprintf(`{"type":"toolCall","id":%q,"name":%q,"arguments":%s}`, id, name, args)
	}
	result := func(id, text string) string {
		return fmt.Sprintf(`{"role":"toolResult","toolCallId":%q,"toolName":"x","content":[{"type":"text","text":"%s"}]}`, id, text)
	}
	for name, history := range map[string][]string{
		"a call without a result":        {user, reply(call("a", "x", "{}"))},
		"one of two has a result":        {user, reply(call("a", "x", "{}") + "," + call("b", "x", "{}")), result("b", "of b")},
		"a result without a call":        {user, result("a", "of nothing"), `{"role":"assistant","content":[{"type":"text","text":"ok"}]}`},
		"a result twice":                 {user, reply(call("a", "x", "{}")), result("a", "1"), result("a", "2")},
		"a result behind another speech": {user, reply(call("a", "x", "{}")), user, result("a", "late")},
		"ids that come again":            {user, reply(call("0", "x", "{}")), result("0", "1"), user, reply(call("0", "x", "{}")), result("0", "2")},
		"ids that are equal":             {user, reply(call("0", "x", "{}") + "," + call("0", "x", "{}")), result("0", "1"), result("0", "2")},
		"no ids":                         {user, reply(call("", "x", "{}") + "," + call("", "x", "{}")), result("", "1"), result("", "2")},
		"odd ids":                        {user, reply(call(strings.Repeat("é.", 90), "x", "{}")), result(strings.Repeat("é.", 90), "1")},
		"names that nobody takes":        {user, reply(call("a", "do it (now)", "{}") + "," + call("b", "", "{}") + "," + call("c", strings.Repeat("x", 300), "{}")), result("a", "1")},
		"halves of surrogate pairs":      {user, reply(call("a", "x", `{"\ud800":"\udc00 \ud83d\ude00"}`)), result("a", `half \ud800`), `{"role":"user","content":[{"type":"text","text":"half \udfff"}]}`},
		"arguments that are no object":   {user, reply(call("a", "x", "[1]") + "," + call("b", "x", `"{}"`) + "," + call("c", "x", "null")), result("a", "1")},
		"it begins with a reply":         {`{"role":"assistant","content":[{"type":"text","text":"What can I do?"}]}`, user},
		"it begins with a call":          {reply(call("a", "x", "{}")), result("a", "1")},
		"nothing is said":                {`{"role":"user","content":[]}`, `{"role":"assistant","content":[]}`, `{"role":"user","content":[{"type":"text","text":" \n"}]}`},
		"roles and blocks of others":     {user, `{"role":"narrator","content":[{"type":"text","text":"x"}]}`, `{"role":"user","content":[{"type":"hologram"}]}`},
		"a reply that failed":            {user, `{"role":"assistant","stopReason":"error","errorMessage":"x","content":[` + call("a", "x", "{}") + `]}`, result("a", "1")},
		"damaged":                        {"\xff", user, "junk", `{"role":7}`},
	} {
		for _, profile := range profiles {
			t.Run(name+"/"+profile, func(t *testing.T) {
				ses := rt.with(t, history...)
				rt.say(t, profile, ses)
				rt.say(t, profile, ses)
			})
		}
	}
}

func TestPicturesDoNotBrickTheSession(t *testing.T) {
	rt, profiles := bricked(t, "images: {max_count: 3}\n")
	picture := func(s string) message.Block {
		return message.Image(base64.StdEncoding.EncodeToString([]byte(s)), "image/png")
	}
	for _, profile := range profiles[:4] {
		ses := rt.with(t, `{"role":"user","content":[{"type":"image","data":"?","mimeType":"image/png"},{"type":"image","data":"AAAA","mimeType":"image/bmp"}]}`)
		rt.say(t, profile, ses)
		rt.say(t, profile, ses, picture("BROKEN"))
		rt.say(t, profile, ses)
		for range 5 {
			rt.say(t, profile, ses, picture("fine"), picture("fine too"))
		}
		entries, err := rt.Entries(t.Context(), ses)
		if err != nil {
			t.Fatal(err)
		}
		left := 0
		for _, e := range entries {
			if e.LeftOut != "" {
				left++
			}
		}
		if left != 1 {
			t.Errorf("%s: %d entries are left out", profile, left)
		}
	}
}

// The doctor tells of what models are not shown, and of contents that were lost.
func TestTheDoctorTellsOfQuarantine(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	rt, err := Open(t.Context(), Config{Data: data, Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	ses := rt.with(t, `{"role":"user","content":[{"type":"text","text":"hi"}]}`)
	if err := rt.store.Commit(t.Context(), &store.Tx{Tenant: rt.tenant, Quarantine: []*store.Quarantine{{SessionID: ses, EntryID: "0000", What: "images", Reason: "too large", RunID: "run_1"}}}); err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := CheckStore(t.Context(), data, true)
	if err != nil || len(r.Findings) != 1 || r.Findings[0].Severity != "notice" || !strings.Contains(r.Findings[0].What, "too large") {
		t.Errorf("%+v, %v", r, err)
	}
}
