package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentd/client"
	"agentd/event"
)

// 5. A client of another protocol gets the same runs as everybody: with events,
// usage and an end that the native API shows; a request that is repeated is one run,
// and histories that their clients edit never mix.
func TestPeers05OneRunBehindEveryProtocol(t *testing.T) {
	ctx := deadline(t)
	model := simulate(t, "- text: 'The answer to {{.User}}.'\n")
	w := newWorld(t, map[string]string{
		"agents/p.yaml": "profile_name: p\nprimary_model: {provider: openai, model: m, base_url: '" + model.URL + "/v1', api_key_env: KEY}\n",
	})
	c := w.client("")
	type said map[string]string
	chat := func(key string, stream bool, history ...said) string {
		t.Helper()
		return chat(ctx, t, w.http.URL, key, map[string]any{"model": "p", "stream": stream, "messages": history})
	}
	one := []said{{"role": "user", "content": "one"}}
	if got := chat("k1", false, one...); got != "The answer to one." {
		t.Errorf("%q", got)
	}
	if got := chat("k1", true, one...); got != "The answer to one." { // repeated, and streamed this time
		t.Errorf("%q", got)
	}
	runs, _, err := c.Runs(ctx, client.RunFilter{})
	if err != nil || len(runs) != 1 || runs[0].Status != client.Completed || runs[0].Usage.Output == 0 {
		t.Fatalf("natively there are %+v, %v", runs, err)
	}
	if end := until(ctx, t, c, runs[0].ID, event.RunCompleted); end.Data.(*event.Ended).Output != "The answer to one." {
		t.Errorf("%+v", end)
	}
	// The client goes on, and then changes what was said: each call brings its own
	// history, and the model sees that and nothing else.
	chat("", false, said{"role": "user", "content": "one"}, said{"role": "assistant", "content": "The answer to one."}, said{"role": "user", "content": "two"})
	chat("", false, said{"role": "user", "content": "another"}, said{"role": "assistant", "content": "An edited answer."}, said{"role": "user", "content": "three"})
	var bodies []string
	for _, raw := range recorded(t, model.URL) {
		bodies = append(bodies, string(raw))
	}
	if len(bodies) != 3 {
		t.Fatalf("the model was asked %d times: %s", len(bodies), bodies)
	}
	for i, c := range []struct{ has, lacks string }{{"one", "two"}, {"two", "another"}, {"An edited answer.", "The answer to one"}} {
		if !strings.Contains(bodies[i], c.has) || strings.Contains(bodies[i], c.lacks) {
			t.Errorf("request %d: %s", i+1, bodies[i])
		}
	}
}

// chat makes one call of the OpenAI-compatible API and gives the answer's text.
func chat(ctx context.Context, t *testing.T, url, key string, body any) string {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", resp.Status, answer, err)
	}
	type choice struct {
		Choices []struct{ Message, Delta struct{ Content string } }
	}
	var text strings.Builder
	take := func(raw []byte) {
		var c choice
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		for _, c := range c.Choices {
			text.WriteString(c.Message.Content + c.Delta.Content)
		}
	}
	if !bytes.HasPrefix(answer, []byte("data:")) && !bytes.HasPrefix(answer, []byte(":")) {
		take(answer)
		return text.String()
	}
	for line := range strings.Lines(string(answer)) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok && data != "[DONE]" {
			take([]byte(data))
		}
	}
	return text.String()
}

// recorded gives the bodies of the requests that a model server got.
func recorded(t *testing.T, url string) (bodies []json.RawMessage) {
	t.Helper()
	resp, err := http.Get(url + "/requests")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct {
		Requests []struct {
			Path string
			Body json.RawMessage
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	for _, r := range out.Requests {
		bodies = append(bodies, r.Body)
	}
	return bodies
}
