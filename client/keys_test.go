package client_test

import (
	"encoding/json"
	"testing"

	"agentd/client"
	"agentd/fault"
)

// A session is created once per key, and another request under the key is told
// which session the first one made.
func TestSessionsAreCreatedOnce(t *testing.T) {
	c, _, _ := serve(t)
	ctx := timeout(t)
	req := client.SessionRequest{Title: "plans", Metadata: json.RawMessage(`{"a":1}`), IdempotencyKey: "k"}
	first, err := c.CreateSession(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	req.Metadata = json.RawMessage(`{ "a": 1 }`) // the same, written otherwise
	if again, err := c.CreateSession(ctx, req); err != nil || again.ID != first.ID || again.Title != "plans" {
		t.Errorf("the repetition gave %+v, %v", again, err)
	}
	for _, other := range []client.SessionRequest{{Title: "other", Metadata: req.Metadata}, {Title: "plans"}, {}} {
		other.IdempotencyKey = "k"
		_, err := c.CreateSession(ctx, other)
		if f := isKind(t, err, fault.Conflict); f.Field != "Idempotency-Key" || f.Hint == "" || f.Err.Error() != "the key was used for another request, which created session "+first.ID {
			t.Errorf("%+v", f)
		}
	}
	for _, key := range []string{"", "", "k2"} {
		req.IdempotencyKey = key
		if s, err := c.CreateSession(ctx, req); err != nil || s.ID == first.ID {
			t.Errorf("key %q: %+v, %v", key, s, err)
		}
	}
	if all, _, err := c.Sessions(ctx, client.SessionFilter{}); err != nil || len(all) != 4 {
		t.Errorf("%d sessions, %v", len(all), err)
	}
	// A key is free again when its session is gone.
	if err := c.DeleteSession(ctx, first.ID); err != nil {
		t.Fatal(err)
	}
	if s, err := c.CreateSession(ctx, client.SessionRequest{Title: "other", IdempotencyKey: "k"}); err != nil || s.ID == first.ID {
		t.Errorf("%+v, %v", s, err)
	}
}
