package agentd_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"agentd"
)

// chatter is a client that keeps its own history of a conversation that it names.
type chatter struct {
	t       *testing.T
	url     string
	name    string
	user    string
	profile string
	history []map[string]string
}

// ask sends the whole history and a message, and keeps what is answered.
func (c *chatter) ask(text string) (answer, session string) {
	c.t.Helper()
	c.history = append(c.history, map[string]string{"role": "user", "content": text})
	answer, session = c.send()
	c.history = append(c.history, map[string]string{"role": "assistant", "content": answer})
	return answer, session
}

func (c *chatter) send() (answer, session string) {
	c.t.Helper()
	body, err := json.Marshal(map[string]any{"model": c.profile, "messages": c.history, "user": c.user})
	if err != nil {
		c.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), "POST", c.url+"/v1/chat/completions", strings.NewReader(string(body)))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.name != "" {
		req.Header.Set("X-Agentd-Conversation-Id", c.name)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Error(err)
		return "", ""
	}
	defer res.Body.Close()
	var out struct {
		Choices []struct{ Message struct{ Content string } }
		Error   any
	}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || len(out.Choices) != 1 {
		c.t.Errorf("%d %v %v", res.StatusCode, out.Error, err)
		return "", ""
	}
	return out.Choices[0].Message.Content, res.Header.Get("X-Agentd-Session-Id")
}

// chats is a server whose agent looks around before it answers.
func chats(t *testing.T, data string) (*agentd.Runtime, string) {
	t.Helper()
	configs := map[string]string{
		"agents/helper.yaml": "profile_name: helper\nprimary_model: {provider: script, model: m, script: helper.yaml}\ntools: {builtin: [workspace]}\napproval_mode: never\ncontext_sources: [date, environment]\n",
		"agents/asker.yaml":  "profile_name: asker\nprimary_model: {provider: script, model: m, script: asker.yaml}\ntools: {builtin: [ask_user_question]}\n",
		"helper.yaml":        "turns:\n- text: Looking.\n  tool_calls: [{name: glob, arguments: {pattern: '*'}}]\n- text: You said {{.User}}.\n",
		"asker.yaml":         "restart: never\nturns:\n- tool_calls: [{name: ask_user_question, arguments: {question: 'Which colour?'}}]\nfallthrough: Then {{.User}}.\n",
	}
	rt, err := agentd.Open(t.Context(), agentd.Config{Data: data, Configs: write(t, configs), Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	h, err := rt.Handler()
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return rt, srv.URL
}

// users shows what the users of a session said, with the place of what was said before.
func users(t *testing.T, rt *agentd.Runtime, session string) string {
	t.Helper()
	v, err := rt.Tree(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]*agentd.Node{}
	var out []string
	for _, n := range v.Entries {
		by[n.ID] = n
		if n.Role != "user" {
			continue
		}
		before := "-"
		for p := by[n.Parent]; p != nil; p = by[p.Parent] {
			if p.Role == "user" {
				before = p.Preview
				break
			}
		}
		out = append(out, before+">"+n.Preview)
	}
	return strings.Join(out, " ")
}

// The calls of a conversation that its client names share a session: what is known is
// not stored again, and what was edited is a branch.
func TestConversationsOfChatClients(t *testing.T) {
	data := t.TempDir()
	rt, url := chats(t, data)
	c := &chatter{t: t, url: url, name: "talk", profile: "helper"}
	answer, ses := c.ask("one")
	if answer != "Looking.\n\nYou said one." {
		t.Fatalf("%q", answer)
	}
	c.ask("two")
	if answer, again := c.ask("three"); again != ses || answer != "Looking.\n\nYou said three." {
		t.Errorf("%q in %s, not %s", answer, again, ses)
	}
	want := "->one one>two two>three"
	if got := users(t, rt, ses); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// The second message is said otherwise: what was said before stays one.
	edited := *c
	edited.history = append([]map[string]string{}, c.history[:2]...)
	edited.ask("TWO")
	want += " one>TWO"
	// An answer is asked for again.
	edited.history = edited.history[:3]
	answer, _ = edited.send()
	edited.history = append(edited.history, map[string]string{"role": "assistant", "content": answer})
	want += " one>TWO"
	if got := users(t, rt, ses); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// An answer is edited: from there on it is the client's.
	forged := *c
	forged.history = append([]map[string]string{}, c.history...)
	forged.history[1] = map[string]string{"role": "assistant", "content": "Looking."}
	forged.ask("four")
	want += " one>two two>three three>four"
	if got := users(t, rt, ses); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// It is known after a restart, too, and the first way goes on.
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	rt, c.url = chats(t, data)
	c.ask("five")
	if got := users(t, rt, ses); got != want+" three>five" {
		t.Errorf("%s, want %s", got, want)
	}
	// The same name is another conversation for another user, and none for nobody.
	other := &chatter{t: t, url: c.url, name: "talk", user: "kim", profile: "helper"}
	if _, s := other.ask("one"); s == ses {
		t.Error("two users share a conversation")
	}
	none := &chatter{t: t, url: c.url, profile: "helper"}
	none.ask("one")
	_, s := none.ask("two")
	if v, err := rt.Session(t.Context(), s); err != nil || !v.Ephemeral {
		t.Errorf("%v %+v", err, v)
	}
	if v, err := rt.Session(t.Context(), ses); err != nil || v.Ephemeral || v.Title != "one" {
		t.Errorf("%v %+v", err, v)
	}
}

// Clients of one conversation that speak at the same time all get their answers, each
// to what it said, and the tree has all of them where they belong.
func TestConversationRace(t *testing.T) {
	rt, url := chats(t, t.TempDir())
	first := &chatter{t: t, url: url, name: "talk", profile: "helper"}
	_, ses := first.ask("one")
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			c := &chatter{t: t, url: url, name: "talk", profile: "helper", history: append([]map[string]string{}, first.history...)}
			for _, text := range []string{fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)} {
				if answer, s := c.ask(text); s != ses || answer != "Looking.\n\nYou said "+text+"." {
					t.Errorf("%s: %q in %s", text, answer, s)
				}
			}
		})
	}
	wg.Wait()
	got := users(t, rt, ses)
	for i := range 6 {
		for _, want := range []string{fmt.Sprintf("one>a%d", i), fmt.Sprintf("a%d>b%d", i, i)} {
			if strings.Count(got, want) != 1 {
				t.Errorf("%s is not there once: %s", want, got)
			}
		}
	}
	// At its beginning, too: there is one session.
	sessions := make([]string, 6)
	for i := range sessions {
		wg.Go(func() {
			c := &chatter{t: t, url: url, name: "other", profile: "helper"}
			_, sessions[i] = c.ask(fmt.Sprintf("c%d", i))
		})
	}
	wg.Wait()
	for _, s := range sessions {
		if s != sessions[0] {
			t.Errorf("%q", sessions)
		}
	}
}

// A run that asks a question does not hold up a client that says something else.
func TestConversationGoesOnWithoutAnAnswer(t *testing.T) {
	rt, url := chats(t, t.TempDir())
	c := &chatter{t: t, url: url, name: "talk", profile: "asker"}
	answer, ses := c.ask("go")
	if !strings.Contains(answer, "Which colour?") {
		t.Fatalf("%q", answer)
	}
	if answer, again := c.ask("never mind"); again != ses || answer != "Then never mind." {
		t.Errorf("%q in %s, not %s", answer, again, ses)
	}
	if got := users(t, rt, ses); got != "->go go>never mind" {
		t.Error(got)
	}
}
